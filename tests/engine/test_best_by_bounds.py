"""A node that is found by what its scores are at most is the first of the best."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pumice.scheduler.engine.best_by_bounds import LOOKS, BestByBounds
from pumice.scheduler.engine.evaluations import Evaluations
from pumice.scheduler.engine.rules import Filter, Reach, Reason, Refused, Scorer
from pumice.scheduler.engine.view import View
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.task import Task
from pumice.scheduler.plugins.kube.least_allocated import LeastAllocated
from pumice.scheduler.plugins.kube.most_allocated import MostAllocated
from pumice.scheduler.plugins.kube.node_resources_balanced_allocation import BalancedAllocation
from pumice.scheduler.plugins.kube.taint_toleration import TaintScorer
from pumice.testing import cluster, node, pod
from tests.samples import times

GPU = "nvidia.com/gpu"


def scorers() -> list[Scorer]:
    return [LeastAllocated(), BalancedAllocation(("cpu", "memory", GPU), weight=3), TaintScorer()]


round_numbers = st.integers(1, 10), st.integers(1, 10)
odd_numbers = st.floats(0.001, 200).map(lambda x: round(x, 3)), st.integers(1, 2**46 - 1)
capacities = st.one_of(st.tuples(*round_numbers), st.tuples(*odd_numbers))
requests = st.one_of(st.tuples(st.integers(0, 3), st.integers(0, 3)), st.tuples(st.floats(0, 3).map(lambda x: round(x, 3)), odd_numbers[1]))


def world(nodes: list[tuple[float, int]], pods: list[tuple[float, int]]) -> Cluster:
    made = [node(f"n{i}").cpu(f"{c:.3f}").memory(f"{m}Gi" if m <= 10 else str(m)) for i, (c, m) in enumerate(nodes)]
    waiting = [pod(f"p{i}").cpu(f"{c:.3f}").memory(f"{m}Gi" if m <= 10 else str(m)) for i, (c, m) in enumerate(pods)]
    return cluster(*made, *waiting)


@settings(max_examples=times(75), deadline=None)
@given(st.lists(capacities, min_size=1, max_size=8), st.lists(requests, min_size=1, max_size=10), st.data())
def test_a_node_found_by_bounds_is_the_first_of_the_best(nodes: list[tuple[float, int]], pods: list[tuple[float, int]], data: Any) -> None:
    """Whatever stands on the nodes already, even more than they have."""
    made = world(nodes, pods)
    by_bounds = BestByBounds(made, scorers()[:2])
    for task in made.tasks.values():
        candidates = np.array(data.draw(st.lists(st.booleans(), min_size=len(nodes), max_size=len(nodes))))
        candidates[data.draw(st.integers(0, len(nodes) - 1))] = True
        totals = sum(rule.weight * rule.score(rule.prepare(task), View(made.nodes)) for rule in scorers()[:2])
        best = np.where(candidates, totals, -np.inf).argmax()
        assert by_bounds.find(task.template, totals.item, candidates) in (-1, best)
        assert by_bounds.find(task.template, totals.item) in (-1, totals.argmax())
        made.move(task, status.ALLOCATED, data.draw(st.integers(0, len(nodes) - 1)))


@settings(max_examples=times(50), deadline=None)
@given(st.lists(capacities, min_size=1, max_size=8), st.lists(requests, min_size=1, max_size=10))
def test_bounds_are_no_less_than_scores(nodes: list[tuple[float, int]], pods: list[tuple[float, int]]) -> None:
    made = world(nodes, pods)
    for place, task in enumerate(list(made.tasks.values())):
        for rule in scorers()[:2]:
            kept = rule.bounds(made.nodes)
            bound = kept.of(task.template) if kept is not None else None
            if bound is not None:
                assert (bound.most >= rule.score(rule.prepare(task), View(made.nodes))).all()
        made.move(task, status.ALLOCATED, place % len(nodes))


def unasked(row: int) -> float:
    raise AssertionError("no node need be scored")


def found(made: Cluster, *rules: Scorer) -> list[int]:
    """Where bounds lead to for each pod of its own, one after the other."""
    by_bounds = BestByBounds(made, rules)
    return [by_bounds.find(task.template, unasked) for task in made.tasks.values()]


def two_nodes(*pods: Any) -> Cluster:
    return cluster(node("a").cpu(3).memory("7Gi"), node("b").cpu(5).memory("7Gi"), *pods)


PLAIN = pod("p").cpu("110m").memory("310Mi")


def test_bounds_lead_to_a_node() -> None:
    assert found(two_nodes(PLAIN), *scorers()[:2]) == [1]


@pytest.mark.parametrize(
    "rules",
    [
        [],
        [LeastAllocated(), MostAllocated()],
        [LeastAllocated({"cpu": 1, "memory": 2})],
        [LeastAllocated(weight=0.5)],
        [LeastAllocated(weight=-1)],
        [BalancedAllocation(("cpu", GPU))],
        [BalancedAllocation(("cpu", "memory", "ephemeral-storage"))],
        [BalancedAllocation(compare=False)],
    ],
)
def test_without_bounds_of_all_scorers_they_lead_nowhere(rules: list[Scorer]) -> None:
    assert found(two_nodes(PLAIN), *rules) == [-1]


def test_bounds_of_a_balance_of_cpu_and_memory_are_not_for_pods_that_ask_for_more_or_for_neither() -> None:
    made = two_nodes(PLAIN.request(GPU, 1), pod("q").request("example.com/other", 1))
    assert found(made, BalancedAllocation(("cpu", "memory", GPU))) == [-1, -1]


@pytest.mark.parametrize("rule", [LeastAllocated(), BalancedAllocation()])
def test_there_are_no_bounds_where_a_node_has_none_of_a_resource(rule: Scorer) -> None:
    assert rule.bounds(cluster(node("a").cpu(1).memory("1Gi"), node("b").cpu(0).memory("1Gi")).nodes) is None


@pytest.mark.parametrize(("nodes", "row", "looks"), [(1, 0, [0]), (3, 2, [0, 1, 2]), (LOOKS + 1, -1, [*range(LOOKS)])])
def test_where_a_bound_is_near_a_whole_number_that_node_is_scored(nodes: int, row: int, looks: list[int]) -> None:
    """All but the last have a little less of what they may have at most."""
    made = cluster(*(node(f"n{number}").cpu(10).memory("10Gi") for number in range(nodes)), pod("p").cpu(1).memory("1Gi"))
    (task,) = made.tasks.values()
    looked_at = []

    def score_of(row: int) -> float:
        looked_at.append(row)
        return 90.0 if row == nodes - 1 else 89.0

    assert BestByBounds(made, [LeastAllocated()]).find(task.template, score_of) == row
    assert looked_at == looks


class Scanned(LeastAllocated):
    """Counts how often all nodes are scored."""

    scans = 0

    def score(self, template: Any, nodes: View) -> Any:
        self.scans += nodes.rows is None
        return super().score(template, nodes)


def test_only_a_task_that_comes_again_has_all_nodes_scored() -> None:
    made = two_nodes(*(pod(f"p{number}").cpu(f"{110 + number // 2}m").memory("310Mi") for number in range(6)))
    rule = Scanned()
    kept = Evaluations(made, [], [rule])
    scans = []
    for task in list(made.tasks.values()):
        row = kept.of(task).best(made.nodes.alive)
        made.move(task, status.ALLOCATED, row)
        scans.append(rule.scans)
    assert scans == [0, 1, 1, 2, 2, 3]


def test_other_scorers_must_first_be_found_to_say_the_same_of_all_nodes() -> None:
    made = two_nodes(*(pod(f"p{number}").cpu(f"{110 + number}m").memory("310Mi") for number in range(3)))
    rule = Scanned()
    kept = Evaluations(made, [], [rule, TaintScorer()])
    assert [kept.of(task).best(made.nodes.alive) for task in made.tasks.values()] == [1, 1, 1]
    assert rule.scans == 1


class Silent(Scorer):
    """Has nothing to say about these pods."""

    normalizes = True

    def prepare(self, task: Task) -> None:
        return None


def test_a_scorer_that_stays_out_of_it_does_not_count() -> None:
    made = two_nodes(PLAIN)
    rule = Scanned()
    (task,) = made.tasks.values()
    assert Evaluations(made, [], [rule, Silent()]).of(task).best(made.nodes.alive) == 1
    assert rule.scans == 0


def test_nodes_that_other_scorers_tell_apart_are_scored() -> None:
    made = cluster(
        node("a").cpu(3).memory("7Gi"),
        node("b").cpu(5).memory("7Gi").taint("k", effect="PreferNoSchedule"),
        *(pod(f"p{number}").cpu(f"{110 + number}m").memory("310Mi") for number in range(3)),
    )
    kept = Evaluations(made, [], scorers())
    assert [kept.of(task).best(made.nodes.alive) for task in made.tasks.values()] == [0, 0, 0]


def test_many_changes_at_once_are_looked_at_together() -> None:
    made = two_nodes(*(pod(f"p{number}").cpu(f"{110 + number}m").memory("310Mi") for number in range(3)))
    by_bounds = BestByBounds(made, [LeastAllocated()])
    first, second, third = made.tasks.values()
    assert by_bounds.find(third.template, unasked) == 1
    made.move(first, status.ALLOCATED, 1)
    made.move(second, status.ALLOCATED, 0)
    totals = LeastAllocated().score(third.template, View(made.nodes))
    assert by_bounds.find(third.template, totals.item) == totals.argmax()


def different(count: int) -> list[Any]:
    return [pod(f"p{number}").cpu(f"{110 + number}m").memory("310Mi") for number in range(count)]


def test_no_candidates_are_looked_for_as_long_as_the_best_node_of_all_will_do() -> None:
    made = two_nodes(*different(3), pod("large").cpu("4500m").memory("310Mi"), pod("none").cpu(9), *different(5)[3:])
    first, second, third, large, none, fourth, fifth = made.tasks.values()
    kept = Evaluations(made, [], scorers())
    assert kept.of(first).best_of_all() == -1, "it is not known yet that the taints tell no nodes apart"
    assert kept.of(first).best(made.nodes.alive) == 1
    assert kept.of(second).best_of_all() == 1
    assert kept.of(second).best_of_all() == -1, "it comes again"
    made.move(large, status.ALLOCATED, 1)
    assert kept.of(none).best_of_all() == -1, "it has room nowhere"
    assert kept.of(third).best_of_all() == -1, "nor need others have any"
    assert kept.of(third).best(made.nodes.alive) == kept.of(fourth).best_of_all() == kept.of(fifth).best_of_all() == 0


class NotOn(Filter):
    """Refuses a row, until told otherwise: what stands anywhere decides."""

    reach = Reach.CLUSTER
    reads_amounts = False
    row = 1

    def refuse(self, state: Any, nodes: View) -> list[Refused]:
        return [Refused(nodes.row_numbers == self.row, Reason("not here"))]


def test_the_best_node_of_all_is_asked_about_by_what_stands_anywhere() -> None:
    made = two_nodes(*different(3))
    rule = NotOn()
    first, second, third = made.tasks.values()
    kept = Evaluations(made, [rule], scorers()[:2])
    assert kept.of(first).best_of_all() == -1
    rule.row = 0
    made.move(first, status.ALLOCATED, 0)
    assert kept.of(second).best(made.nodes.alive) == kept.of(third).best_of_all() == 1
