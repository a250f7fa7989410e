"""pdb: nobody is evicted whom a PodDisruptionBudget protects."""

from __future__ import annotations

from typing import Any

import pytest
from scene import Thing, evicted, opened, outcome

from pumice.testing import Builder, cluster, manifest, node, pod, podgroup, priority_class


def budget(name: str, allowed: int, selector: Thing | None = None, namespace: str = "default", **status: Any) -> Builder:
    spec = {"selector": {"matchLabels": selector}} if selector is not None else {}
    return manifest("PodDisruptionBudget", name, namespace, spec=spec, status={"disruptionsAllowed": allowed} | status)


A, B = {"app": "a"}, {"tier": "b"}
ROWS: list[tuple[str, list[Builder], list[Thing], list[int]]] = [
    ("a budget of none protects", [budget("x", 0, A)], [A], []),
    ("a budget of one lets one go", [budget("x", 1, A)], [A, A], [0]),
    ("each budget counts", [budget("x", 0, A), budget("y", 2, B)], [A, B], [1]),
    ("a pod of two budgets needs both", [budget("x", 1, A), budget("y", 0, B)], [A | B, A], []),
    ("pods without labels are free", [budget("x", 0, A)], [{}], [0]),
    ("a budget without selector protects nobody", [budget("x", 0), budget("y", 0, {})], [A], [0]),
    ("budgets of other namespaces do not count", [budget("x", 0, A, "other")], [A], [0]),
    ("a pod already being disrupted does not count again", [budget("x", 0, A, disruptedPods={"v-0": "2025-12-31T23:59:00Z"})], [A, A], [0]),
]


@pytest.mark.parametrize(("what", "budgets", "labels", "free"), ROWS, ids=[row[0] for row in ROWS])
def test_who_is_free_to_go(what: str, budgets: list[Builder], labels: list[Thing], free: list[int]) -> None:
    victims = [pod(f"v-{number}").gang("low").on("n").cpu(1).labels(each) for number, each in enumerate(labels)]
    made = cluster(node("n").cpu(8), podgroup("low").admitted(), victims, budgets)
    with opened(made, "pdb") as session:
        tasks = list(made.tasks.values())
        named = session.evictable.permitted("reclaimable", tasks[0], tasks)
        assert session.victim_tasks(tasks) == []
    assert [task.name for task in named] == [f"v-{number}" for number in free]


def test_preemption_spares_the_protected() -> None:
    victims = [pod("v-0").gang("low").on("n").cpu(1).labels(A), pod("v-1").gang("low").on("n").cpu(1).labels(B)]
    jobs = [priority_class("high", 10), podgroup("low", 0).admitted(), podgroup("high").priority_class("high").admitted()]
    made = cluster(node("n").cpu(2), jobs, pod("p").gang("high").cpu(1), victims, budget("x", 0, A))
    assert evicted(outcome(made, "priority, gang, pdb", "predicates", actions="preempt")) == ["v-1"]
