"""gangpreempt and gangreclaim: room for a whole gang or nothing, from whole gangs if need be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pumice.inputs.cluster_from_files import advance
from pumice.scheduler.engine.rules import Filter, Reason, Rejected
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.hook_answers import Refusal
from pumice.scheduler.framework.network_topology import Purpose
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import PluginOption, Policy
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.hypernodes import HyperNode
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.queue import Queue
from pumice.scheduler.model.task import Task
from pumice.scheduler.registry import ACTIONS, PLUGINS as CATALOGUE
from pumice.testing import cluster, hypernode, node, pod, podgroup, priority_class, queue
from pumice.testing.scene import NOW
from tests.topology.racks import PLUGINS, assert_same, gang, part, racks, running, state

CLASSES = [priority_class("high", 1000), priority_class("mid", 100), priority_class("low", 10)]


def decide(made: Cluster, actions: str, plugins: Sequence[Any] = PLUGINS, **args: Any) -> Any:
    chosen = [ACTIONS[name](ACTIONS[name].Args(**args) if name.startswith("gang") else None) for name in actions.split(", ")]
    choices = tuple(PluginOption(CATALOGUE[plugin]) if isinstance(plugin, str) else PluginOption(plugin) for plugin in plugins)
    return cycle(made, Policy(tuple(chosen), (choices,)), NOW)


def preempt(*objects: Any, **args: Any) -> tuple[list[str], dict[str, str]]:
    """Who is evicted, and who waits where."""
    return result(decide(cluster(*CLASSES, *objects), "enqueue, allocate, gangpreempt", **args))


def result(decisions: Any) -> tuple[list[str], dict[str, str]]:
    assert decisions.binds == []
    return sorted(e.task.name for e in decisions.evictions), {place.task.name: place.node for place in decisions.pipelined}


def low(name: str, *nodes: str, least: int = 1, rank: str = "low", cpu: int = 1) -> list[Any]:
    return [podgroup(name, least).priority_class(rank).phase("Running"), *running(name, *nodes, cpu=cpu)]


def high(count: int, least: int = -1, cpu: int = 1) -> list[Any]:
    return [podgroup("high", count if least < 0 else least).priority_class("high").phase("Inqueue"), *gang("high", count, cpu)]


def test_a_whole_gang_goes_rather_than_a_part_of_two() -> None:
    gone, waiting = preempt(node("n").cpu(4), *low("a", "n", "n", least=2), *low("b", "n", "n", least=2), *high(2))
    assert gone == ["a-0", "a-1"]
    assert waiting == {"high-0": "n", "high-1": "n"}


@pytest.mark.parametrize(("free", "gone", "bound"), [(0, 2, 0), (1, 2, 0), (2, 0, 2)])
def test_before_allocate_nobody_goes_for_a_gang_that_finds_room(free: int, gone: int, bound: int) -> None:
    made = cluster(*CLASSES, node("n").cpu(2), node("m").cpu(free), *low("a", "n", "n", least=2), *high(2))
    decisions = decide(made, "enqueue, gangpreempt, allocate")
    assert (len(decisions.evictions), len(decisions.binds), len(decisions.pipelined)) == (gone, bound, 2 - bound)


def test_whole_gangs_are_spared_if_that_is_configured() -> None:
    objects = [node("n").cpu(4), *low("a", "n", "n", least=2), *low("b", "n", "n", least=2), *high(2)]
    assert preempt(*objects, whole=False) == ([], {})
    assert preempt(*objects[:1], *low("a", "n", "n", least=2), *low("b", "n", "n", least=0), *high(2), whole=False)[0] == ["b-0", "b-1"]


def test_the_least_important_gang_goes_first_and_none_of_equal_importance() -> None:
    gone, _ = preempt(node("n").cpu(4), *low("a", "n", "n", least=2, rank="mid"), *low("b", "n", "n", least=2), *high(2))
    assert gone == ["b-0", "b-1"]
    assert preempt(node("n").cpu(2), *low("a", "n", "n", rank="high"), *high(1)) == ([], {})


def test_nobody_is_evicted_if_the_gang_does_not_fit_as_a_whole() -> None:
    made = cluster(*CLASSES, *racks(1, 1), *low("a", "n1", "n2", least=0, cpu=2), *high(3, cpu=2))
    before = state(made)
    assert result(decide(made, "enqueue, allocate, gangpreempt")) == ([], {})
    made.check()
    assert_same(before, state(made))


def test_room_that_is_enough_in_sum_but_on_no_node_evicts_others_or_nobody() -> None:
    """One pod from each node sums up to what is needed; the gang needs both of one node, and that of the other stays."""
    nodes = [node("n1").cpu(2), node("n2").cpu(2)]
    victims = [*low("a", "n1", least=0), *low("b", "n2", least=0), *low("c", "n1", least=0)]
    gone, waiting = preempt(*nodes, *victims, *low("keep", "n2", rank="high"), *high(1, cpu=2))
    assert (gone, waiting) == (["a-0", "c-0"], {"high-0": "n1"})
    assert preempt(*nodes, *victims, *low("keep", "n2", rank="high"), *high(1, cpu=2), spare=False)[0] == ["a-0", "b-0", "c-0"]
    made = cluster(*CLASSES, *nodes, *victims[:4], *low("k", "n1", "n2", rank="high"), *high(1, cpu=2))
    assert result(decide(made, "enqueue, allocate, gangpreempt")) == ([], {})
    made.check()


def test_the_pods_of_a_gang_need_not_be_alike() -> None:
    group = podgroup("high", 2).priority_class("high").phase("Inqueue")
    pods = pod("high-0").cpu(2).gang("high"), pod("high-1").cpu(1).gang("high")
    gone, waiting = preempt(node("n1").cpu(1), node("n2").cpu(2), *low("a", "n1", "n2", least=0), group, *pods)
    assert (gone, waiting) == (["a-0", "a-1"], {"high-0": "n2", "high-1": "n1"})


def test_pods_that_leave_anyway_make_room_and_are_not_evicted_again() -> None:
    leaving = [podgroup("o", 0).priority_class("low").phase("Running"), *(one.leaving() for one in running("o", "n", "n"))]
    gone, waiting = preempt(node("n").cpu(4), *leaving, *low("a", "n", "n", least=0), *high(4))
    assert gone == ["a-0", "a-1"]
    assert len(waiting) == 4


def test_pods_that_cannot_be_helped_are_left_out() -> None:
    group = podgroup("high", 1).priority_class("high").phase("Inqueue")
    never = pod("high-0").cpu(1).gang("high").having("spec", "preemptionPolicy", value="Never")
    assert preempt(node("n").cpu(1), *low("a", "n", least=0), group, never) == ([], {})
    picky = pod("high-0").cpu(1).gang("high").selector("zone", "east")
    assert preempt(node("n").cpu(1), *low("a", "n", least=0), group, picky) == ([], {})


def test_protected_pods_and_jobs_stay() -> None:
    guarded = podgroup("a", 0).priority_class("low").phase("Running").annotation("volcano.sh/preemptable", "false")
    assert preempt(node("n").cpu(1), guarded, *running("a", "n"), *high(1)) == ([], {})
    pods = [one.preemptable(False) for one in running("b", "n")]
    assert preempt(node("n").cpu(1), podgroup("b", 0).phase("Running"), *pods, *high(1)) == ([], {})
    assert preempt(node("n").cpu(1), pod("stray").cpu(1).on("n"), *high(1)) == ([], {})


def test_jobs_that_wait_to_be_admitted_do_not_evict() -> None:
    waits = [podgroup("high", 1).priority_class("high"), *gang("high", 1)]
    made = cluster(*CLASSES, node("n").cpu(1), *low("a", "n", least=0), *waits)
    assert result(decide(made, "enqueue, gangpreempt"))[0] == ["a-0"]  # enqueue lets it in
    made = cluster(*CLASSES, node("n").cpu(1), *low("a", "n", least=0), *waits)
    assert result(decide(made, "gangpreempt")) == ([], {})


def test_a_gang_that_runs_asks_only_for_its_first_part() -> None:
    """With priority alone a job starves until all its pods run; each part is then helped by itself."""
    group = podgroup("high", 1).parts("part", 1).priority_class("high").phase("Running")
    pods = [*(p.on("n1") for p in part("high", "0", 1)), *part("high", "0", 1, first=1), *part("high", "1", 2)]
    made = cluster(*CLASSES, node("n1").cpu(1), node("n2").cpu(4), *low("a", *["n2"] * 4, least=3), group, *pods)
    decisions = decide(made, "allocate, gangpreempt", ("priority", "predicates", "nodeorder"))
    assert result(decisions) == (["a-0"], {"high-0-1": "n2"})


# -- domains


def rack_gang(count: int, tier: int = 1) -> list[Any]:
    return [podgroup("high", count).priority_class("high").phase("Inqueue").topology(tier), *gang("high", count)]


def test_a_gang_with_a_limit_clears_one_rack() -> None:
    keep = low("keep", "n1", rank="high")
    gone, waiting = preempt(*racks(2, 2, cpu=1), *keep, *low("a", "n2", "n3", "n4"), *rack_gang(2))
    assert gone == ["a-1", "a-2"]
    assert sorted(waiting.values()) == ["n3", "n4"]


def test_at_most_so_many_domains_are_tried() -> None:
    keep = low("keep", "n1", rank="high")
    objects = [*racks(2, 2, cpu=1), *keep, *low("a", "n2", "n3", "n4"), *rack_gang(2)]
    assert preempt(*objects, domains=1) == ([], {})
    assert len(preempt(*objects, domains=0)[0]) == 2


def test_a_gang_whose_parts_have_limits_clears_a_rack_for_each() -> None:
    group = podgroup("high", 4).parts("part", 2, 2, 1).priority_class("high").phase("Inqueue")
    objects = [*racks(2, 2, cpu=1), *low("a", "n1", "n2", "n3", "n4", least=0), group, *part("high", "0", 2), *part("high", "1", 2)]
    gone, waiting = preempt(*objects)
    assert len(gone) == 4
    assert {waiting["high-0-0"], waiting["high-0-1"]} in ({"n1", "n2"}, {"n3", "n4"})


def test_while_the_tree_is_unusable_nobody_is_evicted_for_a_topology() -> None:
    broken = [hypernode(name, 3).holds("s", kind="HyperNode") for name in ("x", "y")]
    assert preempt(*racks(2, cpu=1), *broken, *low("a", "n1", "n2", least=0), *rack_gang(2)) == ([], {})


def test_a_limit_that_no_hypernode_meets_evicts_nobody() -> None:
    group = podgroup("high", 2).priority_class("high").phase("Inqueue").topology(0)
    assert preempt(*racks(2, cpu=1), *low("a", "n1", "n2", least=0), group, *gang("high", 2)) == ([], {})


def test_the_gang_is_placed_where_room_was_made_though_other_room_came_free() -> None:
    made = cluster(*CLASSES, *racks(2, 2, cpu=1), *low("a", "n1", "n2", "n3", "n4", least=0), *rack_gang(2))
    first = decide(made, "enqueue, allocate, gangpreempt")
    promised = {place.task.name: place.node for place in first.pipelined}
    assert set(made.jobs["default/high"].nominated_hypernodes) == {"default/high"}
    advance(made, first, NOW)
    for task in [task for task in made.tasks.values() if task.name.startswith("a-")]:
        made.remove("Pod", task.key)
    second = decide(made, "enqueue, allocate, gangpreempt")
    assert {bind.task.name: bind.node for bind in second.binds} == promised
    assert second.evictions == []


def test_without_domains_the_whole_cluster_is_searched() -> None:
    class Lost(Plugin):
        name = "lost"

        def hyper_node_gradient_for_job(self, job: Job, within: HyperNode, purpose: Purpose) -> list[list[HyperNode]]:
            return []

    made = cluster(*CLASSES, node("n").cpu(1), *low("a", "n", least=0), *high(1))
    assert result(decide(made, "gangpreempt", (*PLUGINS[:-1], Lost)))[0] == ["a-0"]


def test_pods_that_no_node_may_take_get_nobody_evicted() -> None:
    class Refuser(Filter):
        name = "refuser"

        def prepare(self, task: Task) -> Any:
            return Rejected(Reason("never")) if task.name == "high-0" else None

    class Refusing(Plugin):
        name = "refusing"

        def filters(self) -> list[Filter]:
            return [Refuser()]

    made = cluster(*CLASSES, node("n").cpu(2), *low("a", "n", "n", least=0), *high(2))
    assert result(decide(made, "gangpreempt", (*PLUGINS, Refusing))) == ([], {})


class Reluctant(Plugin):
    """Holds back the pods named after `held`, and gives their queue no room for those named after `refused`."""

    name = "reluctant"
    held = refused = ""

    def pre_predicate(self, task: Task) -> Refusal | None:
        return Refusal("Later", "not now") if self.held and task.name.endswith(self.held) else None

    def allocatable(self, queue: Queue, task: Task) -> bool:
        return not (self.refused and task.name.endswith(self.refused))


@pytest.mark.parametrize("word", ["held", "refused"])
@pytest.mark.parametrize("least", [1, 2])
def test_one_pod_that_a_plugin_or_its_queue_stops_and_nobody_goes(word: str, least: int) -> None:
    class Stopping(Reluctant):
        name = "stopping"

    setattr(Stopping, word, "1")
    made = cluster(*CLASSES, node("n").cpu(2), *low("a", "n", "n", least=0), *high(2, least))
    before = state(made)
    assert result(decide(made, "gangpreempt", (*PLUGINS, Stopping))) == ([], {})
    assert_same(before, state(made))


@pytest.mark.parametrize(("places", "gone"), [(1, []), (2, ["a-0", "a-1"])])
def test_all_pending_pods_find_a_place_also_those_beyond_the_minimum_or_nobody_goes(places: int, gone: list[str]) -> None:
    kept = low("kept", *["n"] * (2 - places), rank="high")
    assert preempt(node("n").cpu(2), *low("a", *["n"] * places, least=0), *kept, *high(2, least=1))[0] == gone


def test_parts_are_helped_in_turn_until_the_gang_has_what_it_needs() -> None:
    """The third part would fit as well; the gang starts without it."""
    group = podgroup("high", 4).parts("part", 2, least=2).priority_class("high").phase("Inqueue")
    pods = [each for number in "012" for each in part("high", number, 2)]
    gone, waiting = preempt(node("n").cpu(6), *low("a", *["n"] * 6, least=0), group, *pods)
    assert (len(gone), sorted(waiting)) == (6, ["high-0-0", "high-0-1", "high-1-0", "high-1-1"])


def test_before_allocate_a_gang_whose_minimum_is_free_is_left_to_it() -> None:
    made = cluster(*CLASSES, node("n").cpu(2), *low("a", "n", least=0), *high(2, least=1))
    decisions = decide(made, "enqueue, gangpreempt, allocate")
    assert (len(decisions.evictions), len(decisions.binds)) == (0, 1)


# -- across queues


def queues(*names: str) -> list[Any]:
    return [queue(name).created(f"2026-01-01T00:00:0{number}Z") for number, name in enumerate(names)]


def owned(name: str, of: str, *nodes: str, least: int = 1) -> list[Any]:
    return [podgroup(name, least).queue(of).phase("Running"), *running(name, *nodes)]


def claim(count: int, of: str = "mine") -> list[Any]:
    return [podgroup("new", count).queue(of).phase("Inqueue"), *gang("new", count)]


SHARES = ("priority", "gang", "conformance", "proportion", "predicates", "nodeorder")


def reclaim(*objects: Any, plugins: Sequence[Any] = SHARES) -> tuple[list[str], dict[str, str]]:
    return result(decide(cluster(*CLASSES, *objects), "enqueue, allocate, gangreclaim", plugins))


def test_a_queue_takes_back_what_it_deserves() -> None:
    gone, waiting = reclaim(*queues("mine", "other"), node("n").cpu(4), *owned("a", "other", *["n"] * 4, least=2), *claim(2))
    assert gone == ["a-0", "a-1"]
    assert set(waiting) == {"new-0", "new-1"}


def test_a_queue_that_has_its_share_takes_nothing() -> None:
    has = owned("b", "mine", "n", "n")
    assert reclaim(*queues("mine", "other"), node("n").cpu(4), *owned("a", "other", "n", "n"), *has, *claim(1)) == ([], {})


def test_queues_that_are_not_reclaimable_and_the_own_one_are_spared() -> None:
    other = queue("other").having("spec", "reclaimable", value=False)
    assert reclaim(*queues("mine"), other, node("n").cpu(2), *owned("a", "other", "n", "n"), *claim(1)) == ([], {})
    assert reclaim(*queues("mine"), node("n").cpu(2), *owned("a", "mine", "n", "n"), *claim(1)) == ([], {})


def test_pods_that_do_not_run_yet_are_not_reclaimed() -> None:
    bound = [one.having("status", "phase", value="Pending") for one in running("a", "n", "n")]
    objects = [*queues("mine", "other"), node("n").cpu(2), podgroup("a", 1).queue("other").phase("Running"), *bound, *claim(1)]
    assert reclaim(*objects) == ([], {})


@pytest.mark.parametrize(("order", "gone"), [(("x", "y"), ["a-0"]), (("y", "x"), ["b-0"])])
def test_the_queue_that_is_served_last_loses_first(order: tuple[str, str], gone: list[str]) -> None:
    """Among equals the younger queue is served later, so it gives first."""
    objects = [*queues("mine", *reversed(order)), node("n").cpu(2)]
    victims = [*owned("a", "x", "n", least=0), *owned("b", "y", "n", least=0)]
    assert reclaim(*objects, *victims, *claim(1), plugins=("gang", "predicates"))[0] == gone


def test_plugins_are_told_who_evicts_for_whom_and_where() -> None:
    seen: list[Any] = []

    class Witness(CATALOGUE["conformance"]):  # type: ignore[misc]
        name = "witness"

        def unified_evictable(self, context: Any, candidates: list[Task]) -> list[Task]:
            seen.append((context.kind, context.job.uid, context.task.name, context.hyper_node.name, [t.name for t in candidates]))
            return candidates[:1]

    made = cluster(*CLASSES, *racks(1, cpu=2), *low("a", "n1", "n1", least=0), *rack_gang(1))
    decisions = decide(made, "enqueue, allocate, gangpreempt", (*PLUGINS, Witness))
    assert seen == [("gangpreempt", "default/high", "high-0", "r1", ["a-0", "a-1"])]
    assert result(decisions)[0] == ["a-0"]
