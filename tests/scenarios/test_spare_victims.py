"""The argument spareVictims of preempt and reclaim: nobody goes in vain, and of nodes that would do the one is cleared that costs least."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.scheduler.actions.preempt import Preempt, PreemptArgs
from pumice.scheduler.actions.reclaim import Reclaim, ReclaimArgs
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.policy import Policy
from pumice.testing import cluster, node, pod, podgroup, priority_class, queue
from pumice.testing.scene import NOW, policy

PLUGINS = ("priority", "gang", "conformance", "predicates", "nodeorder")
CLASSES = [priority_class("high", 1000), priority_class("low", 10)]
Outcome = tuple[list[str], dict[str, str]]


def decide(action: Any, *objects: Any) -> Outcome:
    """Who goes, and who waits where."""
    made = cluster(*CLASSES, *objects)
    decided = cycle(made, Policy((action,), policy("preempt", PLUGINS).tiers), NOW)
    made.check()
    return [each.task.name for each in decided.evictions], {each.task.name: each.node for each in decided.pipelined}


def preempt(*objects: Any, **args: Any) -> Outcome:
    low, high = podgroup("low", 0).priority_class("low").phase("Running"), podgroup("high").priority_class("high").phase("Inqueue")
    return decide(Preempt(PreemptArgs(**{"spare": True, **args})), low, high, *objects)


def reclaim(*objects: Any, **args: Any) -> Outcome:
    theirs = queue("theirs"), podgroup("low", 0).queue("theirs").phase("Running")
    mine = queue("mine"), podgroup("high").queue("mine").phase("Inqueue")
    return decide(Reclaim(ReclaimArgs(**{"spare": True, **args})), *theirs, *mine, *objects)


WAYS = pytest.mark.parametrize("act", [preempt, reclaim])


def held(where: str, *pods: tuple[int, int]) -> list[Any]:
    """A node that pods of so many cpus and of such priority fill."""
    running = [pod(f"{where}{number}").cpu(cpu).priority(rank).gang("low").on(where) for number, (cpu, rank) in enumerate(pods)]
    return [node(where).cpu(sum(cpu for cpu, _ in pods)), *running]


def wanted(*cpus: int) -> list[Any]:
    return [pod(f"p-{number}").cpu(cpu).gang("high") for number, cpu in enumerate(cpus)]


def both(act: Any) -> Any:
    """The gang that waits, if it needs both of its pods."""
    return podgroup("high", 2).priority_class("high").queue("mine" if act is reclaim else "default").phase("Inqueue")


@WAYS
def test_a_small_pod_stays_where_a_large_one_makes_room_enough(act: Any) -> None:
    objects = [*held("a", (1, 1), (3, 2)), *wanted(3)]
    assert act(*objects, spare=False)[0] == ["a0", "a1"]
    assert act(*objects) == (["a1"], {"p-0": "a"})


@WAYS
def test_of_the_nodes_compared_that_one_is_cleared_whose_victims_cost_least(act: Any) -> None:
    objects = [*held("a", (2, 5)), *held("b", (2, 1)), *wanted(2)]
    assert act(*objects, spare=False)[0] == ["a0"]
    assert act(*objects, candidates_percent=100)[0] == ["b0"]
    assert act(*objects)[0] == ["a0"], "one of so few nodes is enough"


@WAYS
def test_a_node_that_needs_nobody_gone_is_taken_at_once(act: Any) -> None:
    where, first, second = held("b", (2, 1), (1, 1))
    objects = [*held("a", (2, 5)), where, first.leaving(), second, *wanted(2)]
    assert act(*objects, candidates_percent=100) == ([], {"p-0": "b"})


@WAYS
def test_where_nothing_helps_nobody_goes(act: Any) -> None:
    assert act(*held("a", (2, 1)), *wanted(3)) == ([], {})


@WAYS
def test_who_made_room_for_one_task_stays_if_another_task_got_more_than_it_needs(act: Any) -> None:
    """The first takes the place of the little one; then the great one goes for the second, which leaves room for the little one."""
    objects = [*held("a", (1, 1), (4, 2)), both(act), *wanted(1, 2)]
    assert act(*objects, spare=False)[0] == ["a0", "a1"]
    assert act(*objects) == (["a1"], {"p-0": "a", "p-1": "a"})


@WAYS
def test_who_is_in_the_way_of_a_port_goes_though_there_is_room(act: Any) -> None:
    port = ("spec", "containers", 0, "ports")
    asked = [{"containerPort": 1, "hostPort": 80}]
    first, *rest = held("a", (1, 1), (4, 2))
    blocking = [rest[0].having(*port, value=asked), rest[1]]
    waiting, other = wanted(1, 2)
    assert act(first, *blocking, both(act), waiting.having(*port, value=asked), other)[0] == ["a0", "a1"]
