"""priority and conformance: the more important first, the less important may go, the vital stays."""

from __future__ import annotations

from typing import Any

import pytest
from queued import bound, cluster, evicted, job, node, opened, outcome, pod, pods, priority_class
from scene import Thing

from pumice.scheduler.model.cluster import Cluster

CLASSES = [priority_class("high", 100), priority_class("low", 1)]
TIERS = ("priority, gang", "predicates")


def test_the_more_important_job_is_served_first() -> None:
    low = [job("low", priorityClassName="low"), *pods("low", 1, cpu=2)]
    high = [job("high", born=9, priorityClassName="high"), *pods("high", 1, cpu=2)]
    assert bound(outcome(cluster(CLASSES, node("n", cpu=2), low, high), *TIERS)) == ["high-w-0"]


def test_the_more_important_task_is_served_first() -> None:
    things = [job("a"), pod("a-x-0", "a", cpu=2), pod("a-x-1", "a", cpu=2, spec={"priority": 5})]
    assert bound(outcome(cluster(node("n", cpu=2), things), *TIERS)) == ["a-x-1"]


def test_the_sub_group_with_the_most_important_task_is_served_first() -> None:
    parts = [{"name": "s", "subGroupSize": 1, "minSubGroups": 1, "matchLabelKeys": ["part"]}]
    tasks = [pod(f"a-{part}", "a", labels={"part": str(part)}, cpu=2, spec={"priority": part}) for part in range(3)]
    assert bound(outcome(cluster(node("n", cpu=2), job("a", subGroupPolicy=parts), tasks), *TIERS)) == ["a-2"]


def victims(made: Cluster, preemptor: str) -> list[str]:
    with opened(made, "priority") as session:
        standing = [task for task in made.tasks.values() if task.node >= 0]
        return [task.name for task in session.preemptable(made.tasks[f"default/{preemptor}"], standing)]


def test_tasks_of_less_important_jobs_and_less_important_tasks_of_the_own_job_may_go() -> None:
    jobs = [job("l", priorityClassName="low"), job("h", priorityClassName="high"), job("own", priorityClassName="high")]
    standing = [pod("l", "l", "n", spec={"priority": 999}), pod("h", "h", "n", spec={"priority": 0}), pod("stray", "", "n")]
    own = [
        pod(name, "own", on, spec={"priority": priority}) for name, on, priority in (("o-low", "n", 3), ("o-same", "n", 5), ("p", "", 5))
    ]
    assert victims(cluster(CLASSES, node("n", cpu=9), jobs, standing, own), "p") == ["l", "o-low"]


class Context:
    """What the gang actions tell plugins."""

    def __init__(self, kind: str, of: Any) -> None:
        self.kind, self.job = kind, of


def test_gangs_take_from_less_important_jobs_and_across_queues_from_anybody() -> None:
    jobs = [job("l", priorityClassName="low"), job("h", priorityClassName="high"), job("own", priorityClassName="high")]
    made = cluster(CLASSES, node("n", cpu=9), jobs, pod("l", "l", "n"), pod("h", "h", "n"), pod("stray", "", "n"), pod("p", "own"))
    with opened(made, "priority") as session:
        plugin, of = session.plugin("priority"), made.jobs["default/own"]
        standing = [task for task in made.tasks.values() if task.node >= 0]
        assert [task.name for task in plugin.unified_evictable(Context("gangpreempt", of), standing)] == ["l"]
        assert plugin.unified_evictable(Context("gangreclaim", of), standing) == standing


@pytest.mark.parametrize(("tiers", "starving"), [(("priority", "gang"), True), (("priority, gang",), False), (("gang", "priority"), False)])
def test_in_a_tier_before_gang_a_job_starves_while_any_task_is_missing(tiers: tuple[str, ...], starving: bool) -> None:
    made = cluster(node("n", cpu=1), job("a"), pod("a-0", "a", "n", cpu=1), pod("a-1", "a", cpu=1))
    with opened(made, *tiers) as session:
        assert session.job_starving(made.jobs["default/a"]) == starving


def test_a_task_that_waits_for_room_is_not_missing() -> None:
    made = cluster(node("n", cpu=9), job("a"), pod("a-0", "a", "n", cpu=1), pod("a-1", "a", cpu=1), pod("a-2", "a", cpu=1))
    with opened(made, "priority") as session, session.statement() as statement:
        statement.pipeline(made.tasks["default/a-1"], 0)
        assert session.job_starving(made.jobs["default/a"])
        statement.pipeline(made.tasks["default/a-2"], 0)
        assert not session.job_starving(made.jobs["default/a"])


VITAL_ROWS: list[tuple[str, Thing, bool]] = [
    ("of a system class", {"spec": {"priorityClassName": "system-cluster-critical"}}, False),
    ("of the nodes' class", {"spec": {"priorityClassName": "system-node-critical"}}, False),
    ("any other", {"spec": {"priorityClassName": "low"}}, True),
]


@pytest.mark.parametrize(("what", "marks", "goes"), VITAL_ROWS, ids=[row[0] for row in VITAL_ROWS])
def test_what_keeps_the_cluster_alive_is_nobodys_victim(what: str, marks: Thing, goes: bool) -> None:
    jobs = [job("low", least=0, priorityClassName="low"), job("high", priorityClassName="high")]
    made = cluster(CLASSES, node("n", cpu=1), jobs, pod("v", "low", "n", cpu=1, **marks), pod("p", "high", cpu=1))
    assert evicted(outcome(made, "priority, gang, conformance", "predicates", actions="preempt")) == (["v"] if goes else [])


def test_nor_is_anything_of_the_system_namespace() -> None:
    system = pod("v", "low", "n", cpu=1)
    system["metadata"]["namespace"] = "kube-system"
    made = cluster(node("n", cpu=1), system, job("high"), pod("p", "high", cpu=1))
    with opened(made, "conformance") as session:
        assert session.reclaimable(made.tasks["default/p"], [made.tasks["kube-system/v"]]) == []
