"""A running pod that is to grow, and whose kubelet has put that off, takes the room of less important pods of its node."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.world import NOWHERE
from pumice.scheduler.kube.scheduling_queue import SchedulingQueue
from pumice.testing.builders import PodBuilder
from tests.kube_scheduler.native import Outcome, cluster, group, play, policy
from tests.kube_scheduler.stage import NOW, existing, machine, waiting

GATE = {"InPlacePodVerticalScalingSchedulerPreemption": True}


def growing(cpu: int, priority: int = 9, reason: str = "Deferred") -> PodBuilder:
    pending = {"type": "PodResizePending", "status": "True", "reason": reason}
    return existing("big", "n1", cpu, priority).having("status", "conditions", value=[pending])


def evicted(*objects: Any, gates: dict[str, bool] = GATE) -> Outcome:
    return play(*objects, gates=gates)


def test_the_least_important_pod_goes() -> None:
    pods = [existing("low", "n1", 1, 1), existing("lower", "n1", 1, 0), existing("other", "n2", 1, 0)]
    outcome = evicted(machine("n1", cpu=4), machine("n2", cpu=4), *pods, growing(3))
    assert outcome.evictions == ["lower"] and not outcome.nominations and not outcome.told and not outcome.binds


def test_a_member_of_a_group_comes_as_a_single_pod() -> None:
    member = growing(3).having("spec", "schedulingGroup", value={"podGroupName": "g"})
    outcome = evicted(machine("n1", cpu=4), group("g", 3, priority=9), existing("low", "n1", 2), member)
    assert outcome.evictions == ["low"] and not outcome.groups


@pytest.mark.parametrize(
    ("objects", "gates"),
    [
        ([machine("n1", cpu=4), existing("low", "n1", 2), growing(3)], {}),
        ([machine("n1", cpu=4), existing("low", "n1", 2), growing(3, reason="Infeasible")], GATE),
        ([machine("n1", cpu=4), existing("low", "n1", 1), growing(3)], GATE),
        ([machine("n1", cpu=4), existing("low", "n1", 2), growing(5)], GATE),
        ([machine("n1", cpu=4), existing("equal", "n1", 2, 9), growing(3)], GATE),
        ([machine("n1", cpu=4), existing("low", "n1", 2), growing(3).having("spec", "preemptionPolicy", value="Never")], GATE),
        (
            [
                machine("n1", cpu=4).having("spec", "podPreemptionPolicy", value={"disableResizePreemption": ["x"]}),
                existing("low", "n1", 2),
                growing(3),
            ],
            GATE,
        ),
        ([machine("n1", cpu=4), existing("low", "n1", 2), growing(3).scheduler("another")], GATE),
    ],
    ids=[
        "without the gate",
        "not deferred",
        "it fits",
        "too large",
        "nobody is less important",
        "it never preempts",
        "the node forbids it",
        "another scheduler",
    ],
)
def test_nobody_goes(objects: list[Any], gates: dict[str, bool]) -> None:
    assert evicted(*objects, gates=gates).evictions == []


def test_it_waits_in_the_queue_and_has_its_turn_by_priority() -> None:
    """A plain pod of less priority comes after it; both wait afterwards."""
    chosen = policy(GATE)
    made = cluster(chosen, machine("n1", cpu=4), existing("low", "n1", 2), growing(3), waiting("p", 4, 5))
    queue = SchedulingQueue(made)
    decided = cycle(made, chosen, NOW, NOWHERE, queue)
    assert [eviction.task.name for eviction in decided.evictions] == ["low"]
    assert {name: queue.place_of(made.tasks[f"default/{name}"]) for name in ("big", "p")} == dict.fromkeys(("big", "p"), "unschedulable")
    assert not cycle(made, chosen, NOW + 1, NOWHERE, queue).evictions
