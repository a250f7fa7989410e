"""`pumice replay`: decide the cycles of a recording anew, and compare with what was decided then."""

from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import click

from pumice.answers import why as why_of
from pumice.answers.answer_text import page
from pumice.answers.subject import KINDS, OWNERS, SHORT, called
from pumice.api import rfc3339
from pumice.api.plural import counted
from pumice.cli.inputs import recorded_policy, warn
from pumice.cli.tables import json_text, print_table, say
from pumice.inputs.recording.entry_format import Cycle
from pumice.inputs.recording.file_format import files_of
from pumice.inputs.recording.replay import PodDifference, Replay, cycle_numbered, decide, differences, outcomes
from pumice.scheduler.framework.policy import Policy
from pumice.text_table import columns


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--list", "listed", is_flag=True, help="Only list the cycles that bound or evicted somebody.")
@click.option("--cycle", "number", type=int, help="Only the cycle of this number, with all that it decided.")
@click.option("--why", "subject", help="With --cycle: why a pod (namespace/name), or job/NAME, queue/NAME, node/NAME, was treated so.")
@click.option("--conf", type=click.Path(), help="Decide by this configuration. Default: the recorded one.")
@click.option("--plugins-dir", type=click.Path(), help="A folder of Python files with plugins.")
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def replay(
    file: Path, listed: bool, number: int | None, subject: str | None, conf: str | None, plugins_dir: str | None, output: str
) -> None:
    """Decide the cycles of a recording anew, each on the state that it saw, and show where that differs from what was decided then.

    FILE is a recording, or a folder of them. Exit code 1 if anything differs.
    """
    if subject is not None and number is None:
        raise click.UsageError("--why asks about one cycle; say which with --cycle")
    if listed and (number is not None or conf is not None):
        raise click.UsageError("--list shows what was decided then, in all cycles; leave out --cycle and --conf")
    as_json = output == "json"
    if listed:
        _list(Replay(files_of(file, warn), warn), as_json)
        return
    if number is None:
        raise SystemExit(_all(Replay(files_of(file, warn), warn), conf, plugins_dir, as_json))
    played, cycle = cycle_numbered(file, warn, number)
    policy = recorded_policy(played.begin, conf, plugins_dir)
    if subject is None:
        raise SystemExit(_one(cycle, decide(played, cycle, policy), as_json))
    known = subject.partition("/")[0] in (*KINDS, *SHORT, *OWNERS)
    answer = why_of(played.cluster, policy, cycle.at, subject if known else f"pod/{subject}", advise=True)
    say(json_text(answer) if as_json else page(answer, partial(called, played.cluster)))


def _list(played: Replay, as_json: bool) -> None:
    rows = [
        (each.number, rfc3339(each.at), len(each.binds), len(each.evictions)) for each in played.cycles() if each.binds or each.evictions
    ]
    head = ("CYCLE", "AT", "BOUND", "EVICTED")
    if as_json:
        say(json_text([dict(zip(map(str.lower, head), row, strict=True)) for row in rows]))
    else:
        print_table(columns(head, rows))


def _all(played: Replay, conf: str | None, plugins_dir: str | None, as_json: bool) -> int:
    """Decide all cycles; print a row for each pod with another outcome, then totals. Returns the exit code."""
    policies: dict[tuple[str, ...], Policy] = {}
    count, instants, differing = Counter(cycles=0, bound=0, evicted=0, differing=0), list[str](), list[tuple[Cycle, list[PodDifference]]]()
    for cycle in played.cycles():
        texts = tuple(played.begin.configurations)
        if texts not in policies:
            policies[texts] = recorded_policy(played.begin, conf, plugins_dir)
        if found := differences(cycle, decide(played, cycle, policies[texts])):
            differing.append((cycle, found))
        count.update(cycles=1, bound=len(cycle.binds), evicted=len(cycle.evictions), differing=bool(found))
        instants = [*instants[:1], rfc3339(cycle.at)]
    if as_json:
        say(json_text({**count, "differences": [_as_object(cycle, found) for cycle, found in differing]}))
        return int(bool(differing))
    if differing:
        rows = [(cycle.number, rfc3339(cycle.at), *each) for cycle, found in differing for each in found]
        print_table(columns(("CYCLE", "AT", "POD", "THEN", "NOW"), rows) + "\n")
    span = f" from {instants[0]} to {instants[-1]}" if instants else ""
    verdict = f"{count['differing']} decide otherwise now" if differing else "all decide the same now"
    say(f"{counted(count['cycles'], 'cycle')}{span}, {count['bound']} bound, {count['evicted']} evicted: {verdict}.")
    return int(bool(differing))


def _as_object(cycle: Cycle, found: Iterable[PodDifference]) -> dict[str, Any]:
    return {"cycle": cycle.number, "at": rfc3339(cycle.at), "pods": [each._asdict() for each in found]}


def _one(cycle: Cycle, now: Cycle, as_json: bool) -> int:
    found = differences(cycle, now)
    if as_json:
        say(json_text({"recorded": cycle, "now": now, "differences": [each._asdict() for each in found]}))
        return int(bool(found))
    numbers = f"{len(cycle.binds)} bound, {len(cycle.evictions)} evicted, {len(cycle.pipelined)} pipelined"
    say(f"cycle {cycle.number} at {rfc3339(cycle.at)}: {numbers}; decided anew it {'differs' if found else 'is the same'}.")
    if rows := found or [PodDifference(pod, what, what) for pod, what in outcomes(cycle).items()]:
        print_table("\n" + columns(("POD", "THEN", "NOW"), rows))
    return int(bool(found))
