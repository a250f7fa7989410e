"""gang: valid with enough pods, ready when the minimum stands, and never cut below it; what the PodGroup is told."""

from __future__ import annotations

from typing import Any

import pytest
from queued import bound, cluster, job, node, opened, outcome, pod, pods
from scene import Thing

from pumice.scheduler.model import status

TIERS = ("gang", "predicates")
ROLE = "volcano.sh/task-spec"


def role(of: str, name: str, number: int, on: str = "", **rest: Any) -> Thing:
    return pod(f"{of}-{name}-{number}", of, on, notes={ROLE: name}, **({"cpu": 1} | rest))


VALID_ROWS: list[tuple[str, Thing, list[Thing], str]] = [
    ("enough", job("a", least=2), pods("a", 2, cpu=1), ""),
    (
        "too few",
        job("a", least=3),
        pods("a", 2, cpu=1),
        "NotEnoughTasks: Not enough valid tasks for gang-scheduling, valid: 2, min: 3",
    ),
    (
        "failed ones do not count",
        job("a", least=2),
        [*pods("a", 1, cpu=1), pod("a-f", "a", status={"phase": "Failed"})],
        "NotEnoughTasks: Not enough valid tasks for gang-scheduling, valid: 1, min: 2",
    ),
    ("succeeded ones do", job("a", least=2), [*pods("a", 1, cpu=1), pod("a-s", "a", status={"phase": "Succeeded"})], ""),
    (
        "too few of a role",
        job("a", least=2, minTaskMember={"m": 1, "w": 1}),
        [role("a", "w", 0), role("a", "w", 1)],
        "NotEnoughPodsOfTask: Not enough valid pods of each task for gang-scheduling",
    ),
    ("a minimum below the roles' sum makes them void", job("a", least=1, minTaskMember={"m": 1, "w": 1}), [role("a", "w", 0)], ""),
    (
        "too few sub-groups",
        job("a", least=1, subGroupPolicy=[{"name": "s", "subGroupSize": 1, "minSubGroups": 2, "matchLabelKeys": ["part"]}]),
        [pod("a-0", "a", labels={"part": "0"}, cpu=1)],
        "NotEnoughPodsOfTask: Not enough valid subGroups of each task for gang-scheduling",
    ),
]


@pytest.mark.parametrize(("what", "group", "tasks", "refusal"), VALID_ROWS, ids=[row[0] for row in VALID_ROWS])
def test_who_may_start_at_all(what: str, group: Thing, tasks: list[Thing], refusal: str) -> None:
    made = cluster(node("n", cpu=9), group, tasks)
    with opened(made, *TIERS) as session:
        found = session.job_valid(made.jobs["default/a"])
        assert (f"{found.reason}: {found.message}" if found else "") == refusal


ROLES: Thing = {"least": 2, "minTaskMember": {"m": 1, "w": 1}}
LOOSE: Thing = {"least": 1, "minTaskMember": {"m": 1, "w": 1}}
PARTS: Thing = {"least": 1, "subGroupPolicy": [{"name": "s", "subGroupSize": 1, "minSubGroups": 2, "matchLabelKeys": ["part"]}]}
STATES = {"pending": status.PENDING, "placed": status.ALLOCATED, "waits": status.PIPELINED, "done": status.SUCCEEDED, "lost": status.FAILED}


