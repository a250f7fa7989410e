"""What is remembered of earlier answers costs bounded memory and changes no answer."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pumice.scheduler.engine import evaluations
from pumice.scheduler.engine.evaluation import Evaluation
from pumice.scheduler.engine.evaluations import Evaluations
from pumice.scheduler.engine.rules import Filter, Reach, Reason, Refused, Scorer, Unscored
from pumice.scheduler.engine.view import NodeColumns, View
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.task import Task
from pumice.scheduler.model.template import Template
from pumice.scheduler.plugins.kube.least_allocated import LeastAllocated
from pumice.scheduler.plugins.kube.most_allocated import MostAllocated
from pumice.scheduler.plugins.kube.node_affinity import NodeAffinityFilter
from pumice.scheduler.plugins.kube.node_resources_balanced_allocation import BalancedAllocation
from pumice.testing import cluster, node, pod, podgroup, schedule, session

KINDS = 2 * evaluations.KEPT_AT_LEAST


def many_kinds() -> Cluster:
    """Pods that all ask for something else, in a fixed order, twice."""
    pods = [pod(f"p{turn}-{kind}").cpu(f"{kind + 1}m").gang("g") for turn in range(2) for kind in range(KINDS)]
    return cluster(*(node(name).cpu(size) for name, size in (("a", 6), ("b", 9), ("c", 4))), podgroup("g"), *pods)


def test_of_many_kinds_of_tasks_the_longest_unused_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluations, "KEPT_CELLS", 0)
    made = many_kinds()
    with session(made, "predicates", "nodeorder") as opened:
        tasks = list(made.tasks.values())[: evaluations.KEPT_AT_LEAST + 1]
        found = [opened.evaluation_of(task) for task in tasks[:-1]]
        assert opened.evaluation_of(tasks[0]) is found[0]
        opened.evaluation_of(tasks[-1])
        assert opened.evaluation_of(tasks[0]) is found[0]
        assert opened.evaluation_of(tasks[1]) is not found[1]


def test_what_was_forgotten_is_answered_anew_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = schedule(many_kinds(), "enqueue, allocate", "gang", "predicates", "nodeorder").binds
    monkeypatch.setattr(evaluations, "KEPT_CELLS", 0)
    assert len(expected) == 2 * KINDS
    assert schedule(many_kinds(), "enqueue, allocate", "gang", "predicates", "nodeorder").binds == expected


def test_a_view_of_some_rows_shows_these() -> None:
    made = cluster(*(node(f"n{number}").cpu(number + 1) for number in range(80)), pod("p").cpu(1).on("n2"))
    chosen = np.arange(0, 80, 2)
    view = View(made.nodes, chosen)
    assert view.names == [f"n{number}" for number in chosen]
    assert view.allocatable[0].tolist() == [1000 * (number + 1) for number in chosen]
    assert view.idle[0].tolist() == [1000 * (number + 1) - 1000 * (number == 2) for number in chosen]
    assert view.future_idle.tolist() == view.idle.tolist(), "nobody leaves, nothing is promised"


def test_showing_some_rows_copies_no_others() -> None:
    made = cluster(*(node(f"n{number}").cpu(1) for number in range(1000)))
    view = View(made.nodes, np.arange(100))
    tracemalloc.start()
    try:
        shown = view.idle
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 2 * shown.nbytes


class Counted(Filter):
    """Refuses nothing. Counts how often it is asked."""

    name = "Counted"
    reach = Reach.STATIC

    def __init__(self, *, reads_amounts: bool) -> None:
        self.reads_amounts = reads_amounts
        self.prepared = self.asked = 0

    def prepare(self, task: Task) -> Any:
        self.prepared += 1
        return task.template

    def refuse(self, state: Any, nodes: View) -> list[Refused]:
        self.asked += 1
        return []


def evaluated(made: Cluster, *filters: Filter, scorers: Sequence[Scorer] = ()) -> list[Evaluation]:
    """Of all pods, one after the other."""
    kinds = Evaluations(made, filters, scorers)
    found = [kinds.of(task) for task in made.tasks.values()]
    for each in found:
        each.refresh()
    return found


def test_rules_that_do_not_read_amounts_are_asked_once_for_pods_that_differ_in_them() -> None:
    made = cluster(node("a").cpu(9), *(pod(f"p{number}").cpu(number + 1).limits(memory=f"{number}Gi") for number in range(5)))
    indifferent, reading = Counted(reads_amounts=False), Counted(reads_amounts=True)
    assert len(set(map(id, evaluated(made, indifferent, reading)))) == 5
    assert (indifferent.prepared, indifferent.asked) == (1, 1)
    assert (reading.prepared, reading.asked) == (5, 5)


def test_pods_that_differ_in_more_than_amounts_share_nothing() -> None:
    made = cluster(node("a").cpu(9).label("disk", "ssd"), pod("p").cpu(1), pod("q").cpu(2).selector("disk", "hdd"))
    p, q = evaluated(made, NodeAffinityFilter())
    assert (p.admitted.tolist(), q.admitted.tolist()) == ([True], [False])


class ByLabel(Counted):
    """Tells pods without a priority apart by a label."""

    def __init__(self) -> None:
        super().__init__(reads_amounts=False)
        self.told: list[str] = []

    def key(self, task: Task) -> str:
        self.told.append(task.name)
        return task.labels.get("color", "")

    def tells_apart(self, template: Template) -> bool:
        return template.priority_value is None


def test_rules_are_asked_only_for_keys_that_may_tell_pods_apart() -> None:
    colors = {"a": "red", "b": "blue", "c": "red"}
    plain = [pod(name).label("color", color) for name, color in colors.items()]
    made = cluster(node("n").cpu(9), *plain, *(pod(f"urgent-{name}").label("color", color).priority(5) for name, color in colors.items()))
    rule = ByLabel()
    found = evaluated(made, rule)
    assert [found.index(each) for each in found] == [0, 1, 0, 3, 3, 3]
    assert rule.told == ["a", "b", "c"]


class Unshared(Filter):
    """Refuses nodes where a pod is."""

    name = "Unshared"
    reach = Reach.NODE

    def refuse(self, state: Any, nodes: View) -> list[Refused]:
        return [Refused(nodes.used[0] > 0, Reason("somebody is there"))]


@pytest.mark.parametrize("changed", [[19, 3], range(3, 12)])
def test_nodes_that_have_changed_are_asked_about_and_scored_as_all_are_at_once(changed: Sequence[int]) -> None:
    made = cluster(*(node(f"n{number:02}").cpu(8).memory("8Gi") for number in range(40)), pod("p").cpu(1))
    (task,) = made.tasks.values()

    def fresh() -> Evaluation:
        found = Evaluations(made, [Unshared()], [LeastAllocated()]).of(task)
        found.refresh()
        return found

    kept, everywhere = fresh(), np.ones(40, bool)
    assert kept.best_with_room() == 0
    for _ in range(2):  # scores are kept from the second time on
        kept.totals(everywhere)
    for number in changed:
        made.put(*pod(f"x{number}").cpu(2).on(f"n{number:02}").build())
    assert kept.best_with_room() == fresh().best_with_room() == 0
    assert kept.totals(everywhere).tolist() == fresh().totals(everywhere).tolist()
    made.put(*pod("y").cpu(1).on("n00").build())
    assert kept.best_with_room() == fresh().best_with_room() == 1


def test_a_node_that_its_labels_rule_out_stays_out_whatever_comes_to_it() -> None:
    nodes = node("fit").cpu(8).memory("8Gi").label("disk", "ssd"), node("unfit").cpu(8).memory("8Gi")
    made = cluster(*nodes, pod("p").cpu(1).selector("disk", "ssd"), pod("x").cpu(4).on("fit"))
    kept = Evaluations(made, [NodeAffinityFilter()], [LeastAllocated()]).of(made.tasks["default/p"])
    for name in ("y", "z"):
        assert made.nodes.names[kept.best_with_room()] == "fit"
        made.put(*pod(name).cpu(1).on("unfit").build())
    assert made.nodes.names[kept.best_with_room()] == "fit"


class Silenced(Scorer):
    """Cannot answer."""

    name = "Silenced"
    reads_amounts = False

    def prepare(self, task: Task) -> Any:
        raise Unscored(Reason("no answer"))


def test_what_a_scorer_could_not_answer_rejects_all_kinds() -> None:
    made = cluster(node("a").cpu(9), pod("p").cpu(1), pod("q").cpu(2))
    assert [each.rejected for each in evaluated(made, scorers=[Silenced()])] == [Reason("no answer")] * 2


def test_a_single_node_is_scored_by_the_same_rules_as_all() -> None:
    """Nodes that lack a resource, are full, or over their amounts; pods that request two resources, three, or none."""
    sizes = [(4, "8Gi", 4), (1, "7Gi", 0), (7, "3Gi", 3), (3, "1Gi", 0), (0, "4Gi", 1)]
    nodes = [node(f"n{number}").cpu(cpu).memory(memory).gpu(gpu) for number, (cpu, memory, gpu) in enumerate(sizes)]
    pods = [pod(f"p{number}").cpu(f"{700 * number}m").memory("900Mi").gpu(1).on(f"n{number}") for number in range(5)]
    wanted = [pod("two").cpu("300m").memory("1Gi"), pod("three").cpu("300m").memory("1Gi").gpu(2), pod("none")]
    made = cluster(*nodes, *pods, *wanted)
    names = "cpu", "memory", "nvidia.com/gpu"
    balance = [BalancedAllocation(names[:count], compare=compare) for count in (2, 3) for compare in (True, False)]
    for rule in (LeastAllocated(), LeastAllocated({"cpu": 2, "nvidia.com/gpu": 1}), MostAllocated(), *balance):
        for name in ("two", "three", "none"):
            state = rule.prepare(made.tasks[f"default/{name}"])
            assert [rule.score_one(state, made.nodes, row) for row in range(5)] == rule.score(state, View(made.nodes)).tolist()


def test_the_view_of_one_row_has_that_row() -> None:
    table = cluster(*(node(name).cpu(size) for name, size in (("a", 6), ("b", 9), ("c", 4)))).nodes
    shown = NodeColumns(table, 1)
    column = shown.column("cpu")
    assert (len(shown), shown.names, shown.of(np.arange(3)).tolist()) == (1, ["b"], [1])
    assert column is not None and shown.allocatable[column] == 9000


def test_the_keys_of_templates_that_come_and_go_are_not_all_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluations, "LASTING_CELLS", 0)
    made = cluster(node("n").cpu(4), *(pod(f"p{number}").cpu(number) for number in range(evaluations.KEPT_AT_LEAST + 5)))
    kinds = Evaluations(made, [NodeAffinityFilter()], [LeastAllocated()])
    keys = [kinds.key(task) for task in made.tasks.values()]
    assert len(set(keys)) == len(keys) > evaluations.KEPT_AT_LEAST
    assert len(kinds._keys) <= evaluations.KEPT_AT_LEAST
    assert [kinds.key(task) for task in made.tasks.values()] == keys
