"""gang: valid with enough pods, ready when the minimum stands, and never cut below it; what the PodGroup is told."""

from __future__ import annotations

import pytest
from scene import Thing, binds, opened, outcome

from pumice.scheduler.model import status
from pumice.testing import PodBuilder, PodGroupBuilder, cluster, node, pod, podgroup

TIERS = ("gang", "predicates")


def role(name: str, number: int) -> PodBuilder:
    return pod(f"a-{name}-{number}").gang("a").cpu(1).role(name)


VALID_ROWS: list[tuple[str, PodGroupBuilder, list[PodBuilder], str]] = [
    ("enough", podgroup("a", 2).admitted(), pod("a").gang("a").cpu(1).times(2), ""),
    (
        "too few",
        podgroup("a", 3).admitted(),
        pod("a").gang("a").cpu(1).times(2),
        "NotEnoughTasks: Not enough valid tasks for gang-scheduling, valid: 2, min: 3",
    ),
    (
        "failed ones do not count",
        podgroup("a", 2).admitted(),
        [*pod("a").gang("a").cpu(1).times(1), pod("a-f").gang("a").phase("Failed")],
        "NotEnoughTasks: Not enough valid tasks for gang-scheduling, valid: 1, min: 2",
    ),
    ("succeeded ones do", podgroup("a", 2).admitted(), [*pod("a").gang("a").cpu(1).times(1), pod("a-s").gang("a").phase("Succeeded")], ""),
    (
        "too few of a role",
        podgroup("a", 2).roles(m=1, w=1).admitted(),
        [role("w", 0), role("w", 1)],
        "NotEnoughPodsOfTask: Not enough valid pods of each task for gang-scheduling",
    ),
    ("a minimum below the roles' sum makes them void", podgroup("a", 1).roles(m=1, w=1).admitted(), [role("w", 0)], ""),
    (
        "too few sub-groups",
        podgroup("a", 1).parts("part", 1, 2).admitted(),
        [pod("a-0").gang("a").cpu(1).label("part", "0")],
        "NotEnoughPodsOfTask: Not enough valid subGroups of each task for gang-scheduling",
    ),
]


@pytest.mark.parametrize(("what", "group", "tasks", "refusal"), VALID_ROWS, ids=[row[0] for row in VALID_ROWS])
def test_who_may_start_at_all(what: str, group: PodGroupBuilder, tasks: list[PodBuilder], refusal: str) -> None:
    made = cluster(node("n").cpu(9), group, tasks)
    with opened(made, *TIERS) as session:
        found = session.job_valid(made.jobs["default/a"])
        assert (f"{found.reason}: {found.message}" if found else "") == refusal


TWO, THREE = (podgroup("a", least).admitted() for least in (2, 3))
ROLES, LOOSE = (podgroup("a", least).roles(m=1, w=1).admitted() for least in (2, 1))
PARTS = podgroup("a", 1).parts("part", 1, 2).admitted()
STATES = {"pending": status.PENDING, "placed": status.ALLOCATED, "waits": status.PIPELINED, "done": status.SUCCEEDED, "lost": status.FAILED}


