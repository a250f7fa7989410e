"""Whole sessions: gangs, single pods, idle clusters, hopeless gangs, reclaim and preempt, cold start, memory."""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Callable
from typing import Any

from bench import shapes
from bench.measure import Row, measured
from bench.naive import scanning
from pumice.api.times import rfc3339
from pumice.extensions import plugins
from pumice.scheduler.config.volcano_conf import DEFAULT, read_policy
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model.cluster import Cluster

NOW = shapes.EPOCH + 3600.0

VICTIMS = """\
actions: "enqueue, allocate, {action}"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


def policy(text: str = DEFAULT) -> Policy:
    return read_policy(text, plugins())[0]


def gangs(nodes: int, count: int, size: int, *, requests: dict[str, str] | None = None) -> Cluster:
    wanted = requests or {"cpu": "1", "memory": "2Gi"}
    parts = (shapes.gang(f"job-{number:04d}", size, wanted, created=number) for number in range(count))
    return shapes.cluster(shapes.nodes(nodes, cpu="32", memory="128Gi"), shapes.queues(), shapes.many(parts))


def singles_all_different(nodes: int, count: int) -> Cluster:
    parts = (
        shapes.gang(f"job-{number:05d}", 1, {"cpu": f"{500 + number % 1500}m", "memory": f"{1024 + number}Mi"}, created=number)
        for number in range(count)
    )
    return shapes.cluster(shapes.nodes(nodes, cpu="32", memory="128Gi"), shapes.queues(), shapes.many(parts))


def running(nodes: int, jobs: int, size: int, *, requests: dict[str, str], **options: Any) -> shapes.Items:
    on = shapes.spread(nodes)
    return shapes.many(
        shapes.gang(f"{options.get('queue', 'run')}-{number:06d}", size, requests, phase="Running", on=on, created=number, **options)
        for number in range(jobs)
    )


def session(name: str, budget_s: float, peer_s: float | None, build: Callable[[], Cluster], text: str = DEFAULT, repeat: int = 3) -> Row:
    """The row of the median first session, each on a fresh cluster. `naive` is how many times longer a session takes in the naive way."""

    def first(made: Cluster) -> Decisions:
        return cycle(made, policy(text), NOW)

    row = measured(name, budget_s, peer_s, build, first, repeat)
    with scanning():
        return row._replace(naive=measured(name, budget_s, peer_s, build, first, 1).cpu / row.cpu)


def idle(name: str, jobs: int, size: int, peer_s: float) -> list[Row]:
    existing = running(5000, jobs, size, requests={"cpu": "1", "memory": "2Gi"})
    items = [*shapes.nodes(5000, cpu="64", memory="256Gi"), *shapes.queues(), *existing]
    made = shapes.cluster(iter(items))
    decide = policy()
    cycle(made, decide, NOW)
    row = measured(name, 0.02, peer_s, lambda: made, lambda kept: cycle(kept, decide, NOW + 1), 5)
    return [row._replace(naive=measured(name, 0.02, peer_s, Cluster, lambda fresh: read_and_decide(fresh, items), 1).cpu / row.cpu)]


def read_and_decide(fresh: Cluster, items: list[Any]) -> Decisions:
    """The decisions of a first cycle on the objects: what an idle session would cost if it kept nothing and read everything anew."""
    for kind, item in items:
        fresh.put(kind, item)
    return cycle(fresh, policy(), NOW)


def cold_start() -> list[Row]:
    """The rows of a cold start, from decoded objects to the first decision, and of its memory: 5,000 nodes, 150,000 pods, 87,000 jobs."""
    on = shapes.spread(5000)

    def jobs() -> shapes.Items:
        for number in range(87_000):
            size = 1 if number % 29 else 22
            yield from shapes.gang(f"run-{number:06d}", size, {"cpu": "1", "memory": "2Gi"}, phase="Running", on=on, created=number)

    items = [*shapes.nodes(5000, cpu="64", memory="256Gi"), *shapes.queues(), *jobs()]
    gc.collect()
    gc.freeze()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kept: list[Cluster] = []

    def start(_: None) -> Any:
        kept[:] = [Cluster()]
        return read_and_decide(kept[0], items)

    row = measured("cold start: 5,000 nodes, 150,000 pods, 87,000 jobs", 20, 497, lambda: None, start, 1)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / len(kept[0].tasks)
    return [row, Row("memory kept per running pod, KiB", 3, None, grown, grown, "KiB", {"pods": len(kept[0].tasks)})]


def hopeless() -> list[Row]:
    def build() -> Cluster:
        return shapes.cluster(
            shapes.nodes(500, cpu="64", memory="256Gi", gpu="8"),
            shapes.queues(),
            running(500, 4000, 1, requests={"cpu": "1", "gpu": "1"}),
            shapes.gang("hopeless", 10, {"cpu": "8", "gpu": "8"}),
        )

    return [session("an 80-GPU gang that cannot run is told so, 500 full nodes of 8 GPU", 0.5, 249, build)]


def reclaim() -> list[Row]:
    def halves() -> Cluster:
        return shapes.cluster(
            shapes.nodes(500, cpu="64", memory="256Gi", gpu="8"),
            shapes.queues(("a", 1), ("b", 1)),
            running(500, 4000, 1, requests={"cpu": "1", "gpu": "1"}, queue="a"),
            shapes.many(shapes.gang(f"b-{n:05d}", 1, {"cpu": "1", "gpu": "1"}, queue="b", created=n) for n in range(4000)),
        )

    def large(nodes: int, size: int) -> Callable[[], Cluster]:
        return lambda: shapes.cluster(
            shapes.nodes(nodes, cpu="64", memory="256Gi", gpu="8"),
            shapes.queues(("poor", 1), ("rich", 1_000_000)),
            running(nodes, nodes * 8, 1, requests={"cpu": "1", "gpu": "1"}, queue="poor"),
            shapes.gang("rich-gang", size, {"cpu": "8", "gpu": "8"}, queue="rich", phase="Inqueue"),
        )

    text = VICTIMS.format(action="reclaim")
    return [
        session("reclaim: 500 nodes x 8 GPU, 4,000 running in A, 4,000 pending in B", 1, 9.6, halves, text),
        session("reclaim by one gang of 50 x 8 GPU, 500 nodes full of one-GPU jobs", 1, 20, large(500, 50), text),
        session("reclaim by one gang of 100 x 8 GPU, 1,000 nodes", 2, 167, large(1000, 100), text),
    ]


def preempt() -> list[Row]:
    def full(nodes: int, preemptors: int) -> Callable[[], Cluster]:
        def build() -> Cluster:
            on = shapes.spread(nodes)
            low = (
                shapes.gang(f"low-{n:05d}", 8, {"cpu": "1", "memory": "1Gi"}, minimum=1, priority="low", phase="Running", on=on, created=n)
                for n in range(nodes)
            )
            high = (
                shapes.gang(f"high-{n:05d}", 1, {"cpu": "2", "memory": "1Gi"}, priority="high", phase="Inqueue", created=n)
                for n in range(preemptors)
            )
            return shapes.cluster(
                shapes.classes(high=1000, low=10),
                shapes.nodes(nodes, cpu="8", memory="32Gi"),
                shapes.queues(),
                shapes.many(low),
                shapes.many(high),
            )

        return build

    text = VICTIMS.format(action="preempt")
    return [
        session("preempt: 1,000 full nodes of 8 CPU, 200 preemptors of 2 CPU", 0.25, 2.5, full(1000, 200), text),
        session("preempt: 5,000 full nodes, 1,000 preemptors", 3, None, full(5000, 1000), text),
    ]


def gang_evictions() -> list[Row]:
    def full() -> Cluster:
        return shapes.cluster(
            shapes.classes(high=1000, low=10),
            shapes.nodes(1000, cpu="64", memory="256Gi", gpu="8"),
            shapes.queues(),
            running(1000, 8000, 1, requests={"cpu": "1", "gpu": "1"}, priority="low"),
            shapes.many(
                shapes.gang(f"high-{n:02d}", 8, {"cpu": "1", "gpu": "1"}, priority="high", phase="Inqueue", created=n) for n in range(50)
            ),
        )

    def large() -> Cluster:
        return shapes.cluster(
            shapes.nodes(1000, cpu="64", memory="256Gi", gpu="8"),
            shapes.queues(("poor", 1), ("rich", 1_000_000)),
            running(1000, 8000, 1, requests={"cpu": "1", "gpu": "1"}, queue="poor"),
            shapes.many(shapes.gang(f"rich-{n}", 8, {"cpu": "8", "gpu": "8"}, queue="rich", phase="Inqueue", created=n) for n in range(10)),
        )

    text = VICTIMS.format(action="gangreclaim")
    volcanos = text + "configurations:\n- name: gangreclaim\n  arguments: {spareVictims: false}\n"
    name = "gangreclaim by ten gangs of 8 x 8 GPU, 1,000 nodes full of one-GPU jobs"
    gone, theirs = (len(cycle(large(), policy(each), NOW).evictions) for each in (text, volcanos))
    return [
        session(
            "gangpreempt by 50 gangs of 8 x 1 GPU, 1,000 nodes full of one-GPU jobs", 0.5, None, full, VICTIMS.format(action="gangpreempt")
        ),
        session(name, 1, None, large, text),
        Row(f"{name}: evictions", 640, None, gone, gone, "pods", naive=theirs / gone),
    ]


def run() -> list[Row]:
    memory_first = cold_start()  # first: the peak of memory belongs to the cold start only if nothing larger ran before it
    return [
        *memory_first,
        session("session: 1,000 nodes, 10 gangs of 100", 0.15, 4.5, lambda: gangs(1000, 10, 100)),
        session("session: 5,000 nodes, 100 gangs of 100", 1, 77, lambda: gangs(5000, 100, 100)),
        session(
            "session: 5,000 nodes, 10,000 single-pod jobs, all different", 4, 91, lambda: singles_all_different(5000, 10_000), repeat=1
        ),
        *hopeless(),
        *reclaim(),
        *preempt(),
        *gang_evictions(),
        *idle("idle session: 5,000 nodes, 150,000 running pods in gangs of 100", 1500, 100, 5.4),
        *idle("idle session: 5,000 nodes, 150,000 running single-pod jobs", 150_000, 1, 21.7),
    ]


def stamp() -> str:
    return rfc3339(time.time())
