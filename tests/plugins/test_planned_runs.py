"""Equal tasks that are planned together go where they would go one by one."""

from __future__ import annotations

import pytest
from scene import binds, outcome

from pumice.testing import Builder, cluster, node, pod, podgroup

TIERS: list[tuple[str, ...]] = [
    ("gang", "predicates, nodeorder"),
    ("gang", "predicates, {name: nodeorder, arguments: {leastrequested.weight: 0, mostrequested.weight: 3}}, binpack"),
    ("gang", "predicates, binpack"),
]


def things(distinct: bool) -> list[Builder]:
    """Eight pods for three unequal nodes; with `distinct` their specs differ in a way that no rule minds."""
    tasks = [
        task.having("spec", "containers", 0, "image", value=f"image:{number}" if distinct else "image")
        for number, task in enumerate(pod("a").gang("a").asks(cpu=2, memory="3Gi").times(8))
    ]
    nodes = [node("n1").has(cpu=20, memory="64Gi"), node("n2").has(cpu=9, memory="64Gi"), node("n3").has(cpu=12, memory="20Gi")]
    return [*nodes, podgroup("a", 8).admitted(), *tasks]


@pytest.mark.parametrize("tiers", TIERS, ids=["least", "most", "binpack"])
def test_a_run_of_equal_tasks_is_placed_like_tasks_apart(tiers: tuple[str, ...]) -> None:
    together = binds(outcome(cluster(things(False)), *tiers))
    assert len(together) == 8
    assert together == binds(outcome(cluster(things(True)), *tiers))
