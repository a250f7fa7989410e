"""Every headline is held to its word: give exactly what it says is short, and it starts, or another constraint is the binding one.

The states are those of tests/cases with pods that wait: each tenth named one and each sixtieth random one, and all of them by night.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.answers import Because
from pumice.api.errors import InputError
from pumice.api.times import instant
from pumice.scheduler.framework.cycle import cycle
from tests.answers.stories import MOST_STEPS, state, told, who_waits
from tests.cases.compare import Case, cases

CASES = Path(__file__).parents[1] / "cases"
#: headlines for which nothing can be given: the configuration, the tree of queues or a plugin's own rule would have to be another
FINAL = {
    Because.RULE,
    Because.CONFIGURATION,
    Because.NO_NODES,
    Because.NOT_ADMITTED,
    Because.QUOTA,
    Because.TOPOLOGY,
    Because.NO_PODS,
    Because.AFFINITY,
}


def chosen(named: int = 1, random: int = 1) -> list[Case]:
    found = [case for folder in ("volcano", "kube-scheduler") for case in cases(CASES / folder)]
    plain = [case for case in found if "extender.test" not in case.text and case.expect.get("compare") != "configError"]
    return [case for case in plain if "/" not in case.name][::named] + [case for case in plain if "/" in case.name][::random]


def now_of(case: Case) -> float:
    now = case.expect.get("now", "2026-01-01T12:00:00Z")
    return instant(now if isinstance(now, str) else now.strftime("%Y-%m-%dT%H:%M:%SZ"))


def hold(case: Case, path: Path) -> None:
    path.write_text(case.text)
    try:
        given = state(path, now_of(case))
    except InputError:
        return
    for subject in who_waits(given.cluster):
        answers = told(given, subject)
        lines = [answer.line for answer in answers]
        assert len(set(lines)) == len(lines) < MOST_STEPS, f"{case.name} {subject}: {lines}"
        assert all(line and "\n" not in line for line in lines), lines
        headline = answers[-1].headline
        assert headline is None or headline.because in FINAL, f"{case.name} {subject}: {lines}"
    given.cluster.check()


@pytest.mark.parametrize("group", range(2))
def test_what_the_headline_says_is_short_is_what_is_short(group: int, tmp_path: Path) -> None:
    for case in chosen(10, 60)[group::2]:
        hold(case, tmp_path / "case.yaml")


def test_headline_says_how_many_pods_of_a_sub_group_or_topology_must_come_or_find_room(tmp_path: Path) -> None:
    known = {case.name: case for case in chosen()}
    says = {
        "gangpreempt-incomplete-sub-group": ["its sub-group part needs 2 pods to start, and has 1 (1 short)"],
        "topology-subgroup-rest-elastic": [
            "its 2 pods must be in one HyperNode of tier 1 or lower; the roomiest, rack, has room for 1 (1 short)",
            "its network topology asks for room for all 2 pods that wait, and there is room for 1 (1 short)",
        ],
    }
    for name, lines in says.items():
        case, path = known[name], tmp_path / "case.yaml"
        hold(case, path)
        given = state(path, now_of(case))
        assert lines == [answer.line for subject in who_waits(given.cluster) for answer in told(given, subject)][: len(lines)]


@pytest.mark.nightly
def test_every_headline_is_held_to_its_word(tmp_path: Path) -> None:
    for case in chosen():
        hold(case, tmp_path / "case.yaml")


def test_questions_leave_the_cluster_as_it_was(tmp_path: Path) -> None:
    """After all have been asked the scheduler decides as if nobody had asked."""
    for case in chosen(40, 400):
        path = tmp_path / "case.yaml"
        path.write_text(case.text)
        try:
            asked, quiet = state(path, now_of(case)), state(path, now_of(case))
        except InputError:
            continue
        for subject in who_waits(asked.cluster)[:2]:
            told(asked, subject)
        for given in (asked, quiet):
            given.cluster.refresh_sums()
        one, other = (cycle(given.cluster, given.policy, given.now) for given in (asked, quiet))
        assert [(bind.task.key, bind.node) for bind in one.binds] == [(bind.task.key, bind.node) for bind in other.binds], case.name
        assert {each.task.key for each in one.evictions} == {each.task.key for each in other.evictions}, case.name
        asked.cluster.check()
