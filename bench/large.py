"""Large clusters: 20,000 nodes with 1,000,000 running pods, and 100,000 nodes. Measured only when asked for by name.

`naive` is how many times longer the naive way takes. If little or nothing has changed, this is to read everything anew; if gangs are
placed, to evaluate every node for each pod, which is measured with four of the gangs and scaled to all.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from resource import RUSAGE_SELF, getrusage

from bench import shapes
from bench.measure import Row, measured
from bench.naive import scanning
from bench.sessions import NOW, policy
from pumice.garbage_collection import collect_seldom
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.model.cluster import Cluster

REQUESTS = {"cpu": "1", "memory": "2Gi"}
BATCH = 10_000  #: objects made at a time, so that few of them exist when memory is measured
SAMPLE = 4  #: number of gangs that are placed in the naive way


def existing(nodes: int) -> shapes.Items:
    yield from shapes.nodes(nodes, cpu="64", memory="256Gi")
    yield from shapes.queues()


def running(numbers: range, on: Iterator[str]) -> shapes.Items:
    """Gangs of 100 that run on the nodes that `on` gives."""
    return shapes.many(shapes.gang(f"run-{number:06d}", 100, REQUESTS, phase="Running", on=on, created=number) for number in numbers)


def read(made: Cluster, items: shapes.Items) -> float:
    """Put the objects into the cluster. Return the CPU seconds of this, without the time for making the objects."""
    spent = 0.0
    while batch := list(islice(items, BATCH)):
        started = time.process_time()
        for kind, item in batch:
            made.put(kind, item)
        spent += time.process_time() - started
    return spent


def end_one(made: Cluster) -> Cluster:
    made.remove("Pod", next(iter(made.tasks)))
    return made


def placing(name: str, budget_s: float, made: Cluster, gangs: int) -> Row:
    """The row of the cycle that places this many new gangs of 100 pods."""

    def submit(prefix: str, count: int) -> Cluster:
        new = (shapes.gang(f"{prefix}-{number:04d}", 100, REQUESTS, created=number) for number in range(count))
        for kind, item in shapes.many(new):
            made.put(kind, item)
        return made

    def place(kept: Cluster) -> Decisions:
        return cycle(kept, policy(), NOW)

    row = measured(name, budget_s, None, lambda: submit("new", gangs), place, 1)
    with scanning():
        naive = measured("", 0, None, lambda: submit("naive", SAMPLE), place, 1)
    return row._replace(naive=naive.cpu * gangs / SAMPLE / row.cpu)


def million() -> Iterator[Row]:
    what, made, decide = "20,000 nodes, 1,000,000 running pods", Cluster(), policy()

    def again(kept: Cluster) -> Decisions:
        return cycle(kept, decide, NOW)

    before = getrusage(RUSAGE_SELF).ru_maxrss
    reading = read(made, existing(20_000)) + read(made, running(range(10_000), shapes.spread(20_000)))
    memory = (getrusage(RUSAGE_SELF).ru_maxrss - before) / len(made.tasks)
    first = measured(f"{what}: first cycle", 2, None, lambda: made, again, 1)
    anew = reading + first.cpu
    yield Row(f"{what}: cold start, read and first cycle", 60, None, anew, anew, counts={"pods": len(made.tasks)})
    yield Row(f"{what}: memory kept per pod, KiB", 1.25, None, memory, memory, "KiB")
    yield first
    idle = measured(f"{what}: nothing has changed", 0.02, None, lambda: made, again, 5)
    yield idle._replace(naive=anew / idle.cpu)
    changed = measured(f"{what}: one pod has ended", 0.02, None, lambda: end_one(made), again, 5)
    yield changed._replace(naive=anew / changed.cpu)
    yield placing(f"{what}: 400 gangs of 100 placed", 3, made, 400)


def run() -> Iterator[Row]:
    collect_seldom()  # as all programs of Pumice do
    yield from million()
    made = Cluster()
    read(made, existing(100_000))
    yield placing("100,000 nodes: 100 gangs of 100 placed", 1, made, 100)
