"""What theory says of queues, and what must hold however jobs come."""

from __future__ import annotations

from collections import Counter
from heapq import heapify, heapreplace
from math import factorial, sqrt
from pathlib import Path
from random import Random
from statistics import fmean, stdev
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pumice.scheduler.model.cluster import Cluster
from pumice.simulate.inputs import Source, nodes_of_pools, read_policy
from pumice.simulate.record import Record
from pumice.simulate.scenario import as_objects, cluster_of
from pumice.simulate.simulated_cluster import SimulatedCluster
from pumice.simulate.workload import Work, Workload, role
from tests.samples import times
from tests.simulate.playing import played

LONG = 5_000  #: jobs of a run of which a quarter is not counted, since it begins empty
RUNS = 20
STUDENT = 2.093  #: of 19 degrees of freedom, 95 %

queueing = pytest.mark.parametrize("servers", [1, 4, 32])
loaded = pytest.mark.parametrize("load", [0.5, 0.8, 0.95])


def page_of(path: Path, servers: int, load: float) -> Source:
    """Poisson arrivals, exponential runs of a minute."""
    path.write_text(
        f"duration: {150 / (load * servers)}m\nnodes: 1x{servers}cpu\njobs:\n- arrivals: {{poisson: {load * servers}/m}}\n"
        "  run: {exponential: 1m}\n  request: {cpu: 1}\n"
    )
    return Source("yaml", str(path))


def waits(jobs: list[tuple[float, float]], servers: int) -> list[float]:
    """Of jobs with arrival and run time that are served first come, first served."""
    free = [0.0] * servers
    heapify(free)
    found = []
    for submit, run in jobs:
        start = max(submit, free[0])
        heapreplace(free, start + run)
        found.append(start - submit)
    return found


def erlang_wait(servers: int, load: float) -> float:
    """The mean wait in run times: Erlang's C over the rate at which the line gets shorter."""
    offered = load * servers
    all_busy = offered**servers / factorial(servers) / (1 - load)
    return all_busy / (sum(offered**k / factorial(k) for k in range(servers)) + all_busy) / (servers * (1 - load))


@queueing
@loaded
def test_jobs_are_served_first_come_first_served(tmp_path: Path, servers: int, load: float) -> None:
    source = page_of(tmp_path / "page.yaml", servers, load)
    _, rows = played(source, "FIFO")
    jobs = [(work.submit, work.run) for work in source.read(None).jobs]
    assert [row["wait"] for row in rows] == pytest.approx(waits(jobs, servers), abs=1e-6)


