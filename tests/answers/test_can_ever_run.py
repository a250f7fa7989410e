"""Whoever can never run is told what bounds it, and what would fit; whoever merely waits is not."""

from __future__ import annotations

import pytest

from pumice.answers import Because, fits
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model.cluster import Cluster
from pumice.testing import cluster, hypernode, node, pod, podgroup, queue
from pumice.testing.builders import NodeBuilder, PodBuilder, PodGroupBuilder
from pumice.testing.scene import NOW, policy


def by(*more: str) -> Policy:
    return policy("enqueue, allocate, backfill", ("gang", "predicates", "capacity", "network-topology-aware", *more))


def given(group: PodGroupBuilder, *pods: PodBuilder) -> Cluster:
    """Four nodes of 4 in two racks, full; of queue `small` no more than 6."""
    nodes = [node(f"n{number}").has(cpu=4, memory="8Gi") for number in range(1, 5)]
    racks = (hypernode("r1").holds("n1", "n2"), hypernode("r2").holds("n3", "n4"))
    old = [pod(f"old-{number}").cpu(4).gang("old").on(f"n{number}") for number in range(1, 5)]
    return cluster(*nodes, *racks, queue("small").capability(cpu=6), podgroup("old").phase("Running"), *old, group, *pods)


def pods(count: int, cpu: int) -> list[PodBuilder]:
    return [pod(f"j-{number}").cpu(cpu).gang("j") for number in range(count)]


BOUND = {
    Because.TOO_LARGE: (
        given(podgroup("j"), *pods(1, 5)),
        "job/j can never run here: it asks for 5 cpu on one node, and the largest, n1, has 4 in all (1 short)",
    ),
    Because.GANG_TOO_LARGE: (
        given(podgroup("j", 5), *pods(5, 3)),
        "job/j can never run here: its 5 pods start together, and even empty nodes would hold only 4 (1 short); a gang of 4 would fit",
    ),
    Because.QUOTA: (
        given(podgroup("j", 2).queue("small"), *pods(2, 4)),
        "job/j can never run here: it must start with 8 cpu, and queue small may hold 6 at most (2 short)",
    ),
    Because.TOPOLOGY: (
        given(podgroup("j", 3).topology(1), *pods(3, 4)),
        "job/j can never run here: its 3 pods must be in one HyperNode of tier 1 or lower; the largest, r2, would hold 2 (1 short); "
        "a gang of 2 would fit",
    ),
    Because.AFFINITY: (
        given(podgroup("j"), pod("j").cpu(1).gang("j").selector("disk", "ssd")),
        "job/j can never run here: no node that it may use matches its node selector disk=ssd",
    ),
}


@pytest.mark.parametrize("because", BOUND, ids=str)
def test_what_bounds_it_is_named_with_what_would_fit(because: Because) -> None:
    made, line = BOUND[because]
    told = fits(made, by(), NOW, "job/j")
    assert told.bound is not None
    assert (told.bound.because, told.line) == (because, line)
    made.check()


@pytest.mark.parametrize("group", [podgroup("j", 4), podgroup("j", 2).topology(1), podgroup("j").queue("small")])
def test_who_only_waits_can_run(group: PodGroupBuilder) -> None:
    count = group.document["spec"]["minMember"]
    told = fits(given(group, *pods(count, 4)), by(), NOW, "job/j")
    assert told.bound is None
    assert told.line == "job/j can run here"


@pytest.mark.parametrize(
    ("group", "runs"),
    [
        (podgroup("j", 1), True),
        (podgroup("j", 2), False),
        (podgroup("j", 1).roles(small=1), True),
        (podgroup("j", 1).roles(large=1), False),
        (podgroup("j", 1).roles(large=2), True),
        (podgroup("j", 1).queue("small"), True),
    ],
)
def test_a_job_can_run_without_pods_that_it_does_not_need(group: PodGroupBuilder, runs: bool) -> None:
    made = given(group, pod("l").cpu(50).gang("j").role("large"), pod("s").cpu(2).memory("1Gi").gang("j").role("small"))
    assert (fits(made, by(), NOW, "job/j").bound is None) == runs
    assert fits(made, by(), NOW, "pod/l").bound is not None


def test_who_waits_for_a_claim_is_told_so_unless_something_else_bounds_it() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    waits = pod("j").cpu(1).gang("j").having("spec", "volumes", value=volumes)
    told = fits(given(podgroup("j"), waits), by(), NOW, "job/j")
    assert (told.bound, told.line) == (None, "job/j waits for PersistentVolumeClaim default/data")
    beside = fits(given(podgroup("j", 2), waits, pod("k").cpu(5).gang("j")), by(), NOW, "job/j")
    assert beside.bound is not None and beside.line == BOUND[Because.TOO_LARGE][1]


@pytest.mark.parametrize(("nodes", "runs"), [((), True), ((node("n").has(cpu=4),), False)])
def test_of_no_nodes_a_queue_may_hold_nothing_yet_but_nodes_may_come(nodes: tuple[NodeBuilder, ...], runs: bool) -> None:
    made = cluster(*nodes, queue("default"), podgroup("j", 2), *pods(2, 4))
    assert (fits(made, by(), NOW, "job/j").bound is None) == runs
    limited = cluster(*nodes, queue("small").capability(cpu=6), podgroup("j", 2).queue("small"), *pods(2, 4))
    assert fits(limited, by(), NOW, "job/j").bound is not None
