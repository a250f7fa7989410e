"""Equal tasks that are planned together go where they would go one by one."""

from __future__ import annotations

import pytest
from queued import bound_to, cluster, job, node, outcome, pods
from scene import Thing

TIERS: list[tuple[str, ...]] = [
    ("gang", "predicates, nodeorder"),
    ("gang", "predicates, {name: nodeorder, arguments: {leastrequested.weight: 0, mostrequested.weight: 3}}, binpack"),
    ("gang", "predicates, binpack"),
]


def things(distinct: bool) -> list[Thing]:
    """Eight pods for three unequal nodes; with `distinct` their specs differ in a way that no rule minds."""
    tasks = pods("a", 8, cpu=2, memory="3Gi")
    for number, task in enumerate(tasks):
        task["spec"]["containers"][0]["image"] = f"image:{number}" if distinct else "image"
    nodes = [node("n1", cpu=20, memory="64Gi"), node("n2", cpu=9, memory="64Gi"), node("n3", cpu=12, memory="20Gi")]
    return [*nodes, job("a", least=8), *tasks]


@pytest.mark.parametrize("tiers", TIERS, ids=["least", "most", "binpack"])
def test_a_run_of_equal_tasks_is_placed_like_tasks_apart(tiers: tuple[str, ...]) -> None:
    together = bound_to(outcome(cluster(things(False)), *tiers))
    assert len(together) == 8
    assert together == bound_to(outcome(cluster(things(True)), *tiers))