@queueing
@loaded
def test_the_mean_wait_of_such_jobs_is_that_of_erlang(servers: int, load: float) -> None:
    means = []
    for seed in range(RUNS):
        random, now, jobs = Random(seed), 0.0, []
        for _ in range(LONG):
            now += random.expovariate(load * servers)
            jobs.append((now, random.expovariate(1.0)))
        means.append(fmean(waits(jobs, servers)[LONG // 4 :]))
    assert fmean(means) == pytest.approx(erlang_wait(servers, load), abs=STUDENT * stdev(means) / sqrt(RUNS))


# -- queues that take back what is theirs

CONF = """\
actions: "enqueue, allocate, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: capacity}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""


def evictions(tmp_path: Path, page: str, shares: str) -> Counter[str]:
    (tmp_path / "page.yaml").write_text(page)
    (tmp_path / "conf.yaml").write_text(CONF.replace("capacity", shares))
    summary, rows = played(Source("yaml", str(tmp_path / "page.yaml")), str(tmp_path / "conf.yaml"))
    assert {row["state"] for row in rows} == {"done"}
    return Counter({name: measures["evictions"] for name, measures in summary["queues"].items()})


def test_a_queue_takes_back_what_it_deserves_and_no_more(tmp_path: Path) -> None:
    """Of 64 CPUs a deserves 32 and has 16, b and c deserve 16 and have 24; a grows to 32."""
    kind = "- {{name: {name}, arrivals: {{at: {at}}}, run: 1h, pods: {pods}, minimum: 1, request: {{cpu: 1}}, queue: {queue}}}\n"
    jobs = [("a", [0], 16, "a"), ("b", [0], 24, "b"), ("c", [0], 24, "c"), ("more", [60] * 16, 1, "a")]
    page = "nodes: 1x64cpu\nqueues: {a: {deserved: {cpu: 32}}, b: {deserved: {cpu: 16}}, c: {deserved: {cpu: 16}}}\njobs:\n"
    page += "".join(kind.format(name=name, at=at, pods=pods, queue=queue) for name, at, pods, queue in jobs)
    assert evictions(tmp_path, page, "capacity") == {"a": 0, "b": 8, "c": 8}


def test_two_queues_come_to_rest(tmp_path: Path) -> None:
    """The first deserves 3 CPUs and runs a pod of 4; the second deserves 5, runs one of 1 and waits with one of 4."""
    page = (
        "nodes: 1x8cpu\nqueues: {first: {weight: 3}, second: {weight: 5}}\njobs:\n"
        "- {name: x, arrivals: {at: [0]}, run: 1h, minimum: 0, request: {cpu: 4}, queue: first}\n"
        "- {name: y, arrivals: {at: [0]}, run: 1h, request: {cpu: 1}, queue: second}\n"
        "- {name: z, arrivals: {at: [60]}, run: 1h, request: {cpu: 4}, queue: second}\n"
    )
    assert evictions(tmp_path, page, "proportion") == {"first": 1, "second": 0}


# -- properties

jobs_of_any_kind = st.lists(
    st.tuples(
        st.integers(0, 30),  # seconds after the one before
        st.integers(1, 40),  # run time
        st.integers(1, 3),  # pods
        st.integers(1, 4),  # CPUs of each
        st.sampled_from(["a", "b"]),
        st.sampled_from([0, 0, 10]),  # priority
        st.sampled_from([None, 0]),  # all its pods at once, or any
        st.sampled_from([0.0, 7.0]),  # checkpoint
    ),
    min_size=1,
    max_size=14,
)


def works(drawn: list[tuple[Any, ...]]) -> list[Work]:
    submit, found = 0.0, []
    for number, (gap, run, pods, cpus, queue, priority, minimum, checkpoint) in enumerate(drawn):
        submit += gap
        roles = (role(pods, {"cpu": cpus}),)
        found.append(Work(f"j{number}", submit, float(run), roles, queue, "", priority, float(run), minimum, checkpoint))
    return found


class Watched(Record):
    """Looks at every node whenever pods have started."""

    watched: Cluster

    def started(self, *args: Any, **kwargs: Any) -> None:
        super().started(*args, **kwargs)
        assert (self.watched.nodes.used <= self.watched.nodes.allocatable).all()


PREEMPTING = CONF.replace("reclaim", "preempt, reclaim")
SHARES = ("volcano", "preempting")  #: a gang above the half of the CPUs that its queue deserves may wait for ever there, as in Volcano


@pytest.mark.parametrize("policy", ["volcano", "preempting", "kube-scheduler", "FIFO", "SJF", "greedy", "EASY", "conservative"])
@given(jobs_of_any_kind)
@settings(max_examples=8, deadline=None)
def test_every_job_ends_once_no_node_holds_too_much_and_no_work_is_lost_unseen(
    tmp_path_factory: pytest.TempPathFactory, policy: str, drawn: list[tuple[Any, ...]]
) -> None:
    conf = tmp_path_factory.getbasetemp() / "preempting.yaml"
    conf.write_text(PREEMPTING)
    decided, _ = read_policy(str(conf) if policy == "preempting" else policy)
    if policy in SHARES:
        drawn = [(*each[:2], min(each[2], 6 // each[3]), *each[3:]) for each in drawn]
    rows: list[tuple[Any, ...]] = []
    events: list[tuple[Any, ...]] = []
    record, asked = Watched(rows.append, events.append), works(drawn)
    record.watched = cluster_of(decided, Workload("drawn", iter(()), nodes_of_pools("3x4cpu")))
    SimulatedCluster(record.watched, decided, asked, record).play()
    record.watched.check()
    assert Counter(row[2] for row in events if row[1] in ("end", "kill")) == Counter(work.name for work in asked)
    assert not record.watched.jobs and not record.watched.tasks
    work_asked = sum(run * pods * cpus for _, run, pods, cpus, *_ in drawn)
    assert sum(good[0] for good in record.goodput.values()) == pytest.approx(work_asked)
    held = record.series.signals[("held", "cpu", "")].integral(record.now)
    assert held == pytest.approx(work_asked + sum(lost[0] for lost in record.lost.values()))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4), st.integers(1, 20), st.integers(0, 10)), min_size=1, max_size=14))
@settings(max_examples=times(10), deadline=None)
def test_whoever_is_first_in_line_waits_only_for_those_who_ran_before(drawn: list[tuple[int, int, int, int]]) -> None:
    """EASY, with estimates that are upper bounds, on four CPUs."""
    submits = [float(sum(gap for gap, *_ in drawn[: number + 1])) for number in range(len(drawn))]
    jobs = [
        Work(f"j{number:02d}", submit, float(run), (role(1, {"cpu": cpus}),), estimate=float(run + more))
        for number, (submit, (_, cpus, run, more)) in enumerate(zip(submits, drawn, strict=True))
    ]
    decided, _ = read_policy("EASY")
    rows: list[tuple[Any, ...]] = []
    SimulatedCluster(cluster_of(decided, Workload("drawn", iter(()), nodes_of_pools("1x4cpu"))), decided, jobs, Record(rows.append)).play()
    starts = [row["start"] for row in as_objects(rows)]
    for number, (submit, (_, cpus, _, _)) in enumerate(zip(submits, drawn, strict=True)):
        first = max([submit, *starts[:number]])
        before = [other for other, start in enumerate(starts) if start < first or other < number]
        busy = [(starts[other] + drawn[other][2] + drawn[other][3], drawn[other][1]) for other in before if rows[other][5] > first]
        assert starts[number] <= min(
            at for at in [first, *(end for end, _ in busy)] if sum(each for end, each in busy if end > at) + cpus <= 4
        )