@pytest.mark.parametrize(
    ("group", "states", "ready", "pipelined"),
    [
        (TWO, "m:placed w:placed", True, True),
        (TWO, "m:placed w:done", True, True),
        (TWO, "m:placed w:lost", False, False),
        (TWO, "m:placed w:waits", False, True),
        (TWO, "m:placed w:pending", False, False),
        (TWO, "m:placed w:free", True, True),
        (THREE, "m:placed w:waits w:free", False, True),
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
def test_when_a_gang_is_ready_and_when_it_may_wait_for_room(group: PodGroupBuilder, states: str, ready: bool, pipelined: bool) -> None:
    """Pods by role (and part of the job), each with its state; `free` are pending ones that ask for nothing."""
    wanted = [state.split(":") for state in states.split()]
    tasks = [role(name, n).label("part", name).cpu(0 if state == "free" else 1) for n, (name, state) in enumerate(wanted)]
    made = cluster(node("n").cpu(9), group, tasks)
    with opened(made, *TIERS) as session:
        for task, (_, state) in zip(list(made.tasks.values()), wanted, strict=True):
            if STATES.get(state, status.PENDING) != status.PENDING:
                made.move(task, STATES[state], 0 if state in ("placed", "waits") else -1)
        assert (session.job_ready(made.jobs["default/a"]), session.job_pipelined(made.jobs["default/a"])) == (ready, pipelined)


def test_all_or_none_start() -> None:
    things = [*podgroup("a", 3).admitted().pods(3, cpu=1), *podgroup("b", 2).admitted().created(9).pods(2, cpu=1)]
    assert sorted(binds(outcome(cluster(node("n").cpu(2), things), *TIERS))) == ["b-0", "b-1"]


def test_every_role_has_its_minimum_or_none_starts() -> None:
    nodes = [node("m").cpu(1).label("for", "m"), node("w").cpu(3).label("for", "w")]
    tasks = [role(r, number).selector("for", r) for r, number in (("m", 0), ("m", 1), ("w", 0), ("w", 1))]
    assert sorted(binds(outcome(cluster(nodes, podgroup("a", 3).roles(m=2, w=1).admitted(), tasks), *TIERS))) == []
    served = sorted(binds(outcome(cluster(nodes, podgroup("a", 3).roles(m=1, w=2).admitted(), tasks), *TIERS)))
    assert served == ["a-m-0", "a-w-0", "a-w-1"]


def test_best_effort_pods_count_as_ready_while_they_wait() -> None:
    things = [*podgroup("a", 3).admitted().pods(2, cpu=1), pod("a-free").gang("a")]
    assert sorted(binds(outcome(cluster(node("n").cpu(2), things), *TIERS))) == ["a-0", "a-1"]


def test_jobs_that_lack_places_are_served_before_those_that_could_grow() -> None:
    ready = [podgroup("a", 1).admitted(), pod("a-0").gang("a").on("n").cpu(1), pod("a-1").gang("a").cpu(1)]
    fresh = [*podgroup("b").admitted().created(9).pods(1, cpu=1)]
    assert sorted(binds(outcome(cluster(node("n").cpu(2), ready, fresh), *TIERS))) == ["b-0"]


@pytest.mark.parametrize(("least", "running", "gone"), [(1, 3, 2), (3, 3, 0), (0, 3, 3), (4, 3, 0)])
def test_a_gang_is_never_cut_below_its_minimum(least: int, running: int, gone: int) -> None:
    existing = [*pod("a").gang("a").on("n").cpu(1).times(running), pod("stray").on("n").cpu(1)]
    made = cluster(node("n").cpu(9), podgroup("a", least).admitted(), existing, podgroup("b").admitted(), pod("b").gang("b").cpu(1))
    with opened(made, "gang") as session:
        candidates = [task for task in made.tasks.values() if task.node >= 0]
        for hook in ("preemptable", "reclaimable"):
            permitted = session.evictable.permitted(hook, made.tasks["default/b"], candidates)
            assert [task.name for task in permitted] == [f"a-{n}" for n in range(gone)]
            assert session.evictable.spared_rows("preemptable", made.tasks["default/b"]) is (gone == 0)
        assert session.evictable.permitted("unified_evictable", None, candidates) == candidates


def test_a_job_starves_below_its_minimum_and_pending_best_effort_pods_do_not_feed_it() -> None:
    made = cluster(
        node("n").cpu(9),
        podgroup("a", 2).admitted(),
        pod("a-0").gang("a").on("n").cpu(1),
        pod("a-free").gang("a"),
        podgroup("b").admitted(),
        pod("b").gang("b").on("n").cpu(1),
    )
    with opened(made, "gang") as session:
        assert session.job_starving(made.jobs["default/a"])
        assert not session.job_starving(made.jobs["default/b"])


def condition(result: Thing, name: str) -> tuple[str, str, str]:
    found = result["podGroups"][f"default/{name}"]["conditions"]
    return (found[0]["type"], found[0]["reason"], found[0]["message"]) if found else ("", "", "")


def test_a_gang_that_cannot_start_is_told_how_many_are_missing_and_why() -> None:
    kind, reason, message = condition(outcome(cluster(node("n").cpu(2), podgroup("a", 3).admitted().pods(3, cpu=1)), *TIERS), "a")
    assert (kind, reason) == ("Unschedulable", "NotEnoughResources")
    assert message == (
        "1/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Unschedulable, 2 Schedulable. "
        "Origin reason is a-2: 0/1 nodes are unavailable: 1 Insufficient cpu."
    )


def test_the_reason_names_the_oldest_pod_that_was_refused_in_whatever_order_pods_came() -> None:
    big = [pod(name).gang("a").cpu(9).created(f"2026-01-01T10:00:0{age}Z") for age, name in enumerate(("c", "b"))]
    said = {condition(outcome(cluster(node("n").cpu(2), podgroup("a").admitted(), made), *TIERS), "a") for made in (big, big[::-1])}
    assert [message.rpartition(". Origin")[2][:12] for _, _, message in said] == [" reason is c"]


def test_pods_that_no_node_takes_are_those_that_are_missing() -> None:
    tasks = [*pod("a").gang("a").cpu(1).times(2), pod("a-big-0").gang("a").cpu(9), pod("a-big-1").gang("a").cpu(9)]
    _, _, message = condition(outcome(cluster(node("n").cpu(2), podgroup("a", 3).admitted(), tasks), *TIERS), "a")
    assert message.startswith("1/4 tasks in gang unschedulable: pod group is not ready, 3 minAvailable, 4 Pending; Pending: ")


def test_a_gang_that_stands_is_told_so() -> None:
    kind, reason, _ = condition(outcome(cluster(node("n").cpu(2), podgroup("a", 2).admitted().pods(2, cpu=1)), *TIERS), "a")
    assert (kind, reason) == ("Scheduled", "tasks in gang are ready to be scheduled")


def test_a_gang_that_merely_shrinks_is_not_called_unschedulable() -> None:
    shrinking = [podgroup("a", 2).phase("Running"), pod("a-0").gang("a").on("n").cpu(1), pod("a-1").gang("a").on("n").cpu(1).leaving()]
    assert condition(outcome(cluster(node("n").cpu(2), shrinking), *TIERS), "a") == ("", "", "")
    shrunk = [podgroup("a", 3).phase("Running"), pod("a-0").gang("a").on("n").cpu(1), pod("a-1").gang("a").on("n").cpu(1).leaving()]
    assert condition(outcome(cluster(node("n").cpu(2), shrunk), *TIERS), "a")[0] == "Unschedulable"
    ended = pod("a-2").gang("a").phase("Failed")
    assert condition(outcome(cluster(node("n").cpu(2), shrunk, ended), *TIERS), "a") == ("", "", "")
    short = [
        podgroup("a", 3).phase("Running"),
        pod("a-0").gang("a").on("n").cpu(1),
        pod("a-1").gang("a").on("n").cpu(1).leaving(),
        pod("a-2").gang("a").cpu(9),
    ]
    assert condition(outcome(cluster(node("n").cpu(2), short), *TIERS), "a")[0] == "Unschedulable"


def test_a_group_without_pods_is_told_nothing() -> None:
    assert condition(outcome(cluster(node("n").cpu(2), podgroup("a", 2).admitted()), *TIERS), "a") == ("", "", "")


def test_sub_groups_start_together() -> None:
    tasks = [pod(f"a-{part}-{number}").gang("a").cpu(1).label("part", str(part)) for part in range(2) for number in range(2)]
    assert sorted(binds(outcome(cluster(node("n").cpu(3), podgroup("a", 2).parts("part", 2, 1).admitted(), tasks), *TIERS))) == [
        "a-0-0",
        "a-0-1",
    ]