@pytest.mark.parametrize(
    ("spec", "states", "ready", "pipelined"),
    [
        ({"least": 2}, "m:placed w:placed", True, True),
        ({"least": 2}, "m:placed w:done", True, True),
        ({"least": 2}, "m:placed w:lost", False, False),
        ({"least": 2}, "m:placed w:waits", False, True),
        ({"least": 2}, "m:placed w:pending", False, False),
        ({"least": 2}, "m:placed w:free", True, True),
        ({"least": 3}, "m:placed w:waits w:free", False, True),
        (ROLES, "m:placed w:placed", True, True),
        (ROLES, "m:done w:placed", True, True),
        (ROLES, "m:placed w:free", True, True),
        (ROLES, "m:placed w:waits", False, True),
        (ROLES, "m:placed m:placed w:pending", False, False),
        (ROLES, "m:placed m:waits w:pending", False, False),
        (ROLES, "m:waits m:placed w:free", True, True),
        (LOOSE, "m:placed w:pending", True, True),
        (PARTS, "m:placed w:placed", True, True),
        (PARTS, "m:placed w:free", True, True),
        (PARTS, "m:placed w:waits", False, True),
        (PARTS, "m:placed w:pending", False, False),
    ],
)
def test_when_a_gang_is_ready_and_when_it_may_wait_for_room(spec: Thing, states: str, ready: bool, pipelined: bool) -> None:
    """Pods by role (and part of the job), each with its state; `free` are pending ones that ask for nothing."""
    wanted = [state.split(":") for state in states.split()]
    tasks = [role("a", name, n, labels={"part": name}, cpu=0 if state == "free" else 1) for n, (name, state) in enumerate(wanted)]
    made = cluster(node("n", cpu=9), job("a", **spec), tasks)
    with opened(made, *TIERS) as session:
        for task, (_, state) in zip(list(made.tasks.values()), wanted, strict=True):
            if STATES.get(state, status.PENDING) != status.PENDING:
                made.move(task, STATES[state], 0 if state in ("placed", "waits") else -1)
        assert (session.job_ready(made.jobs["default/a"]), session.job_pipelined(made.jobs["default/a"])) == (ready, pipelined)


def test_all_or_none_start() -> None:
    things = [job("a", least=3), *pods("a", 3, cpu=1), job("b", born=9, least=2), *pods("b", 2, cpu=1)]
    assert bound(outcome(cluster(node("n", cpu=2), things), *TIERS)) == ["b-w-0", "b-w-1"]


def test_every_role_has_its_minimum_or_none_starts() -> None:
    nodes = [node("m", cpu=1, labels={"for": "m"}), node("w", cpu=3, labels={"for": "w"})]
    tasks = [role("a", r, number, spec={"nodeSelector": {"for": r}}) for r, number in (("m", 0), ("m", 1), ("w", 0), ("w", 1))]
    assert bound(outcome(cluster(nodes, job("a", least=3, minTaskMember={"m": 2, "w": 1}), tasks), *TIERS)) == []
    served = bound(outcome(cluster(nodes, job("a", least=3, minTaskMember={"m": 1, "w": 2}), tasks), *TIERS))
    assert served == ["a-m-0", "a-w-0", "a-w-1"]


def test_best_effort_pods_count_as_ready_while_they_wait() -> None:
    things = [job("a", least=3), *pods("a", 2, cpu=1), pod("a-free", "a")]
    assert bound(outcome(cluster(node("n", cpu=2), things), *TIERS)) == ["a-w-0", "a-w-1"]


def test_jobs_that_lack_places_are_served_before_those_that_could_grow() -> None:
    ready = [job("a", least=1), pod("a-0", "a", "n", cpu=1), pod("a-1", "a", cpu=1)]
    fresh = [job("b", born=9), *pods("b", 1, cpu=1)]
    assert bound(outcome(cluster(node("n", cpu=2), ready, fresh), *TIERS)) == ["b-w-0"]


@pytest.mark.parametrize(("least", "running", "gone"), [(1, 3, 2), (3, 3, 0), (0, 3, 3), (4, 3, 0)])
def test_a_gang_is_never_cut_below_its_minimum(least: int, running: int, gone: int) -> None:
    standing = [*pods("a", running, "n", cpu=1), pod("stray", "", "n", cpu=1)]
    made = cluster(node("n", cpu=9), job("a", least=least), standing, job("b"), pod("b", "b", cpu=1))
    with opened(made, "gang") as session:
        candidates = [task for task in made.tasks.values() if task.node >= 0]
        for ask in (session.preemptable, session.reclaimable):
            assert [task.name for task in ask(made.tasks["default/b"], candidates)] == [f"a-w-{n}" for n in range(gone)]
        assert session.unified_evictable(None, candidates) == candidates


