"""network-topology-aware: which HyperNodes are tried in which order, and how they and their nodes score."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from pumice.scheduler.framework.network_topology import Purpose
from pumice.scheduler.framework.policy import PluginOption
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.plugins.volcano.network_topology_aware import NetworkTopologyAware, NetworkTopologyAwareArgs
from pumice.testing import PodBuilder, cluster, hypernode, node, pod, podgroup, session
from tests.topology.racks import gang, part, racks, running


@contextmanager
def opened(made: Cluster, **args: Any) -> Iterator[Session]:
    plugin = PluginOption(NetworkTopologyAware, NetworkTopologyAwareArgs(**args))
    with session(made, "gang", "predicates", plugin) as found:
        yield found


def names(groups: list[list[Any]]) -> list[list[str]]:
    return [[found.name for found in group] for group in groups]


def gradients(*objects: Any, purpose: Purpose = Purpose.ALLOCATE, within: str = "", sub: bool = False, **args: Any) -> list[list[str]]:
    made = cluster(*racks(2, 2, 2, cpu=2), *objects)
    job = made.jobs["default/a"]
    with opened(made, **args) as found:
        tree = found.topology.tree
        start = tree.by_name[within] if within else tree.root
        if sub:
            return names(found.sub_gradients(job, next(iter(job.subjobs)), start, purpose))
        return names(found.gradients(job, start, purpose))


def test_without_a_limit_there_is_one_place_to_look() -> None:
    assert gradients(podgroup("a"), within="r2") == [["r2"]]


def test_the_closest_tiers_come_first_and_none_above_the_limit() -> None:
    assert gradients(podgroup("a").topology(1)) == [["r1", "r2", "r3"]]
    assert gradients(podgroup("a").topology(2)) == [["r1", "r2", "r3"], ["s"]]
    assert gradients(podgroup("a").topology(mode="soft"))[-1] == ["<cluster-top-hypernode>"]
    assert gradients(podgroup("a").topology(2), within="r2") == [["r2"]]


def test_hypernodes_without_the_room_are_left_out() -> None:
    wants = podgroup("a").topology(2).needs(cpu=5)
    assert gradients(wants) == [["s"]]
    taken = podgroup("o").phase("Running"), *running("o", "n1", "n1")
    assert gradients(podgroup("a").topology(1).needs(cpu=3), *taken) == [["r2", "r3"]]


def test_room_that_is_being_released_counts() -> None:
    leaving = [one.leaving() for one in running("o", "n1", "n1")]
    assert gradients(podgroup("a").topology(1).needs(cpu=3), podgroup("o").phase("Running"), *leaving) == [["r1", "r2", "r3"]]


def test_a_part_needs_room_for_all_its_pending_pods() -> None:
    taken = podgroup("o").phase("Running"), *running("o", "n1", "n1")
    assert gradients(podgroup("a", 1).topology(1), *gang("a", 3), *taken, sub=True) == [["r2", "r3"]]


def test_for_evictions_the_widest_come_first_and_capacity_counts() -> None:
    taken = podgroup("o").phase("Running"), *running("o", "n1", "n1")
    wants = podgroup("a").topology(2).needs(cpu=4)
    assert gradients(wants, *taken, purpose=Purpose.EVICT) == [["s"], ["r1", "r2", "r3"]]
    assert gradients(wants, purpose=Purpose.EVICT, eviction_domains=3) == [["s"], ["r1", "r2"]]
    assert gradients(wants, purpose=Purpose.EVICT, eviction_domains=1) == [["s"]]
    assert gradients(wants, purpose=Purpose.EVICT, eviction_domains=0) == [["s"], ["r1", "r2", "r3"]]


def here(*nodes: str) -> list[PodBuilder]:
    return running("a", *nodes)


def test_a_job_that_runs_is_kept_where_it_is_whatever_room_there_is() -> None:
    assert gradients(podgroup("a").topology(1).needs(cpu=9).phase("Running"), *here("n3")) == [["r2"]]
    assert gradients(podgroup("a").topology(2).phase("Running"), *here("n3")) == [["r1", "r2", "r3"], ["s"]]
    assert gradients(podgroup("a").topology(2).phase("Running"), *here("n3"), within="r2") == [["r2"]]


def test_a_job_that_already_spreads_too_far_finds_nothing() -> None:
    assert gradients(podgroup("a").topology(1).phase("Running"), *here("n1", "n3")) == []
    assert gradients(podgroup("a").topology(1).phase("Running"), *here("n3"), within="r1") == []


# -- scores of HyperNodes


def hyper_scores(*objects: Any, among: str = "r1 r2", **args: Any) -> list[float]:
    made = cluster(*objects)
    job = made.jobs["default/a"]
    with opened(made, **args) as found:
        candidates = [found.topology.tree.by_name[name] for name in among.split()]
        return found.hyper_node_order(next(iter(job.subjobs)), candidates)


def two_racks() -> list[Any]:
    return [
        *(node("n1").cpu(4).memory(100).gpu(2), node("n2").cpu(8).memory(100).gpu(4)),
        *(hypernode("r1").holds("n1"), hypernode("r2").holds("n2")),
    ]


def asks(cpu: int = 1, memory: int = 10, gpu: int = 0) -> PodBuilder:
    made = pod("p").cpu(cpu).memory(memory).gang("a")
    return made.gpu(gpu) if gpu else made


def test_a_hypernode_scores_how_full_it_would_be() -> None:
    group = podgroup("a").topology(1)
    assert hyper_scores(*two_racks(), group, asks()) == pytest.approx([100 * (1 / 4 + 10 / 100) / 2, 100 * (1 / 8 + 10 / 100) / 2])
    assert hyper_scores(*two_racks(), group, asks(), weight=3, cpu=2, memory=0) == pytest.approx([300 / 4, 300 / 8])
    assert hyper_scores(*two_racks(), group, asks(), weight=0) == [0, 0]
    assert hyper_scores(*two_racks(), group, asks(), cpu=0, memory=0) == [0, 0]


def test_negative_weights_count_as_one() -> None:
    group = podgroup("a").topology(1)
    assert hyper_scores(*two_racks(), group, asks(), weight=-5, cpu=-1, memory=0) == pytest.approx([25, 12.5])


def test_other_resources_count_if_they_are_named() -> None:
    group = podgroup("a").topology(1)
    more: dict[str, Any] = {"resources": "nvidia.com/gpu, example.com/none", "named": {"nvidia.com/gpu": 2}}
    scores = hyper_scores(*two_racks(), group, asks(gpu=1), cpu=0, memory=0, **more)
    assert scores == pytest.approx([50, 25])
    assert hyper_scores(*two_racks(), group, asks(gpu=1), cpu=0, memory=0, resources="nvidia.com/gpu") == pytest.approx([50, 25])


def test_a_hypernode_that_would_overflow_scores_nothing() -> None:
    assert hyper_scores(*two_racks(), podgroup("a").topology(1), asks(cpu=5)) == pytest.approx([0, 100 * (5 / 8 + 0.1) / 2])


def test_among_the_best_the_one_with_more_of_its_pods_wins() -> None:
    group = podgroup("a", 2).topology(2).phase("Running")
    far = [podgroup("o").phase("Running"), *running("o", "n1")]
    scores = hyper_scores(*racks(2, 2), group, *here("n3"), pod("b").cpu(1).gang("a"), *far)
    assert scores[1] - scores[0] == pytest.approx(50)


def test_without_hypernode_scorers_all_are_equal() -> None:
    made = cluster(*racks(1, 1), podgroup("a"), *gang("a", 1))
    with session(made, "gang") as found:
        job = made.jobs["default/a"]
        assert found.hyper_node_order(next(iter(job.subjobs)), found.topology.tree.all[:2]) == [0, 0]
        assert found.gradients(job, found.topology.tree.root, Purpose.ALLOCATE) == [[found.topology.tree.root]]
        assert found.sub_gradients(job, next(iter(job.subjobs)), found.topology.tree.root, Purpose.EVICT)


# -- scores of nodes


def node_scores(made: Cluster, pod_name: str, then: Callable[[Session], None] = lambda found: None, **args: Any) -> list[float]:
    with opened(made, **args) as found:
        task = made.tasks[f"default/{pod_name}"]
        found.evaluation(task)
        then(found)
        evaluation = found.evaluation(task)
        return [float(score) for score in np.round(evaluation.totals(np.ones(len(made.nodes), bool)), 6)]


def test_nodes_score_by_the_lowest_hypernode_that_holds_them_and_the_job() -> None:
    """Tiers 1 to 3: the rack itself 1, the same spine (3 - 2) / (3 - 1), elsewhere 0; ties are broken by the job's pods."""
    made = cluster(*racks(2, 1), node("far").cpu(2), podgroup("a").topology(2).phase("Running"), *here("n1"), pod("b").cpu(1).gang("a"))
    assert node_scores(made, "b") == [150, 150, 50, 0]


