"""Which gangs count as cut short while they were placed, and when these give back what they have."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.scheduler.model.half_placed_gangs import cut_short_at
from pumice.testing.builders import PodBuilder, node, pod, podgroup
from pumice.testing.scene import NOW, cluster, schedule

CREATED, PLACED, LATER = "2025-12-31T23:00:00Z", "2025-12-31T23:50:00Z", "2025-12-31T23:55:00Z"
OWNER = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "g", "uid": "u", "controller": True}


def waits(name: str, created: str = CREATED) -> PodBuilder:
    return pod(name).cpu(1).gang("g").created(created)


def stands(name: str, at: str | None = PLACED) -> PodBuilder:
    made = waits(name).on("a")
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at}
    return made.having("status", "conditions", value=[condition]) if at else made


CUT_SHORT: dict[str, tuple[int, list[PodBuilder]]] = {
    "half placed": (3, [stands("x"), stands("y"), waits("z")]),
    "of more than it needs": (2, [stands("x"), waits("y"), waits("z")]),
}
OTHERS: dict[str, tuple[int, list[PodBuilder]]] = {
    "not placed": (2, [waits("x"), waits("y")]),
    "whole": (2, [stands("x"), stands("y"), waits("z")]),
    "all but what backfill places": (2, [stands("x"), pod("y").gang("g").created(CREATED), waits("z")]),
    "without enough pods": (3, [stands("x"), waits("y")]),
    "a pod came after the others had nodes": (2, [stands("x"), waits("y", LATER)]),
    "some have ended": (3, [stands("x"), stands("y").having("status", "phase", value="Succeeded"), waits("z"), waits("w")]),
    "it is not known since when": (3, [stands("x"), stands("y", None), waits("z")]),
}


@pytest.mark.parametrize("case", CUT_SHORT)
def test_a_gang_is_cut_short_if_its_pods_wait_since_before_the_others_had_nodes(case: str) -> None:
    least, pods = CUT_SHORT[case]
    job = cluster(node("a").cpu(9), podgroup("g", least), *pods).jobs["default/g"]
    assert cut_short_at(job) == NOW - 600


@pytest.mark.parametrize("case", OTHERS)
def test_any_other_gang_is_not(case: str) -> None:
    least, pods = OTHERS[case]
    job = cluster(node("a").cpu(9), podgroup("g", least), *pods).jobs["default/g"]
    assert cut_short_at(job) is None


@pytest.mark.parametrize(("scheduled", "since"), [(LATER, None), (PLACED, NOW - 600), ("2025-12-31T23:50:05Z", NOW - 600)])
def test_a_gang_that_was_whole_after_its_last_bind_has_lost_pods(scheduled: str, since: float | None) -> None:
    conditions = [{"type": "Scheduled", "status": "True", "lastTransitionTime": scheduled}]
    group = podgroup("g", 2).having("status", "conditions", value=conditions)
    assert cut_short_at(cluster(node("a").cpu(9), group, stands("x"), waits("z")).jobs["default/g"]) == since


@pytest.mark.parametrize(
    ("owner", "room", "now", "given_back"),
    [
        (OWNER, 2, NOW, True),
        (OWNER, 2, NOW - 541, False),  # less than a minute ago
        (OWNER, 3, NOW, False),  # it is finished
        (OWNER | {"kind": "Pod"}, 2, NOW, False),
        (None, 2, NOW, False),
    ],
)
def test_it_gives_its_places_back_after_a_minute_without_room(owner: Any, room: int, now: float, given_back: bool) -> None:
    group = podgroup("g", 3).having("metadata", "ownerReferences", value=[owner] if owner else [])
    made = cluster(node("a").cpu(room), group, stands("x"), stands("y"), waits("z"))
    outcome = schedule(made, "enqueue, allocate", "gang", "predicates", now=now)
    made.check()
    assert outcome.evictions == (["default/x", "default/y"] if given_back else [])
    assert outcome.binds == ({"default/z": "a"} if room == 3 else {})


def test_it_waits_for_room_that_is_being_released() -> None:
    group = podgroup("g", 3).having("metadata", "ownerReferences", value=[OWNER])
    leaving = pod("old").cpu(1).on("a").leaving()
    made = cluster(node("a").cpu(3), group, stands("x"), stands("y"), waits("z"), leaving)
    outcome = schedule(made, "enqueue, allocate", "gang", "predicates")
    assert (outcome.evictions, outcome.pipelined) == ([], {"default/z": "a"})


@pytest.mark.parametrize("action", ["allocate", "in-order"])
@pytest.mark.parametrize(
    ("pods", "binds"), [([stands("x"), stands("y"), waits("z")], {"default/z": "a"}), ([waits("x"), waits("y"), waits("z")], {})]
)
def test_what_was_cut_short_is_finished_even_if_the_queue_lets_nobody_in(
    action: str, pods: list[PodBuilder], binds: dict[str, str]
) -> None:
    made = cluster(node("a").cpu(9), podgroup("g", 3).needs(cpu=20), *pods)
    assert schedule(made, f"enqueue, {action}", "gang", "overcommit", "predicates").binds == binds
