"""binpack: fuller nodes score higher, by the weighted mean over what a pod asks for."""

from __future__ import annotations

import pytest
from scene import Thing, binds, opened, outcome

from pumice.testing import cluster, node, pod, podgroup, scores

FOO = "example.com/foo"
NODES = [node("n1").has(cpu=2, memory="4Gi"), node("n2").has(cpu=4, memory="16Gi", gpu=4), node("n3").has(cpu=2, memory="4Gi", **{FOO: 16})]
EXISTING = [pod("s1").gang("r").on("n1").asks(cpu=1, memory="1Gi"), pod("s2").gang("r").on("n3").cpu("1500m")]
ASKED: dict[str, Thing] = {
    "p1": {"cpu": 1, "memory": "1Gi"},
    "p2": {"cpu": "1500m"},
    "p3": {"cpu": 2, "memory": "10Gi", "gpu": 2},
    "p4": {"cpu": 3, "memory": "4Gi", FOO: 3},
}
HEAVY = (
    "{name: binpack, arguments: {binpack.weight: 10, binpack.cpu: 2, binpack.memory: 3,"
    f" binpack.resources: 'nvidia.com/gpu, {FOO}', binpack.resources.nvidia.com/gpu: 7, binpack.resources.{FOO}: 8}}}}"
)
LIGHT = "{name: binpack, arguments: {binpack.resources: nvidia.com/gpu, binpack.resources.nvidia.com/gpu: 23}}"
ROWS = [
    (HEAVY, "p1", [700, 137.5, 0]),
    (HEAVY, "p2", [0, 375, 0]),
    (HEAVY, "p3", [0, 531.25, 0]),
    (HEAVY, "p4", [0, 173.076923, 0]),
    (LIGHT, "p1", [75, 15.625, 0]),
    (LIGHT, "p2", [0, 37.5, 0]),
    (LIGHT, "p3", [0, 50.5, 0]),
    (LIGHT, "p4", [0, 50, 0]),
    ("{name: binpack, arguments: {binpack.cpu: -5, binpack.memory: -1}}", "p1", [75, 15.625, 0]),
    ("{name: binpack, arguments: {binpack.cpu: -5, binpack.memory: 3}}", "p1", [62.5, 10.9375, 0]),
    ("{name: binpack, arguments: {binpack.resources: nvidia.com/gpu}}", "p3", [0, 54.1666667, 0]),
    ("{name: binpack, arguments: {binpack.cpu: 0}}", "p1", [50, 6.25, 25]),
    ("{name: binpack, arguments: {binpack.cpu: 0}}", "p2", [0, 0, 0]),
    ("{name: binpack, arguments: {binpack.weight: 0}}", "p1", [0, 0, 0]),
    ("{name: binpack, arguments: {binpack.weight: -1}}", "p1", [-75, -15.625, 0]),
    ("{name: binpack, arguments: {binpack.cpu: 0, binpack.resources: 'cpu,,', binpack.resources.cpu: 9}}", "p1", [50, 6.25, 25]),
]


@pytest.mark.parametrize(("plugin", "name", "expected"), ROWS)
def test_scores(plugin: str, name: str, expected: list[float]) -> None:
    with opened(
        cluster(NODES, podgroup("r").admitted(), EXISTING, podgroup("a").admitted(), pod(name).gang("a").asks(**ASKED[name])), plugin
    ) as session:
        assert list(scores(session, name).values()) == pytest.approx(expected)


def test_five_to_one_for_cpu_gives_the_mean_of_the_documented_example() -> None:
    plugin = "{name: binpack, arguments: {binpack.cpu: 5, binpack.memory: 1}}"
    things = [
        node("n").has(cpu=8, memory="16Gi"),
        podgroup("r").admitted(),
        pod("s").gang("r").on("n").asks(cpu=3, memory="2Gi"),
        podgroup("a").admitted(),
        pod("p").gang("a").asks(cpu=1, memory="2Gi"),
    ]
    with opened(cluster(things), plugin) as session:
        assert scores(session, "p") == {"n": pytest.approx(45.8333333)}


def test_a_gang_fills_one_node_before_the_next() -> None:
    made = cluster(
        node("n1").cpu(4),
        node("n2").cpu(4),
        podgroup("r").admitted(),
        pod("s").gang("r").on("n2").cpu(1),
        podgroup("a", 5).admitted().pods(5, cpu=1),
    )
    assert sorted(binds(outcome(made, "gang", "predicates, binpack")).values()) == ["n1", "n1", "n2", "n2", "n2"]
