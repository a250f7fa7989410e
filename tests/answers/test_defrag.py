"""The plan that empties nodes: what it gains is true, nobody moves who may not, and the cluster is afterwards as it was."""

from __future__ import annotations

from typing import Any

from pumice.answers.answer_text import defragmentation
from pumice.answers.defrag import Defrag, defrag
from pumice.api.times import Duration
from pumice.scheduler.eviction.movable_pods import MoveRules
from pumice.testing import cluster, hypernode, node, pod, podgroup
from pumice.testing.builders import Builder, PodBuilder
from pumice.testing.scene import NOW, policy

PLUGINS = ("gang", "predicates", "proportion", "network-topology-aware")


def single(name: str, on: str, gpus: int) -> list[Builder]:
    return [podgroup(name).phase("Running"), member(name, on, gpus)]


def member(name: str, on: str, gpus: int) -> PodBuilder:
    return pod(name).gpu(gpus).gang(name).owned("Job", name).on(on).started(NOW - 7200)


def planned(*objects: Any, **rules: Any) -> Defrag:
    made = cluster(*[each for entry in objects for each in ([entry] if isinstance(entry, Builder) else entry)])
    before = {task.key: (task.node_name, task.status) for task in made.tasks.values()}
    plan = defrag(made, policy("allocate", PLUGINS), NOW, MoveRules(**{"moves_per_cycle": 0, "maximum_lost_work": Duration(0), **rules}))
    made.check()
    assert {task.key: (task.node_name, task.status) for task in made.tasks.values()} == before
    return plan


def nodes(count: int) -> list[Builder]:
    return [node(f"n{number}").gpu(8) for number in range(count)]


def test_nodes_that_hold_the_least_are_emptied_into_those_in_use() -> None:
    plan = planned(nodes(4), single("a", "n0", 1), single("b", "n1", 3), single("c", "n2", 4))
    assert [(step.node, [(move.pod, move.node) for move in step.moves]) for step in plan.steps] == [
        ("n0", [("default/a", "n2")]),
        ("n1", [("default/b", "n2")]),
    ]
    assert (plan.before.empty_nodes, plan.after.empty_nodes) == (1, 3)
    assert (plan.before.largest_gang, plan.after.largest_gang) == (1, 3)
    assert (plan.before.idle_gpus, plan.after.idle_gpus) == (24, 24)
    assert (plan.before.idle_gpus_in_whole_nodes, plan.after.idle_gpus_in_whole_nodes) == (8, 24)
    assert plan.before.fits["8"] == 1 and plan.after.fits["8"] == 3
    assert plan.steps[0].lost_gpu_s == 7200 and plan.moves == 2


def test_fragmentation_is_what_pods_like_these_cannot_use() -> None:
    plan = planned(nodes(3), single("a", "n0", 4), single("b", "n1", 4), single("whole", "n2", 8))
    assert plan.before.fragmentation > plan.after.fragmentation == 0


def test_a_node_stays_if_one_of_its_pods_must_stay_or_has_no_place() -> None:
    group, stays = single("b", "n0", 1)
    assert planned(nodes(2), single("a", "n0", 1), group, stays.preemptable(False), single("c", "n1", 7)).steps == ()  # type: ignore[attr-defined]
    assert planned(nodes(2), single("a", "n0", 5), single("b", "n1", 5)).steps == ()
    pair = [podgroup("pair", 2).phase("Running"), *(member("pair", on, 1).having("metadata", "name", value=on) for on in ("n0", "n1"))]
    assert planned(nodes(3), pair, single("c", "n2", 8)).steps == (), "a gang over two nodes"


def test_a_pod_that_came_to_a_node_in_the_plan_does_not_move_again() -> None:
    plan = planned(nodes(4), *(single(f"p{number}", f"n{number}", 2) for number in range(4)))
    assert [(step.node, [(move.pod, move.node) for move in step.moves]) for step in plan.steps] == [
        ("n0", [("default/p0", "n1")]),
        ("n2", [("default/p2", "n1")]),
        ("n3", [("default/p3", "n1")]),
    ]
    assert plan.after.empty_nodes == 3


def test_limits_hold_for_the_whole_plan() -> None:
    pair = [
        podgroup("many", 2).phase("Running"),
        *(member("many", on, 1).having("metadata", "name", value=on) for on in ("n0", "n1", "n2")),
    ]
    assert planned(nodes(4), pair, single("c", "n3", 4)).moves == 1
    assert planned(nodes(3), single("a", "n0", 1), single("b", "n1", 1), single("c", "n2", 4), moves_per_cycle=1).moves == 1


def test_filters_are_asked_and_another_place_is_tried() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    def web(name: str, on: str, gpus: int) -> list[Builder]:
        return [podgroup(name).phase("Running"), member(name, on, gpus).label("app", "web").having("spec", "affinity", value=apart)]

    plan = planned(nodes(3), web("a", "n0", 1), web("b", "n1", 6), single("c", "n2", 3))
    assert [(move.pod, move.node) for step in plan.steps for move in step.moves][:1] == [("default/a", "n2")]


def test_pods_stay_within_their_network_domain() -> None:
    tree = [hypernode("left").holds("n0", "n1"), hypernode("right").holds("n2")]
    group, one = single("a", "n0", 1)
    bound = [group.topology(1), one]  # type: ignore[attr-defined]
    assert [move.node for step in planned(nodes(3), tree, bound, single("b", "n1", 4), single("c", "n2", 7)).steps for move in step.moves]


def test_a_cluster_without_gpus_is_measured_in_empty_nodes() -> None:
    cpus = [node(f"n{number}").cpu(8) for number in range(2)]
    small = [
        [podgroup(name).phase("Running"), pod(name).cpu(1).gang(name).owned("Job", name).on(on).started(NOW - 7200)]
        for name, on in (("a", "n0"), ("b", "n1"))
    ]
    plan = planned(cpus, *small)
    assert (plan.before.largest_gang, plan.after.largest_gang, plan.before.fits) == (0, 1, {})


def test_daemons_do_not_count() -> None:
    daemon = pod("d").cpu(1).owned("DaemonSet", "d").on("n0")
    assert planned(nodes(1)[0].cpu(8), daemon).before.empty_nodes == 1  # type: ignore[attr-defined]


def test_the_text_has_steps_gains_and_cost() -> None:
    told = defragmentation(planned(nodes(4), single("a", "n0", 1), single("b", "n1", 3), single("c", "n2", 4)))
    assert "default/a" in told and "empty nodes (could be switched off)" in told
    assert told.endswith("What it costs: 2 pods are restarted; they lose 8.0 hours of GPUs, 4.0 hours of pods.")
    assert defragmentation(planned(nodes(1))) == "No node can be emptied by moves."
