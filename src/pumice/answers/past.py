"""What the past tells of times to come: how long jobs like this one ran, and which jobs came of late.

How long a job runs is told, in this order, by jobs of its owner with its name and shape that have ended, by those with its name, by its
annotation, by a limit, by all jobs of its owner, by all jobs. Users' own estimates and limits are bounds, so they bound what history tells.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Hashable
from itertools import takewhile
from math import inf
from typing import NamedTuple

from pumice.simulate.objects import Amounts, amounts_of, object_name
from pumice.simulate.work import Work

ENOUGH = 5  #: jobs that have ended, for their times to be taken for those of others like them
LATEST = 60  #: so many of each kind are kept
WINDOW_S = 86_400.0  #: jobs that came within this time come again
LEAST_S = 600.0  #: a job of which nothing is known has run, or is taken to have run, at least so long

_CHANGING = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+")

HISTORY = ("history of its owner, name and shape", "history of its owner and name", "history of its owner", "history of everybody")
ANNOTATION, LIMIT, NOTHING = "its annotation", "its limit", "nothing"


class Guess(NamedTuple):
    """How long a job runs from its start on, as a distribution."""

    source: str
    times: tuple[float, ...]  #: equally likely, in order
    elapsed: float = 0.0  #: it has run so long already
    most: float = inf  #: it does not run longer, unless it has already

    def run(self, share: float) -> float:
        """What this share of such jobs do not exceed. One in so many as are known outlives them all; half of those live twice as long."""
        longer = self.times[bisect_right(self.times, self.elapsed) :]
        known, beyond = divmod(share * (len(longer) + 1), 1.0)
        found = longer[int(known)] if known < len(longer) else max(self.elapsed, LEAST_S, *longer[-1:]) / (1 - beyond)
        return min(found, self.most) if self.most > self.elapsed else found


SERVICE = Guess("nothing: it is a service", (inf,))  #: of ReplicaSets and their like: it stays


class Past:
    """Run times by what jobs have in common, and the arrivals of late. To be told of jobs in the order in which they come and end."""

    def __init__(self) -> None:
        self._came: deque[Work] = deque()
        self._times: dict[Hashable, deque[float]] = {}

    def came(self, work: Work) -> None:
        self._came.append(work)
        while self._came[0].submit < work.submit - WINDOW_S:
            self._came.popleft()

    def ended(self, work: Work, run: float) -> None:
        for kind in _kinds(work):
            self._times.setdefault(kind, deque(maxlen=LATEST)).append(run)

    def recent(self, now: float) -> list[Work]:
        """The jobs that came within the window."""
        return list(takewhile(lambda work: work.submit > now - WINDOW_S, reversed(self._came)))[::-1]

    def guess(self, work: Work, elapsed: float = 0.0) -> Guess:
        deadline = next((float(at) for role in work.roles if (at := role.spec.active_deadline_seconds)), inf)
        told = inf if work.estimate is None else work.estimate
        by_history = dict(zip(HISTORY, map(self._of, _kinds(work)), strict=True))
        bound = {ANNOTATION: (told,), LIMIT: (deadline,)}
        for source in (*HISTORY[:2], ANNOTATION, LIMIT, *HISTORY[2:]):
            times = by_history.get(source) or bound.get(source, ())
            if times and times[0] < inf:
                return Guess(source, times, elapsed, min(told, deadline))
        return Guess(NOTHING, (), elapsed)

    def _of(self, kind: Hashable) -> tuple[float, ...]:
        times = self._times.get(kind, ())
        return tuple(sorted(times)) if len(times) >= ENOUGH else ()


def owner_of(work: Work) -> str:
    return work.user or f"{work.namespace}/{work.queue}"


def _kinds(work: Work) -> tuple[Hashable, ...]:
    """What a job has in common with others, from the narrowest to the widest."""
    owner = owner_of(work)
    name = _CHANGING.sub("", object_name(work))
    shape = work.pods, *(sum(amounts_of(role)[index] * role.count for role in work.roles) for index in range(len(Amounts._fields)))
    return (owner, name, shape), (owner, name), owner, None