def test_a_job_starves_below_its_minimum_and_pending_best_effort_pods_do_not_feed_it() -> None:
    made = cluster(
        node("n", cpu=9), job("a", least=2), pod("a-0", "a", "n", cpu=1), pod("a-free", "a"), job("b"), pod("b", "b", "n", cpu=1)
    )
    with opened(made, "gang") as session:
        assert session.job_starving(made.jobs["default/a"])
        assert not session.job_starving(made.jobs["default/b"])


def condition(result: Thing, name: str) -> tuple[str, str, str]:
    found = result["podGroups"][f"default/{name}"]["conditions"]
    return (found[0]["type"], found[0]["reason"], found[0]["message"]) if found else ("", "", "")


def test_a_gang_that_cannot_start_is_told_how_many_are_missing_and_why() -> None:
    kind, reason, message = condition(outcome(cluster(node("n", cpu=2), job("a", least=3), pods("a", 3, cpu=1)), *TIERS), "a")
    assert (kind, reason) == ("Unschedulable", "NotEnoughResources")
    assert message == (
        "1/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Unschedulable, 2 Schedulable. "
        "Origin reason is a-w-2: 0/1 nodes are unavailable: 1 Insufficient cpu."
    )


def test_pods_that_no_node_takes_are_those_that_are_missing() -> None:
    tasks = [*pods("a", 2, cpu=1), pod("a-big-0", "a", cpu=9), pod("a-big-1", "a", cpu=9)]
    _, _, message = condition(outcome(cluster(node("n", cpu=2), job("a", least=3), tasks), *TIERS), "a")
    assert message.startswith("1/4 tasks in gang unschedulable: pod group is not ready, 3 minAvailable, 4 Pending; Pending: ")


def test_a_gang_that_stands_is_told_so() -> None:
    kind, reason, _ = condition(outcome(cluster(node("n", cpu=2), job("a", least=2), pods("a", 2, cpu=1)), *TIERS), "a")
    assert (kind, reason) == ("Scheduled", "tasks in gang are ready to be scheduled")


def leaving(name: str, of: str, on: str) -> Thing:
    gone = pod(name, of, on, cpu=1)
    gone["metadata"]["deletionTimestamp"] = "2026-01-01T12:10:00Z"
    return gone


def test_a_gang_that_merely_shrinks_is_not_called_unschedulable() -> None:
    shrinking = [job("a", least=2, phase="Running"), pod("a-0", "a", "n", cpu=1), leaving("a-1", "a", "n")]
    assert condition(outcome(cluster(node("n", cpu=2), shrinking), *TIERS), "a") == ("", "", "")
    shrunk = [job("a", least=3, phase="Running"), pod("a-0", "a", "n", cpu=1), leaving("a-1", "a", "n")]
    assert condition(outcome(cluster(node("n", cpu=2), shrunk), *TIERS), "a")[0] == "Unschedulable"
    ended = pod("a-2", "a", status={"phase": "Failed"})
    assert condition(outcome(cluster(node("n", cpu=2), shrunk, ended), *TIERS), "a") == ("", "", "")
    short = [job("a", least=3, phase="Running"), pod("a-0", "a", "n", cpu=1), leaving("a-1", "a", "n"), pod("a-2", "a", cpu=9)]
    assert condition(outcome(cluster(node("n", cpu=2), short), *TIERS), "a")[0] == "Unschedulable"


def test_a_group_without_pods_is_told_nothing() -> None:
    assert condition(outcome(cluster(node("n", cpu=2), job("a", least=2)), *TIERS), "a") == ("", "", "")


def test_sub_groups_start_together() -> None:
    parts = [{"name": "s", "subGroupSize": 2, "minSubGroups": 1, "matchLabelKeys": ["part"]}]
    tasks = [pod(f"a-{part}-{number}", "a", labels={"part": str(part)}, cpu=1) for part in range(2) for number in range(2)]
    assert bound(outcome(cluster(node("n", cpu=3), job("a", least=2, subGroupPolicy=parts), tasks), *TIERS)) == ["a-0-0", "a-0-1"]
