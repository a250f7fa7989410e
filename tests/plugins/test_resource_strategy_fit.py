"""resource-strategy-fit: packing or spreading by resource, scarce resources spared, proportions kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scene import Thing, binds, opened, outcome

from pumice.testing import cluster, node, pod, podgroup, refusals, scores

NODES = [node("c").has(cpu=10, memory="10Gi"), node("g").has(cpu=20, memory="40Gi", gpu=8)]
EXISTING = [pod("s1").gang("r").on("c").asks(cpu=4, memory="1Gi"), pod("s2").gang("r").on("g").asks(cpu=3, memory="9Gi", gpu=4)]


def strategy(**arguments: Any) -> str:
    return json.dumps({"name": "resource-strategy-fit", "arguments": arguments})


def most(weight: int = 1) -> Thing:
    return {"type": "MostAllocated", "weight": weight}


def least(weight: int = 1) -> Thing:
    return {"type": "LeastAllocated", "weight": weight}


CPU = {"cpu": 1, "memory": "1Gi"}
GPU = {"cpu": 1, "gpu": 2}
TYPE, WEIGHT = "volcano.sh/resource-strategy-scoring-type", "volcano.sh/resource-strategy-weight"
OFF = {"cpu": least()}

ROWS: list[tuple[str, str, Thing, Thing, dict[str, float]]] = [
    ("cpu and memory spread by default", strategy(), CPU, {}, {"c": 1000 * (0.5 + 0.8) / 2, "g": 1000 * (0.8 + 0.75) / 2}),
    ("a negative weight is the default", strategy(resourceStrategyFitWeight=-1), CPU, {}, {"c": 650, "g": 775}),
    ("only what is configured counts", strategy(resources={"cpu": least()}), CPU, {}, {"c": 500, "g": 800}),
    ("packing", strategy(resources={"cpu": most()}, resourceStrategyFitWeight=1), CPU, {}, {"c": 50, "g": 20}),
    (
        "mixed",
        strategy(resources={"cpu": least(1), "nvidia.com/gpu": most(3)}, resourceStrategyFitWeight=1),
        GPU,
        {},
        {"c": 12.5, "g": 76.25},
    ),
    ("a weight below one is one", strategy(resources={"cpu": least(0), "memory": least(-4)}), CPU, {}, {"c": 650, "g": 775}),
    ("beside a greater one", strategy(resources={"cpu": least(0), "memory": least(3)}), CPU, {}, {"c": 725, "g": 762.5}),
    ("only what is asked for counts", strategy(resources={"nvidia.com/gpu": most(3)}), CPU, {}, {"c": 0, "g": 0}),
    ("overflow", strategy(resources={"cpu": least()}), {"cpu": 7}, {}, {"c": 0, "g": 500}),
    ("a prefix", strategy(resources={"nvidia.com/*": most()}, resourceStrategyFitWeight=1), GPU, {}, {"c": 0, "g": 75}),
    ("the longest", strategy(resources={"nv*": least(), "nvidia.com/*": most()}, resourceStrategyFitWeight=1), GPU, {}, {"c": 0, "g": 75}),
    ("the exact name", strategy(resources={"nvidia.com/*": most(), "nvidia.com/gpu": least()}), GPU, {}, {"c": 0, "g": 250}),
    ("odd stars are dropped", strategy(resources={"*": most(), "n*a": most(), "cpu": least()}), GPU, {}, {"c": 500, "g": 800}),
    ("own strategy", strategy(), CPU, {TYPE: "MostAllocated", WEIGHT: '{"cpu": 1}'}, {"c": 500, "g": 200}),
    ("own, spreading", strategy(), CPU, {TYPE: "LeastAllocated", WEIGHT: '{"memory": 2, "cpu": 0}'}, {"c": 800, "g": 750}),
    ("own type without weights", strategy(), CPU, {TYPE: "MostAllocated"}, {"c": 0, "g": 0}),
    ("own type with odd weights", strategy(), CPU, {TYPE: "MostAllocated", WEIGHT: "cpu"}, {"c": 0, "g": 0}),
    ("unknown own type", strategy(), CPU, {TYPE: "Best", WEIGHT: '{"cpu": 1}'}, {"c": 0, "g": 0}),
    ("own weights without type", strategy(resources=OFF), CPU, {WEIGHT: '{"memory": 1}'}, {"c": 500, "g": 800}),
]


@pytest.mark.parametrize(("what", "plugin", "asked", "notes", "expected"), ROWS, ids=[row[0] for row in ROWS])
def test_fit_scores(what: str, plugin: str, asked: Thing, notes: Thing, expected: dict[str, float]) -> None:
    with opened(
        cluster(NODES, podgroup("r").admitted(), EXISTING, podgroup("a").admitted(), pod("p").gang("a").asks(**asked).annotations(notes)),
        plugin,
    ) as session:
        assert scores(session, "p") == pytest.approx(expected)


X = "example.com/x"
SCARCE = [
    node("c").has(cpu=8, memory="8Gi"),
    node("g").has(cpu=8, memory="8Gi", gpu=8),
    node("gx").has(cpu=8, memory="8Gi", gpu=8, **{X: 1}),
]
BOTH = {"nvidia.com/gpu": 3, X: 1}
NOTHING = {"nvidia.com/gpu": 0, X: 0}
SRA_ROWS: list[tuple[str, Thing, Thing, dict[str, float]]] = [
    ("scarce nodes are spared", {"resourceWeight": BOTH}, CPU, {"c": 200, "g": 50, "gx": 0}),
    ("who needs them goes there", {"resourceWeight": BOTH}, GPU, {"c": 0, "g": 50, "gx": 0}),
    ("weights are 1 if not given", {}, CPU, {"c": 200, "g": 100, "gx": 0}),
    ("or not for one", {"resourceWeight": {"nvidia.com/gpu": 3}}, CPU, {"c": 200, "g": 50, "gx": 0}),
    ("weights of nothing say nothing", {"resourceWeight": NOTHING}, CPU, {"c": 0, "g": 0, "gx": 0}),
    ("names that nobody has are on no node", {"resources": "example.com/y"}, CPU, {"c": 200, "g": 200, "gx": 200}),
]


@pytest.mark.parametrize(("what", "arguments", "asked", "expected"), SRA_ROWS, ids=[row[0] for row in SRA_ROWS])
def test_scarce_resources(what: str, arguments: Thing, asked: Thing, expected: dict[str, float]) -> None:
    sra = {"enable": True, "resources": f"nvidia.com/gpu, {X}", "weight": 2} | arguments
    plugin = strategy(resourceStrategyFitWeight=0, sra=sra)
    with opened(cluster(SCARCE, podgroup("a").admitted(), pod("p").gang("a").asks(**asked)), plugin) as session:
        assert scores(session, "p") == pytest.approx(expected)


def proportional(**rates: float) -> str:
    proportion = {f"nvidia.com/gpu.{of}": rate for of, rate in rates.items()}
    return strategy(proportional={"enable": True, "resources": "nvidia.com/gpu", "resourceProportion": proportion})


RESERVE_ROWS: list[tuple[str, str, Thing, bool]] = [
    ("enough is left", proportional(cpu=4, memory=8), {"cpu": 8, "memory": "2Gi"}, True),
    ("too little cpu is left", proportional(cpu=4, memory=8), {"cpu": "8001m"}, False),
    ("too little memory is left", proportional(cpu=0, memory=8), {"cpu": 1, "memory": "20Gi"}, False),
    ("who asks for the resource is free", proportional(cpu=4, memory=8), {"cpu": 30, "gpu": 1}, True),
    ("one core and one GB if not said", proportional(), {"cpu": 26}, True),
    ("just enough memory is left", proportional(cpu=0, memory=8), {"cpu": 1, "memory": 64 * 2**30 - 48 * 10**9}, True),
    ("a byte too little", proportional(cpu=0, memory=8), {"cpu": 1, "memory": 64 * 2**30 - 48 * 10**9 + 1}, False),
    ("nothing is nothing", proportional(cpu=0, memory=0), {"cpu": 32, "memory": "64Gi"}, True),
    ("half a core", proportional(cpu=0.5, memory=0), {"cpu": 29}, True),
    ("not more than one", proportional(cpu=-3), {"cpu": 26}, True),
    ("negative is one", proportional(cpu=-3), {"cpu": "26001m"}, False),
]


@pytest.mark.parametrize(("what", "plugin", "asked", "admitted"), RESERVE_ROWS, ids=[row[0] for row in RESERVE_ROWS])
def test_cpu_and_memory_stay_for_idle_units(what: str, plugin: str, asked: Thing, admitted: bool) -> None:
    """6 of 8 GPUs are idle: 24 cores and 48 GB stay reserved at 4 and 8 a unit."""
    nodes = [node("g").has(cpu=34, memory="64Gi", gpu=8), node("c").has(cpu=1, memory="1Gi")]
    made = cluster(
        nodes,
        podgroup("r").admitted(),
        pod("s").gang("r").on("g").asks(cpu=2, gpu=2),
        podgroup("a").admitted(),
        pod("p").gang("a").asks(**asked),
    )
    with opened(made, plugin) as session:
        said = refusals(session, "p")
        assert session.evaluation(made.tasks["default/p"]).resolvable.tolist() == [admitted, True]  # no eviction would help
    assert said == ({} if admitted else {"g": "proportional of resource nvidia.com/gpu check failed"})


def test_a_resource_that_no_node_has_reserves_nothing() -> None:
    made = cluster(node("c").cpu(2), podgroup("a").admitted().pods(2, cpu=1))
    assert len(binds(outcome(made, "gang", f"predicates, {proportional(cpu=4)}"))) == 2
