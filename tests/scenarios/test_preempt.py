"""Whom preempt evicts, for whom, and on which node, where a plugin, a rule or a gang says no."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.scheduler.actions.preempt import Preempt, PreemptArgs
from pumice.scheduler.engine.view import Scores, View
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.task import Task
from pumice.testing import PodBuilder, cluster, node, pod, podgroup, queue
from pumice.testing.scene import NOW, policy, schedule
from tests.scenarios.naysayers import CLASSES, PLUGINS, Change, Held, lost_claim, port, same


def contested(change: Change = same, keeper: Change = same) -> Cluster:
    """An urgent pod of 2 cpu; on the only node, one that keeps 2 cpu and one of little importance that holds the other 2."""
    keeping = keeper(pod("keeper").cpu(2).gang("stays").preemptable(False).on("a"))
    return cluster(
        *CLASSES,
        node("a").cpu(4),
        podgroup("stays").priority_class("high").phase("Running"),
        podgroup("low", 0).priority_class("low").phase("Running"),
        podgroup("high").priority_class("high").phase("Inqueue"),
        keeping,
        pod("old").cpu(2).gang("low").on("a"),
        change(pod("p").cpu(2).gang("high")),
    )


def preempted(made: Cluster, *plugins: Any, topology_aware: bool = False) -> list[str]:
    chosen = policy("preempt", (*PLUGINS, *plugins))
    decided = cycle(made, Policy((Preempt(PreemptArgs(topology_aware=topology_aware)),), chosen.tiers), NOW)
    made.check()
    return [eviction.task.name for eviction in decided.evictions]


WAYS = pytest.mark.parametrize("topology_aware", [False, True], ids=["plain", "topology-aware"])


@WAYS
def test_nobody_is_evicted_for_a_pod_that_could_not_be_placed_all_the_same(topology_aware: bool) -> None:
    assert preempted(contested(), topology_aware=topology_aware) == ["old"]
    assert preempted(contested(), Held, topology_aware=topology_aware) == []
    assert preempted(contested(lost_claim), topology_aware=topology_aware) == []
    assert preempted(contested(port), topology_aware=topology_aware) == ["old"]
    assert preempted(contested(port, port), topology_aware=topology_aware) == []


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_the_reason_has_what_the_queue_holds_not_what_it_would_hold_after_evictions_that_were_tried(action: str) -> None:
    low = podgroup("low", 0).queue("q").priority_class("low").phase("Running"), *pod("old").cpu(2).gang("low").on("a").times(2)
    high = podgroup("high").queue("q").priority_class("high").admitted(), pod("p").cpu(3).gang("high")
    made = cluster(*CLASSES, node("a").cpu(4), queue("q").capability(cpu=2), *low, *high)
    result = schedule(made, f"allocate, {action}", *PLUGINS, "proportion")
    assert result.evictions == []
    assert result.waiting["default/p"].endswith("queue q holds 4 of the 2 cpu it deserves, 3 more is asked for")


@WAYS
def test_a_node_whose_pods_are_all_needed_by_their_gang_is_passed_over(topology_aware: bool) -> None:
    def world(*elastic: str) -> Cluster:
        gangs = (podgroup("gang", 2).priority_class("low").phase("Running"), podgroup("loose", 0).priority_class("low").phase("Running"))
        bound = [one.on("a") for one in pod("gang").cpu(1).gang("gang").times(2)]
        free = [pod(f"loose-{name}").cpu(2).gang("loose").on(name) for name in elastic]
        urgent = podgroup("high").priority_class("high").phase("Inqueue"), pod("p").cpu(2).gang("high")
        return cluster(*CLASSES, *(node(name).cpu(2) for name in ("a", *elastic)), *gangs, *bound, *free, *urgent)

    assert preempted(world(), topology_aware=topology_aware) == []
    assert preempted(world("b", "c"), topology_aware=topology_aware) == ["loose-b"]


PREEMPTED = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]


def disrupted(made: PodBuilder) -> PodBuilder:
    return made.having("status", "conditions", value=PREEMPTED)


@WAYS
@pytest.mark.parametrize(
    ("going", "gone"),
    [
        (lambda made: disrupted(made.leaving()), []),
        (lambda made: made.leaving(), ["old"]),  # of its own accord
        (disrupted, ["going", "old"]),  # not leaving after all
        (lambda made: disrupted(made.leaving().priority(99)), ["old"]),  # for somebody else
    ],
)
def test_while_those_evicted_for_a_pod_leave_its_node_it_evicts_nobody_else(going: Change, gone: list[str], topology_aware: bool) -> None:
    made = cluster(
        *CLASSES,
        node("a").cpu(3),
        podgroup("low", 0).priority_class("low").phase("Running"),
        podgroup("high").priority_class("high").phase("Inqueue"),
        going(pod("going").cpu(1).gang("low").on("a")),
        pod("old").cpu(2).gang("low").on("a"),
        pod("p").cpu(3).priority(50).gang("high").having("status", "nominatedNodeName", value="a"),
    )
    assert sorted(preempted(made, topology_aware=topology_aware)) == gone


def test_a_pod_that_is_promised_a_node_that_no_eviction_would_open_may_preempt_elsewhere() -> None:
    made = cluster(
        *CLASSES,
        node("a").cpu(3).cordoned(),
        node("b").cpu(3),
        podgroup("low", 0).priority_class("low").phase("Running"),
        podgroup("high").priority_class("high").phase("Inqueue"),
        disrupted(pod("going").cpu(1).gang("low").on("a").leaving()),
        pod("old").cpu(2).gang("low").on("b"),
        pod("p").cpu(3).priority(50).gang("high").having("status", "nominatedNodeName", value="a"),
    )
    assert preempted(made) == ["old"]


CHOICES = {
    "the lowest highest priority": ([("a", [(2, 9)]), ("b", [(1, 5), (1, 8)])], ["b0", "b1"]),
    "the lowest sum": ([("a", [(1, 5), (1, 5)]), ("b", [(1, 5), (1, 4)])], ["b0", "b1"]),
    "the fewest, though they weigh more": ([("a", [(1, -9), (1, -9)]), ("b", [(2, -9)])], ["b0"]),
    "the first of equals": ([("a", [(2, 5)]), ("b", [(2, 5)])], ["a0"]),
}


@pytest.mark.parametrize("rule", CHOICES)
def test_of_the_nodes_compared_that_one_is_taken_whose_victims_are(rule: str) -> None:
    nodes, gone = CHOICES[rule]
    existing = [pod(f"{n}{i}").cpu(cpu).priority(p).gang("low").on(n) for n, pods in nodes for i, (cpu, p) in enumerate(pods)]
    made = cluster(
        *CLASSES,
        *(node(name).cpu(2) for name, _ in nodes),
        podgroup("low", 0).priority_class("low").phase("Running"),
        podgroup("high").priority_class("high").phase("Inqueue"),
        *existing,
        pod("p").cpu(2).gang("high"),
    )
    chosen = Policy((Preempt(PreemptArgs(topology_aware=True, candidates_percent=100)),), policy("preempt", PLUGINS).tiers)
    assert sorted(eviction.task.name for eviction in cycle(made, chosen, NOW).evictions) == gone


@pytest.mark.parametrize(("a", "b", "gone"), [("08", "09", "on-b"), ("09", "08", "on-a"), ("09", "", "on-b")])
def test_of_equal_victims_those_go_that_started_last_and_who_has_no_start_started_now(a: str, b: str, gone: str) -> None:
    existing = [pod(f"on-{name}").cpu(2).gang("low").on(name) for name in "ab"]
    starts = zip(existing, (a, b), strict=True)
    started = [one.having("status", "startTime", value=f"2025-12-31T{hour}:00:00Z") if hour else one for one, hour in starts]
    made = cluster(
        *CLASSES,
        node("a").cpu(2),
        node("b").cpu(2),
        podgroup("low", 0).priority_class("low").phase("Running"),
        podgroup("high").priority_class("high").phase("Inqueue"),
        *started,
        pod("p").cpu(2).gang("high"),
    )
    chosen = Policy((Preempt(PreemptArgs(topology_aware=True, candidates_percent=100)),), policy("preempt", PLUGINS).tiers)
    assert [eviction.task.name for eviction in cycle(made, chosen, NOW).evictions] == [gone]


def test_a_pod_whose_place_was_undone_with_its_gang_is_told_where_room_could_be_made() -> None:
    made = cluster(
        *CLASSES,
        node("a").cpu(2),
        podgroup("low", 0).priority_class("low").phase("Running"),
        podgroup("high", 2).priority_class("high").phase("Inqueue"),
        pod("old").cpu(2).gang("low").on("a"),
        *pod("p").cpu(2).gang("high").times(2),
    )
    decided = cycle(made, policy("preempt", PLUGINS), NOW)
    assert decided.evictions == []
    assert {task.name: where for task, where in decided.nominations.items()} == {}
    told = {waiting.task.name: waiting.message for waiting in decided.waiting}
    assert told["p-0"] == "Pod default/p-0 can possibly be assigned to a, once resource is released and minAvailable is satisfied"


def test_a_pod_that_waits_for_evictions_is_told_so_although_allocate_had_found_it_idle_room() -> None:
    made = cluster(
        *CLASSES,
        node("a").cpu(4),
        podgroup("low", 0).priority_class("low").phase("Running"),
        podgroup("high", 2).priority_class("high").phase("Inqueue"),
        pod("old").cpu(2).gang("low").on("a"),
        *pod("p").cpu(2).gang("high").times(2),
    )
    decided = cycle(made, policy("allocate, preempt", PLUGINS), NOW)
    assert [eviction.task.name for eviction in decided.evictions] == ["old"]
    told = {waiting.task.name: (waiting.reason, waiting.message) for waiting in decided.waiting}
    waits = "Unschedulable", "Pod default/p-0 can possibly be assigned to a, once resource is released and minAvailable is satisfied"
    assert told["p-0"] == waits


@WAYS
@pytest.mark.parametrize("more", [1, 2])
def test_within_a_job_each_task_that_matters_more_takes_the_place_of_one_that_matters_less(more: int, topology_aware: bool) -> None:
    existing = [one.priority(1).on("a") for one in pod("old").cpu(1).gang("g").times(2)]
    pods = pod("new").cpu(1).priority(9).gang("g").times(more)
    made = cluster(node("a").cpu(2), podgroup("g").phase("Running"), *existing, *pods)
    chosen = policy("preempt", ("priority", "predicates"))
    decided = cycle(made, Policy((Preempt(PreemptArgs(topology_aware=topology_aware)),), chosen.tiers), NOW)
    made.check()
    assert sorted(eviction.task.name for eviction in decided.evictions) == ["old-0", "old-1"][-more:]
    assert sorted(place.task.name for place in decided.pipelined) == ["new-0", "new-1"][:more]


class LikesB(Plugin):
    """50 points for node b."""

    name = "likes-b"

    def score(self, task: Task, nodes: View) -> Scores:
        return np.array([50.0 * (name == "b") for name in nodes.names])


def liked(weight: int, zone: str) -> dict[str, Any]:
    return {"weight": weight, "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}}


@pytest.mark.parametrize(("best", "gone"), [(True, "on-b"), (False, "on-a")])
def test_nodes_where_nobody_can_go_count_in_the_scale_of_the_scores_as_long_as_the_filters_take_them(best: bool, gone: str) -> None:
    """Affinity speaks in hundredths of the best node: beside c, a is little better than b for it; without c by 100 of 200 points."""
    preferred = [liked(10, "a"), liked(5, "b"), liked(100, "c")]
    path = ("spec", "affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution")
    nodes = [node(name).cpu(2).label("zone", name) for name in "abc"]
    made = cluster(
        *CLASSES,
        *(nodes if best else [*nodes[:2], nodes[2].taint("closed")]),
        podgroup("low", 0).priority_class("low").phase("Running"),
        *(pod(f"on-{name}").cpu(2).gang("low").on(name) for name in "ab"),
        pod("on-c").cpu(2).gang("low").preemptable(False).on("c"),
        podgroup("high").priority_class("high").phase("Inqueue"),
        pod("p").cpu(2).gang("high").having(*path, value=preferred),
    )
    assert preempted(made, "nodeorder", LikesB) == [gone]
