"""priority and conformance: the more important first, the less important may go, the vital stays."""

from __future__ import annotations

from typing import Any

import pytest
from scene import binds, evicted, opened, outcome

from pumice.scheduler.model.cluster import Cluster
from pumice.testing import cluster, node, pod, podgroup, priority_class

CLASSES = [priority_class("high", 100), priority_class("low", 1)]
TIERS = ("priority, gang", "predicates")


def test_the_more_important_job_is_served_first() -> None:
    low = [*podgroup("low").priority_class("low").admitted().pods(1, cpu=2)]
    high = [*podgroup("high").priority_class("high").admitted().created(9).pods(1, cpu=2)]
    assert sorted(binds(outcome(cluster(CLASSES, node("n").cpu(2), low, high), *TIERS))) == ["high-0"]


def test_the_more_important_task_is_served_first() -> None:
    things = [podgroup("a").admitted(), pod("a-x-0").gang("a").cpu(2), pod("a-x-1").gang("a").cpu(2).priority(5)]
    assert sorted(binds(outcome(cluster(node("n").cpu(2), things), *TIERS))) == ["a-x-1"]


def test_the_sub_group_with_the_most_important_task_is_served_first() -> None:
    parts = [{"name": "s", "subGroupSize": 1, "minSubGroups": 1, "matchLabelKeys": ["part"]}]
    tasks = [pod(f"a-{part}").gang("a").cpu(2).priority(part).label("part", str(part)) for part in range(3)]
    assert sorted(
        binds(outcome(cluster(node("n").cpu(2), podgroup("a").having("spec", "subGroupPolicy", value=parts).admitted(), tasks), *TIERS))
    ) == ["a-2"]


def victims(made: Cluster, preemptor: str) -> list[str]:
    with opened(made, "priority") as session:
        existing = [task for task in made.tasks.values() if task.node >= 0]
        return [task.name for task in session.evictable.permitted("preemptable", made.tasks[f"default/{preemptor}"], existing)]


def test_tasks_of_less_important_jobs_and_less_important_tasks_of_the_own_job_may_go() -> None:
    jobs = [
        podgroup("l").priority_class("low").admitted(),
        podgroup("h").priority_class("high").admitted(),
        podgroup("own").priority_class("high").admitted(),
    ]
    existing = [pod("l").gang("l").on("n").priority(999), pod("h").gang("h").on("n").priority(0), pod("stray").on("n")]
    own = [pod(name).gang("own").on(on).priority(priority) for name, on, priority in (("o-low", "n", 3), ("o-same", "n", 5), ("p", "", 5))]
    assert victims(cluster(CLASSES, node("n").cpu(9), jobs, existing, own), "p") == ["l", "o-low"]


def test_nobody_may_lose_tasks_to_others_while_none_that_runs_is_less_important_than_one_that_waits() -> None:
    jobs = [podgroup(name).priority_class(name.partition("-")[0]).admitted() for name in ("low", "low-waits", "low-grows")]
    running = [pod("low").gang("low").on("n").cpu(1), pod("low-grows-0").gang("low-grows").on("n").cpu(1)]
    waiting = [pod("low-waits").gang("low-waits").cpu(1), pod("low-grows-1").gang("low-grows").cpu(1)]
    made = cluster(CLASSES, node("n").cpu(2), jobs, running, waiting)
    with opened(made, "priority") as session:  # a job might still evict its own less important tasks
        assert session.evictable.exposed("preemptable") == {made.jobs["default/low-grows"]}
    made.remove("Pod", "default/low-grows-1")
    with opened(made, "priority") as session:
        assert not session.evictable.exposed("preemptable") and not session.evictable.exposes_any("preemptable")
    for each in (podgroup("high").priority_class("high").admitted(), pod("high").gang("high").cpu(1)):
        made.put(*each.build())
    with opened(made, "priority") as session:
        assert session.evictable.exposed("preemptable") == set(made.jobs.values())
        spared = {name: session.evictable.spared_rows("preemptable", made.tasks[f"default/{name}"]) for name in ("high", "low-waits")}
        assert spared == {"high": False, "low-waits": True}
    made.put(*pod("low-grows-1").gang("low-grows").cpu(1).build())
    with opened(made, "priority") as session:  # it might evict its own tasks
        assert session.evictable.spared_rows("preemptable", made.tasks["default/low-grows-1"]) is False


