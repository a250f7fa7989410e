"""Plugins that disagree evict in a ring without end; here the ring comes to rest, and whoever gains by evicting is left alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.past_evictions import EVICTION_LOOP
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.queue import Queue
from pumice.scheduler.model.task import Task
from pumice.simulate.inputs import read_policy
from pumice.simulate.record import Record
from pumice.simulate.scenario import cluster_of
from pumice.simulate.simulated_cluster import Habits, SimulatedCluster
from pumice.simulate.workload import Work, Workload, node, role
from pumice.testing import PodBuilder, node as a_node, pod, podgroup, priority_class, queue
from pumice.testing.scene import NOW, policy

CAPACITY = """
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: capacity}]
"""


def capacity(tmp_path: Path, text: str = CAPACITY) -> Policy:
    (tmp_path / "conf").write_text(text)
    return read_policy(str(tmp_path / "conf"))[0]


def job(name: str, queue_name: str, cpu: int, at: float = 0.0) -> Work:
    return Work(name, at, 1e6, (role(1, {"cpu": cpu}),), queue_name)


def played(decides: Policy, cpu: int, queues: list[Any], jobs: list[Work], until: float = 50.0) -> tuple[list[Any], Cluster]:
    """Evictions as (who, why), and the cluster at the end."""
    rows: list[tuple[Any, ...]] = []
    work = Workload("", iter(jobs), [node("n", {"cpu": cpu})], [each.build() for each in queues])
    made = cluster_of(decides, work)
    SimulatedCluster(made, decides, work.jobs, Record(event=rows.append), Habits(until=until)).play()
    return [(row[2], row[6]) for row in rows if row[1] == "evict"], made


def test_a_queue_that_is_served_first_and_must_give_comes_to_rest(tmp_path: Path) -> None:
    """q1 deserves 3 and has one pod of 4, q2 deserves 5, runs 1 and waits with 4: q1 gives, and is served first."""
    queues = [queue("q1").deserves(cpu=3), queue("q2").deserves(cpu=5)]
    evicted, made = played(capacity(tmp_path), 8, queues, [job("a", "q1", 4), job("b", "q2", 1), job("c", "q2", 4, at=1.0)])
    assert evicted == [("a", "reclaim for default/c-0")] * 2
    assert {task.name for task in made.nodes.tasks[0].values()} == {"b-0", "c-0"}


def test_a_borrower_whose_share_is_the_smallest_comes_to_rest(tmp_path: Path) -> None:
    """Fair shares with borrowing, as in Kueue's cohorts: b lends what it does not use, a borrows it, must give it back for c, and is then
    the one with the smallest share."""
    decides = capacity(
        tmp_path, CAPACITY.replace("capacity", "capacity, enabledHierarchy: true").replace("allocate,", "allocate, preempt,")
    )
    deserved = {"a": 1, "b": 3, "c": 1}
    queues = [queue("cohort").deserves(cpu=5), *(queue(name).deserves(cpu=cpu).parent("cohort") for name, cpu in deserved.items())]
    jobs = [job("lends", "b", 1), job("borrows", "a", 4, at=1.0), job("waits", "c", 1, at=2.0)]
    evicted, made = played(decides, 5, queues, jobs, until=300.0)
    assert evicted == [("borrows", "reclaim for default/waits-0")] * 2
    assert {task.name for task in made.nodes.tasks[0].values()} == {"lends-0", "waits-0"}


@pytest.mark.parametrize("shares", ["capacity", "proportion", "drf}, {name: capacity"])
def test_jobs_of_one_pod_in_two_full_queues_change_places_once(shares: str, tmp_path: Path) -> None:
    decides = capacity(tmp_path, CAPACITY.replace("capacity", shares).replace("allocate,", "allocate, preempt,"))
    queues = [queue(name).deserves(cpu=3.5) if "capacity" in shares else queue(name) for name in ("q1", "q2")]
    jobs = [job(f"{name}-{number}", name, 1, at) for at, name in enumerate(("q1", "q2")) for number in range(9)]
    evicted, made = played(decides, 7, queues, jobs, until=200.0)
    assert len(evicted) == len({who for who, _ in evicted}) == 3
    assert Counter(task.job.queue.name for task in made.nodes.tasks[0].values() if task.job and task.job.queue) == {"q1": 4, "q2": 3}


class Ring(Plugin):
    """b takes from a, c from b, a from c; who gave last is served last."""

    name = "ring"
    GIVES: ClassVar[dict[str, str]] = {"b": "a", "c": "b", "a": "c"}
    last: ClassVar[str] = ""

    def reclaimable(self, evictor: Task, candidates: list[Task]) -> list[Task]:
        assert evictor.job is not None
        victims = [task for task in candidates if task.job is not None and task.job.name == self.GIVES[evictor.job.name]]
        Ring.last = victims[0].job.name if victims and victims[0].job is not None else Ring.last
        return victims

    def queue_order(self, queue: Queue) -> bool:
        return queue.name == Ring.last

    def job_starving(self, job: Job) -> bool:
        return job.is_starving


def test_a_ring_of_three_comes_to_rest() -> None:
    decides = policy("allocate, reclaim", ["predicates", Ring])
    queues, jobs = [queue(name) for name in "abc"], [job(name, name, 1, at) for at, name in enumerate("abc")]
    evicted, made = played(decides, 1, queues, jobs)
    assert len(evicted) >= 4, "it has gone round"
    assert max(Counter(evicted).values()) == 2
    assert len(made.nodes.tasks[0]) == 1


# One pair, cycle by cycle


def put(made: Cluster, name: str, queue_name: str, *pods: PodBuilder, least: int = 1) -> None:
    made.put(*podgroup(name, least).queue(queue_name).phase("Inqueue").build())
    for each in pods:
        made.put(*each.gang(name).build())


def loops(decided: Decisions) -> list[str]:
    return [event.message for event in decided.events if event.reason == EVICTION_LOOP]


def test_who_waits_for_a_beneficiary_that_cannot_start_waits_for_a_while_and_is_told_so(tmp_path: Path) -> None:
    decides, made = capacity(tmp_path), Cluster()
    for each in (queue("q1").deserves(cpu=3), queue("q2").deserves(cpu=5), a_node("n").cpu(8)):
        made.put(*each.build())
    victim = pod("a").cpu(4).tolerates("new")
    put(made, "a", "q1", victim.gang("a").on("n"))
    put(made, "b", "q2", pod("b").cpu(1).on("n"))
    put(made, "c", "q2", pod("c").cpu(4))

    def comes_back(now: float) -> Decisions:
        made.remove("Pod", "default/a")
        made.put(*victim.gang("a").build())
        return cycle(made, decides, now)

    assert not loops(cycle(made, decides, NOW))
    assert [bind.task.name for bind in comes_back(NOW + 1).binds] == ["a"]
    made.put(*victim.gang("a").on("n").build())
    told = "evicted 2 times by reclaim for default/c, which has not started by it: waits for it, and is not evicted for it again, before "
    assert loops(cycle(made, decides, NOW + 2)) == [told + "2026-01-01T00:01:02Z"]

    made.put(*a_node("n").cpu(8).taint("new").build())  # c can no longer go there
    held = comes_back(NOW + 3)
    assert not held.binds
    assert held.again_at == NOW + 62
    assert {waiting.task.name: waiting.message for waiting in held.waiting}["a"] == told + "2026-01-01T00:01:02Z"
    assert [bind.task.name for bind in cycle(made, decides, NOW + 62).binds] == ["a"]

    made.put(*victim.gang("a").on("n").build())
    made.put(*a_node("n").cpu(8).build())
    assert loops(cycle(made, decides, NOW + 63)) == [told.replace("2 times", "3 times") + "2026-01-01T00:03:03Z"], "twice as long"


def test_who_gains_by_each_eviction_is_in_no_loop() -> None:
    """A job of high priority grows pod by pod; the other's pods come back each time."""
    decides, made = policy("allocate, preempt", ["priority", "gang", "predicates"]), Cluster()
    for each in (queue("default"), a_node("n").cpu(3), priority_class("high", 10)):
        made.put(*each.build())
    put(made, "low", "default", *pod("low").cpu(1).on("n").times(3))
    for number in range(2):
        made.put(*podgroup("high", number + 1).priority_class("high").phase("Inqueue").build())
        made.put(*pod(f"high-{number}").cpu(1).priority(10).gang("high").build())
        decided = cycle(made, decides, NOW + 10 * number)
        assert len(decided.evictions) == 1 and not loops(decided)
        (gone,) = decided.evictions
        made.remove("Pod", gone.task.key)
        made.put(*pod(f"high-{number}").cpu(1).priority(10).gang("high").on("n").build())
        made.put(*a_node("n").cpu(4 + number).build())
        made.put(*pod(gone.task.name).cpu(1).gang("low").build())
        assert [bind.task.name for bind in cycle(made, decides, NOW + 10 * number + 1).binds] == [gone.task.name]


def test_an_eviction_of_long_ago_is_forgotten(tmp_path: Path) -> None:
    decides, made = capacity(tmp_path), Cluster()
    for each in (queue("q1").deserves(cpu=3), queue("q2").deserves(cpu=5), a_node("n").cpu(8)):
        made.put(*each.build())
    put(made, "a", "q1", pod("a").cpu(4).on("n"))
    put(made, "b", "q2", pod("b").cpu(1).on("n"))
    put(made, "c", "q2", pod("c").cpu(4))
    for now in (NOW, NOW + 700):
        assert [eviction.task.name for eviction in cycle(made, decides, now).evictions] == ["a"]
        made.remove("Pod", "default/a")
        made.put(*pod("a").cpu(4).gang("a").build())
        decided = cycle(made, decides, now + 1)
        assert not loops(decided) and [bind.task.name for bind in decided.binds] == ["a"]
        made.put(*pod("a").cpu(4).gang("a").on("n").build())