def test_a_gang_that_stands_nowhere_has_no_preference() -> None:
    made = cluster(*racks(2, 1), podgroup("a").topology(2), *gang("a", 1))
    assert node_scores(made, "a-0") == [0, 0, 0]


def test_pods_placed_in_the_session_count_as_standing() -> None:
    made = cluster(*racks(2, 1), podgroup("a", 2).topology(2), *gang("a", 2))

    def place(found: Session) -> None:
        with found.statement() as statement:
            statement.allocate(made.tasks["default/a-1"], 2)
            statement.keep()

    assert node_scores(made, "a-0", place) == [50, 50, 100]


def test_where_the_job_spans_hypernodes_its_pods_decide() -> None:
    made = cluster(*racks(1, 1), podgroup("a").topology(2).phase("Running"), *here("n1", "n1", "n2"), pod("b").cpu(1).gang("a"))
    assert node_scores(made, "b") == pytest.approx([100, 75])


def test_with_one_tier_only_all_nodes_are_near() -> None:
    made = cluster(
        node("n1").cpu(2), node("n2").cpu(2), podgroup("a").topology(mode="soft").phase("Running"), *here("n1"), pod("b").gang("a")
    )
    assert node_scores(made, "b") == [150, 150]


def test_pods_without_a_topology_go_where_hypernodes_are_full() -> None:
    """Per tier the fullness of the node's HyperNode; each tier counts 0.8 of the one below; outside of any, 1."""
    made = cluster(
        *racks(1, 1, cpu=4), node("far").cpu(4), podgroup("o").phase("Running"), *running("o", "n1"), podgroup("a"), *gang("a", 1)
    )
    total = 1 + 0.8 + 0.64
    spine, root = 0.8 * 2 / 8, 0.64 * 2 / 12
    expected = [100 * (2 / 4 + spine + root) / total, 100 * (1 / 4 + spine + root) / total, 100 * (1 + 0.8 + root) / total]
    assert node_scores(made, "a-0", memory=0) == pytest.approx(expected, abs=1e-5)