class Context:
    """What the gang actions tell plugins."""

    def __init__(self, kind: str, of: Any) -> None:
        self.kind, self.job = kind, of


def test_gangs_take_from_less_important_jobs_and_across_queues_from_anybody() -> None:
    jobs = [
        podgroup("l").priority_class("low").admitted(),
        podgroup("h").priority_class("high").admitted(),
        podgroup("own").priority_class("high").admitted(),
    ]
    made = cluster(
        CLASSES, node("n").cpu(9), jobs, pod("l").gang("l").on("n"), pod("h").gang("h").on("n"), pod("stray").on("n"), pod("p").gang("own")
    )
    with opened(made, "priority") as session:
        plugin, of = session.plugin("priority"), made.jobs["default/own"]
        existing = [task for task in made.tasks.values() if task.node >= 0]
        assert [task.name for task in plugin.unified_evictable(Context("gangpreempt", of), existing)] == ["l"]
        assert plugin.unified_evictable(Context("gangreclaim", of), existing) == existing


@pytest.mark.parametrize(("tiers", "starving"), [(("priority", "gang"), True), (("priority, gang",), False), (("gang", "priority"), False)])
def test_in_a_tier_before_gang_a_job_starves_while_any_task_is_missing(tiers: tuple[str, ...], starving: bool) -> None:
    made = cluster(node("n").cpu(1), podgroup("a").admitted(), pod("a-0").gang("a").on("n").cpu(1), pod("a-1").gang("a").cpu(1))
    with opened(made, *tiers) as session:
        assert session.job_starving(made.jobs["default/a"]) == starving


def test_a_task_that_waits_for_room_is_not_missing() -> None:
    made = cluster(
        node("n").cpu(9),
        podgroup("a").admitted(),
        pod("a-0").gang("a").on("n").cpu(1),
        pod("a-1").gang("a").cpu(1),
        pod("a-2").gang("a").cpu(1),
    )
    with opened(made, "priority") as session, session.statement() as statement:
        statement.pipeline(made.tasks["default/a-1"], 0)
        assert session.job_starving(made.jobs["default/a"])
        statement.pipeline(made.tasks["default/a-2"], 0)
        assert not session.job_starving(made.jobs["default/a"])


VITAL_ROWS: list[tuple[str, str, bool]] = [
    ("of a system class", "system-cluster-critical", False),
    ("of the nodes' class", "system-node-critical", False),
    ("any other", "low", True),
]


@pytest.mark.parametrize(("what", "of", "goes"), VITAL_ROWS, ids=[row[0] for row in VITAL_ROWS])
def test_what_keeps_the_cluster_alive_is_nobodys_victim(what: str, of: str, goes: bool) -> None:
    jobs = [podgroup("low", 0).priority_class("low").admitted(), podgroup("high").priority_class("high").admitted()]
    made = cluster(
        CLASSES,
        node("n").cpu(1),
        jobs,
        pod("v").gang("low").on("n").cpu(1).having("spec", "priorityClassName", value=of),
        pod("p").gang("high").cpu(1),
    )
    assert evicted(outcome(made, "priority, gang, conformance", "predicates", actions="preempt")) == (["v"] if goes else [])


def test_nor_is_anything_of_the_system_namespace() -> None:
    system = pod("v", "kube-system").gang("low").on("n").cpu(1)
    made = cluster(node("n").cpu(1), system, podgroup("high").admitted(), pod("p").gang("high").cpu(1))
    with opened(made, "conformance") as session:
        assert session.evictable.permitted("reclaimable", made.tasks["default/p"], [made.tasks["kube-system/v"]]) == []
