"""Placing by what changed equals placing by asking every node anew, placement by placement."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from pumice.scheduler.engine import plan_equal_tasks, shared_answers
from pumice.scheduler.engine.evaluations import Evaluations
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.placement.place_tasks import MIN_RUN
from pumice.scheduler.plugins.kube.least_allocated import LeastAllocated
from pumice.scheduler.plugins.kube.most_allocated import MostAllocated
from pumice.scheduler.plugins.kube.node_resources_balanced_allocation import BalancedAllocation
from pumice.scheduler.plugins.volcano.binpack import Fullness
from pumice.scheduler.plugins.volcano.predicates import PodLimit
from pumice.testing import cluster, node, pod, podgroup, session
from tests.samples import times

SCORERS = {
    "least": [LeastAllocated()],
    "most": [MostAllocated()],
    "balanced and least": [BalancedAllocation(), LeastAllocated()],
    "binpack": [Fullness({"cpu": (1, False), "memory": (2, False)}, 1, ["cpu", "memory", "pods"])],
}

sizes = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(0, 5)), min_size=1, max_size=8)
requests = st.tuples(st.integers(1, 4), st.integers(0, 4))


def world(nodes: list[tuple[int, int, int]], pods: list[tuple[int, int]]) -> Cluster:
    made = [node(f"n{i}").cpu(c).memory(f"{m}Gi").pods(p) for i, (c, m, p) in enumerate(nodes)]
    waiting = [pod(f"p{i}").cpu(c).memory(f"{m}Gi").gang("g") for i, (c, m) in enumerate(pods)]
    return cluster(*made, podgroup("g"), *waiting)


def place_by_scanning(opened: Session, scorers: list[object]) -> list[int]:
    """The naive reference: a fresh evaluation of all nodes for each task."""
    rows = []
    for task in list(opened.cluster.tasks.values()):
        evaluation = Evaluations(opened.cluster, [PodLimit()], scorers).of(task)
        evaluation.refresh()
        candidates = evaluation.admitted & evaluation.fits_idle & evaluation.fits_future
        row = int(evaluation.totals(candidates).argmax()) if candidates.any() else -1
        rows.append(row)
        if row >= 0:
            opened.cluster.move(task, status.ALLOCATED, row)
    return rows


@settings(max_examples=times(50), deadline=None)
@given(sizes, st.lists(requests, min_size=1, max_size=12), st.sampled_from(sorted(SCORERS)))
def test_a_kept_evaluation_places_as_a_fresh_one(nodes: list[tuple[int, int, int]], pods: list[tuple[int, int]], kind: str) -> None:
    with session(world(nodes, pods)) as opened:
        expected = place_by_scanning(opened, SCORERS[kind])
    with session(world(nodes, pods)) as opened:
        kept = Evaluations(opened.cluster, [PodLimit()], SCORERS[kind])
        rows = []
        for task in list(opened.cluster.tasks.values()):
            evaluation = kept.of(task)
            evaluation.refresh()
            rows.append(evaluation.best(evaluation.admitted & evaluation.fits_idle))
            if rows[-1] >= 0:
                opened.cluster.move(task, status.ALLOCATED, rows[-1])
        opened.cluster.check()
    assert rows == expected


def place_by_plan(opened: Session, scorers: list[object], cells: int) -> list[int]:
    """`cells`: so many are scored together at most; the fewer they are the more often the plan has to look again."""
    tasks = list(opened.cluster.tasks.values())
    evaluation = Evaluations(opened.cluster, [PodLimit()], scorers).of(tasks[0])
    evaluation.refresh()
    assert evaluation.steady
    rows = []
    before, plan_equal_tasks.CELLS = plan_equal_tasks.CELLS, cells
    try:
        planned = plan_equal_tasks.plan(evaluation, evaluation.admitted & evaluation.fits_idle, len(tasks))
        for task, row in zip(tasks, planned, strict=False):
            rows.append(row)
            opened.cluster.move(task, status.ALLOCATED, row)
    finally:
        plan_equal_tasks.CELLS = before
    opened.cluster.check()
    return rows


LATER = {"it stays": status.ALLOCATED, "it is promised its place": status.PIPELINED, "it leaves": status.PENDING}


@settings(max_examples=times(75), deadline=None)
@given(
    sizes,
    st.lists(st.tuples(requests, st.sampled_from(sorted(LATER))), min_size=1, max_size=12),
    st.sampled_from(["least", "balanced and least"]),
    st.sampled_from([0, 2, shared_answers.FEW]),
)
def test_the_best_node_of_all_is_the_best_of_those_that_will_do(
    nodes: list[tuple[int, int, int]], pods: list[tuple[tuple[int, int], str]], kind: str, few: int
) -> None:
    """Whatever comes of the tasks before. `few`: so many rows may have changed that are not asked about."""
    with session(world(nodes, [request for request, _ in pods])) as opened:
        made, before = opened.cluster, shared_answers.FEW
        kept = Evaluations(made, [PodLimit()], SCORERS[kind])
        shared_answers.FEW = few
        try:
            for task, (_, later) in zip(list(made.tasks.values()), pods, strict=True):
                row = kept.of(task).best_of_all()
                fresh = Evaluations(made, [PodLimit()], SCORERS[kind]).of(task)
                fresh.refresh()
                candidates = fresh.admitted & fresh.fits_idle & fresh.fits_future
                assert row in (-1, fresh.totals(candidates).argmax() if candidates.any() else -1)
                if row >= 0:
                    made.move(task, status.ALLOCATED, row)
                    made.move(task, LATER[later], -1 if later == "it leaves" else row)
        finally:
            shared_answers.FEW = before


@settings(max_examples=times(50), deadline=None)
@given(sizes, requests, st.integers(MIN_RUN, 30), st.sampled_from(sorted(SCORERS)), st.sampled_from([1, 16, plan_equal_tasks.CELLS]))
def test_a_planned_run_places_as_a_full_scan(
    nodes: list[tuple[int, int, int]], request: tuple[int, int], count: int, kind: str, cells: int
) -> None:
    with session(world(nodes, [request] * count)) as opened:
        expected = [row for row in place_by_scanning(opened, SCORERS[kind]) if row >= 0]
    with session(world(nodes, [request] * count)) as opened:
        assert place_by_plan(opened, SCORERS[kind], cells) == expected


@pytest.mark.parametrize("kind", SCORERS)
def test_a_planned_run_over_more_nodes_than_are_scored_together_places_as_a_full_scan(kind: str) -> None:
    nodes, count = [(1 + number % 4, 2 + number % 5, 4) for number in range(12)], 30
    with session(world(nodes, [(1, 1)] * count)) as opened:
        expected = [row for row in place_by_scanning(opened, SCORERS[kind]) if row >= 0]
    with session(world(nodes, [(1, 1)] * count)) as opened:
        assert place_by_plan(opened, SCORERS[kind], 6) == expected
