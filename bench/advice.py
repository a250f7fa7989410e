"""Advice that is followed: of how many waiting jobs does it hold? Each job is asked about, what the answer names is carried out as a user
would, through admission, and cycles run until nothing changes.

The advice of `why` holds if the job starts with it; where it says that something else holds the job back then, if the next answer says the
same. An option of `whatif` holds if the job starts with it. A job with a reason and no remedy is counted apart: nothing can be followed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from bench.causes import Situation, crowds, recorded, situations
from bench.measure import Row
from bench.small_cluster import SmallCluster
from pumice.answers import Option, Why, whatif, why
from pumice.answers.changes import ClusterChange
from pumice.api.errors import InputError
from pumice.cluster.apiserver import StatusError

RETRIED_S = 30.0  #: within which controllers try again what a quota refused
CROWDS = 300  #: clusters made at random
EACH_OPTION = 4  #: of each so many-th job, every option of `whatif` is followed


class Verdict(NamedTuple):
    situation: str
    holds: bool | None  #: None: no remedy is named
    told: str  #: what was advised, and what came of it


def advice_of_why(situation: Situation) -> Iterator[Verdict]:
    """The verdict on the advice for a job; none if the job does not wait."""
    made = situation.prepared()
    if made is None or made.has_started(situation.whose):
        return
    told = why(*made.state, situation.subject, advise=True)
    headline = told.headline
    if headline is None or not headline.remedy:
        yield Verdict(situation.name, None if headline is not None else False, f"{told.state}: {told.line}")
        return
    expected = "" if told.advice else told.then
    found = _followed(made, situation, told.advice or headline.remedy)
    words = f"{told.line} | {'; '.join(map(str, told.advice or headline.remedy))} | {expected or 'starts'} | {found or 'starts'}"
    yield Verdict(situation.name, found == expected and _says_something(told), words)


def _says_something(told: Why) -> bool:
    return bool(told.advice or told.then)


def options_of_whatif(situation: Situation) -> Iterator[Verdict]:
    """The verdict on each option for a job, each followed in a cluster of its own."""
    made = situation.prepared()
    if made is None or made.has_started(situation.whose):
        return
    for option in whatif(*made.state, situation.subject).options:
        yield _option_followed(situation, option)


def _option_followed(situation: Situation, option: Option) -> Verdict:
    fresh = situation.prepared()
    assert fresh is not None
    found = _followed(fresh, situation, option.changes)
    return Verdict(situation.name, not found, f"{option.change} | {found or 'starts'}")


def _followed(made: SmallCluster, situation: Situation, changes: Iterable[ClusterChange]) -> str:
    """What holds the job back once the changes are carried out; empty if it starts."""
    try:
        for change in changes:
            made.follow(change)
    except StatusError as error:
        return f"refused: {error.message}"
    made.settle(RETRIED_S)
    if made.has_started(situation.whose):
        return ""
    try:
        return why(*made.state, situation.subject).line
    except InputError as error:
        return str(error)


def all_situations(step: int = 1) -> Iterator[Situation]:
    made = chain(situations(), recorded("volcano"), recorded("kube-scheduler"))
    return (each for number, each in enumerate(made) if number % step == 0)


def verdicts(judge: Callable[[Situation], Iterator[Verdict]], chosen: Iterable[Situation]) -> list[Verdict]:
    return [verdict for situation in chosen for verdict in judge(situation)]


def run() -> Iterator[Row]:
    for what, judge, chosen in (
        ("advice of why", advice_of_why, all_situations()),
        ("options of whatif", options_of_whatif, all_situations(EACH_OPTION)),
        ("advice of why among rivals", advice_of_why, crowds(CROWDS)),
    ):
        began, clock = time.process_time(), time.perf_counter()
        found = verdicts(judge, chosen)
        followed = [each for each in found if each.holds is not None]
        held = sum(bool(each.holds) for each in followed)
        name = f"{what}, followed: {held} of {len(followed)} hold ({100 * held / len(followed):.1f} %)"
        yield Row(
            name,
            None,
            None,
            time.process_time() - began,
            time.perf_counter() - clock,
            "s",
            {"without a remedy": len(found) - len(followed)},
        )
