"""What answers cost on the kept state of a running scheduler: why, what if and when, on a large cluster that is full."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from bench import shapes
from bench.measure import Row, measured
from bench.sessions import NOW, policy
from pumice.answers import whatif, why
from pumice.answers.eta import eta
from pumice.garbage_collection import collect_seldom
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.model.cluster import Cluster

NODES, GANGS, MEMBERS = 5000, 20, 20
POLICY = policy()


def full(nodes: int) -> Cluster:
    """A cluster after a cycle: 30 running pods a node in jobs of ten, with one job started per minute, and gangs that wait."""
    on, asked = shapes.spread(nodes), {"cpu": "1", "memory": "1Gi"}
    existing = shapes.many(
        shapes.gang(f"run-{number:06d}", 10, asked, phase="Running", on=on, created=-60.0 * number) for number in range(3 * nodes)
    )
    waiting = shapes.many(shapes.gang(f"wait-{number}", MEMBERS, {"cpu": "2", "memory": "1Gi"}) for number in range(GANGS))
    made = shapes.cluster(chain(shapes.nodes(nodes, cpu="30", memory="128Gi"), shapes.queues(), existing, waiting))
    for task in made.tasks.values():
        task.started = task.created if task.node >= 0 else None
    cycle(made, POLICY, NOW)
    return made


def run() -> Iterator[Row]:
    collect_seldom()
    made = full(NODES)
    last = f"job/wait-{GANGS - 1}"
    size = f"{NODES:,} nodes, {30 * NODES:,} running pods"
    yield measured(f"why, of a gang that waits, {size}", 0.3, None, lambda: made, lambda it: why(it, POLICY, NOW, last), 5)
    advised = f"why, with rehearsed advice, {size}"
    yield measured(advised, 0.3, None, lambda: made, lambda it: why(it, POLICY, NOW, last, advise=True), 5)
    yield measured(f"why, of a job that runs, {size}", 0.3, None, lambda: made, lambda it: why(it, POLICY, NOW, "job/run-000000"), 5)
    yield measured(f"whatif, {size}", 3.0, None, lambda: made, lambda it: whatif(it, POLICY, NOW, last), 3)
    yield measured(f"eta, of the last of {GANGS} gangs, {size}", 10.0, None, lambda: made, lambda it: eta(it, POLICY, NOW, last), 1)
