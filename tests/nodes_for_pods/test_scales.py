"""How scores are brought to 0..100: by the greatest (affinity to nodes, taints), and by resources, from the specification's tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.scheduler.engine.normalize_score import to_hundred
from pumice.scheduler.plugins.kube.least_allocated import LeastAllocated
from pumice.scheduler.plugins.kube.most_allocated import MostAllocated
from pumice.scheduler.plugins.kube.node_resources_balanced_allocation import BalancedAllocation
from pumice.scheduler.plugins.kube.requested_to_capacity_ratio import RequestedToCapacityRatio
from pumice.testing import PodBuilder, cluster, node, pod
from tests.nodes_for_pods.asking import scores


@pytest.mark.parametrize(
    ("given", "plain", "reverse"),
    [
        ([1, 2, 3, 4], [25, 50, 75, 100], [75, 50, 25, 0]),
        ([1000, 10, 20, 30], [100, 1, 2, 3], [0, 99, 98, 97]),
        ([1, 1, 1, 1], [100, 100, 100, 100], [0, 0, 0, 0]),
        ([1000, 1, 1, 1], [100, 0, 0, 0], [0, 100, 100, 100]),
        ([0, 1, 1, 1], [0, 100, 100, 100], [100, 0, 0, 0]),
        ([0, 0], [0, 0], [100, 100]),
        ([], [], []),
    ],
)
def test_the_greatest_becomes_a_hundred(given: list[int], plain: list[int], reverse: list[int]) -> None:
    assert to_hundred(np.array(given, float)).tolist() == plain
    assert to_hundred(np.array(given, float), reverse=True).tolist() == reverse


def of(name: str, *containers: tuple[int, int | str]) -> PodBuilder:
    """A pod of containers with (CPU in milli, memory in bytes)."""
    wanted = [{"name": f"c{i}", "resources": {"requests": {"cpu": f"{c}m", "memory": str(m)}}} for i, (c, m) in enumerate(containers)]
    return pod(name).having("spec", "containers", value=wanted)


PODS: dict[str, tuple[tuple[int, int], ...]] = {
    "A": ((1000, 2000), (2000, 3000)),
    "C": ((1000, 0), (2000, 0)),
    "E": (),
    "W": ((5000, 9000),),
}
SHAPE = ((0, 100), (100, 0))
ROWS: dict[str, tuple[Any, str, tuple[str, str], tuple[tuple[int, int], tuple[int, int]], list[int]]] = {
    "least, nothing": (LeastAllocated(), "E", ("", ""), ((4000, 10000), (4000, 10000)), [100, 100]),
    "least": (LeastAllocated(), "A", ("", ""), ((4000, 10000), (6000, 10000)), [37, 50]),
    "least, used": (LeastAllocated(), "E", ("CC", "CA"), ((10000, 20000), (10000, 20000)), [70, 57]),
    "least, both": (LeastAllocated(), "A", ("C", "A"), ((10000, 20000), (10000, 20000)), [57, 45]),
    "least, unequal": (LeastAllocated(), "A", ("C", "A"), ((10000, 20000), (10000, 50000)), [57, 60]),
    "least, above": (LeastAllocated(), "C", ("C", "A"), ((4000, 10000), (4000, 10000)), [50, 25]),
    "least, no room": (LeastAllocated(), "E", ("", ""), ((0, 0), (0, 0)), [0, 0]),
    "least, weighted": (LeastAllocated({"memory": 2, "cpu": 1}), "A", ("", ""), ((4000, 10000), (6000, 10000)), [41, 50]),
    "most, nothing": (MostAllocated(), "E", ("", ""), ((4000, 10000), (4000, 10000)), [0, 0]),
    "most": (MostAllocated(), "A", ("", ""), ((4000, 10000), (6000, 10000)), [62, 50]),
    "most, used": (MostAllocated(), "E", ("CC", "CA"), ((10000, 20000), (10000, 20000)), [30, 42]),
    "most, both": (MostAllocated(), "A", ("C", "A"), ((10000, 20000), (10000, 20000)), [42, 55]),
    "most, above": (MostAllocated(), "W", ("", ""), ((4000, 10000), (10000, 8000)), [95, 75]),
    "most, weighted": (MostAllocated({"memory": 2, "cpu": 1}), "A", ("", ""), ((4000, 10000), (6000, 10000)), [58, 50]),
    "ratio, nothing": (RequestedToCapacityRatio(SHAPE), "E", ("", ""), ((4000, 10000), (4000, 10000)), [100, 100]),
    "ratio": (RequestedToCapacityRatio(SHAPE), "A", ("", ""), ((4000, 10000), (6000, 10000)), [38, 50]),
    "ratio, used": (RequestedToCapacityRatio(SHAPE), "E", ("A", "A"), ((4000, 10000), (6000, 10000)), [38, 50]),
}


@pytest.mark.parametrize("name", ROWS)
def test_resource_scores_are_those_of_the_table(name: str) -> None:
    scorer, asker, used, sizes, expected = ROWS[name]
    nodes = [node(f"n{i}").cpu(f"{c}m").memory(m) for i, (c, m) in enumerate(sizes)]
    existing = [of(f"u{i}-{j}", *PODS[kind]).on(f"n{i}") for i, kinds in enumerate(used) for j, kind in enumerate(kinds)]
    made = cluster(*nodes, *existing, of("p", *PODS[asker]))
    assert scores(made, "default/p", scorer) == expected


@pytest.mark.parametrize(("asks", "used", "expected"), [(0, 0, [0, 0]), (2, 0, [2, 5]), (2, 2, [2, 10]), (4, 0, [5, 10])])
def test_a_ratio_of_an_extended_resource_counts_whole_units(asks: int, used: int, expected: list[int]) -> None:
    scorer = RequestedToCapacityRatio(((0, 0), (100, 10)), {"test/foo": 1})
    nodes = [node("n0").resource("test/foo", 8), node("n1").resource("test/foo", 4)]
    existing = [pod("u").request("test/foo", used).on("n1")] if used else []
    made = cluster(*nodes, *existing, pod("p").request("test/foo", asks) if asks else pod("p"))
    assert scores(made, "default/p", scorer) == expected


CURVES = [
    (((10, 1), (90, 9)), {-10: 1, 0: 1, 9: 1, 10: 1, 15: 1, 19: 1, 20: 2, 89: 8, 90: 9, 99: 9, 100: 9, 110: 9}),
    (((0, 2), (40, 10), (100, 0)), {-10: 2, 0: 2, 20: 6, 30: 8, 40: 10, 70: 5, 100: 0, 110: 0}),
    (((0, 2), (40, 2), (100, 2)), {-10: 2, 50: 2, 110: 2}),
]


@pytest.mark.parametrize(("shape", "points"), CURVES)
def test_a_curve_is_linear_in_integers_between_its_points(shape: tuple[tuple[int, int], ...], points: dict[int, int]) -> None:
    assert RequestedToCapacityRatio(shape).curve(np.array(list(points), float)).tolist() == list(points.values())


def test_the_worked_example_of_three_resources() -> None:
    scorer = RequestedToCapacityRatio(((0, 0), (100, 100)), {"test/foo": 5, "memory": 1, "cpu": 3})
    nodes = [
        node("n1").cpu(8).memory("1Gi").resource("test/foo", 4),
        node("n2").cpu(8).memory("1Gi").resource("test/foo", 8),
    ]
    first = pod("u1").cpu(1).memory("256Mi").request("test/foo", 1).on("n1")
    second = pod("u2").cpu(6).memory("512Mi").request("test/foo", 2).on("n2")
    made = cluster(*nodes, first, second, pod("p").cpu(2).memory("256Mi").request("test/foo", 2))
    assert scores(made, "default/p", scorer) == [60, 69]


@pytest.mark.parametrize(
    ("resources", "asks", "expected"),
    [
        (("cpu", "memory"), {"cpu": "1", "memory": "3Gi"}, 75),
        (("cpu", "memory", "test/foo"), {"cpu": "2", "memory": "2Gi", "test/foo": "4"}, 76),
        (("cpu", "memory", "test/foo"), {"cpu": "2", "memory": "2Gi"}, 100),
        (("cpu",), {"cpu": "2"}, 100),
        (("test/none",), {"cpu": "2"}, 0),
        (("cpu", "memory", "test/foo", "test/bar"), {"cpu": "2", "memory": "2Gi", "test/foo": "2", "test/bar": "2"}, 100),
    ],
)
def test_balance_is_one_minus_the_deviation_of_what_would_be_used(resources: tuple[str, ...], asks: dict[str, str], expected: int) -> None:
    asker = pod("p").having("spec", "containers", 0, "resources", "requests", value=asks)
    made = cluster(node("n").cpu(4).memory("4Gi").resource("test/foo", 4), asker)
    assert scores(made, "default/p", BalancedAllocation(resources, compare=False)) == [expected]


def test_balance_compares_before_and_after_around_seventy_five() -> None:
    nodes = [node(name).cpu(4).memory("4Gi") for name in "abc"]
    made = cluster(*nodes, pod("cpu").cpu(2).on("a"), pod("memory").memory("2Gi").on("b"), pod("p").cpu(2))
    assert scores(made, "default/p", BalancedAllocation()) == [62, 87, 62]


def test_balance_says_nothing_about_a_pod_that_asks_for_none_of_the_resources() -> None:
    made = cluster(node("n").cpu(4), pod("u").cpu(1).on("n"), pod("p").request("test/foo", 1))
    assert scores(made, "default/p", BalancedAllocation()) == [0]