def test_what_is_placed_and_evicted_meanwhile_counts() -> None:
    made = cluster(*racks(1, cpu=4), podgroup("o").phase("Running"), *running("o", "n1", "n1"), podgroup("a"), *gang("a", 2))

    def change(found: Session) -> None:
        with found.statement() as statement:
            statement.allocate(made.tasks["default/a-1"], 0)
            statement.evict(made.tasks["default/o-0"], "test")
            statement.evict(made.tasks["default/o-1"], "test")
            statement.commit()

    assert node_scores(made, "a-0", change, memory=0) == [50]
    assert node_scores(made, "a-0", memory=0) == [100], "in the next session who leaves counts until it is gone"


@pytest.mark.parametrize(("args", "tiers"), [({"fading": 0.0}, 1), ({"fading": -1.0}, 3)])
def test_fading_is_the_weight_of_a_tier_above_the_next(args: dict[str, Any], tiers: int) -> None:
    made = cluster(*racks(1, 1, cpu=4), podgroup("a"), *gang("a", 1))
    weights = [1, 0.8, 0.64][:tiers]
    fullness = [1 / 4, 1 / 8, 1 / 8]
    expected = 100 * sum(w * f for w, f in zip(weights, fullness, strict=False)) / sum(weights)
    assert node_scores(made, "a-0", memory=0, **args) == pytest.approx([expected] * 2, abs=1e-5)


@pytest.mark.parametrize(("fading", "between"), [(0.5, 0.25 + 0.125), (1.0, 2), (2.0, 1 / 4 + 1 / 8)])
def test_in_tiers_without_hypernodes_all_nodes_count_as_full(fading: float, between: float) -> None:
    hypernodes = [hypernode("low", 2).holds("n1"), hypernode("high", 5).holds("n1")]
    made = cluster(node("n1").cpu(4), *hypernodes, podgroup("a"), *gang("a", 1))
    weights = [fading ** (tier - (6 if fading > 1 else 1)) for tier in (2, 5, 6)]
    expected = 100 * (between + sum(weights) / 4) / (between + sum(weights))
    assert node_scores(made, "a-0", memory=0, fading=fading) == pytest.approx([expected], abs=1e-5)


@pytest.mark.parametrize("fading", [0.8, 1.0, 3.0])
def test_tiers_may_be_far_apart(fading: float) -> None:
    hypernodes = [hypernode("low", 1).holds("n1"), hypernode("high", 2_000_000_000).holds("n1")]
    made = cluster(node("n1").cpu(4), *hypernodes, podgroup("a"), *gang("a", 1))
    assert 0 < node_scores(made, "a-0", memory=0, fading=fading)[0] <= 100


def test_normal_pods_may_be_left_alone() -> None:
    made = cluster(*racks(1, 1), podgroup("a"), *gang("a", 1))
    assert node_scores(made, "a-0", pack_normal_pods=False) == [0, 0]


def test_tiers_that_fade_to_nothing_leave_no_opinion() -> None:
    made = cluster(node("n1").cpu(2), hypernode("s", 5).holds("n1"), podgroup("a"), *gang("a", 1))
    assert node_scores(made, "a-0", fading=0.0) == [0]


def test_pods_in_a_part_without_a_topology_count_as_normal() -> None:
    group = podgroup("a", 1).topology(1).parts("part", 1)
    made = cluster(*racks(1, 1, cpu=4), group, *part("a", "0", 1))
    assert node_scores(made, "a-0-0", memory=0)[0] > 0
