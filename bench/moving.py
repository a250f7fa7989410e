"""A full, varied queue that moves: one node is freed before each of many cycles. CPU seconds of such a cycle, and how they rise.

1,000 full nodes of 8 GPU, gangs of 4 wait. `python -m bench.moving [SHAPE ...]` prints each shape by itself, cycle by cycle;
`--growth FILE` writes how the cycle grows, for `python -m bench.plot`.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench import shapes
from bench.measure import Row
from bench.sessions import NOW, VICTIMS, policy
from bench.waiting import EVICTING, all_different, four_shapes
from pumice.api.meta import Metadata
from pumice.api.quantity import quantity
from pumice.api.volcano import Queue, QueueSpec, QueueStatus
from pumice.garbage_collection import collect_seldom
from pumice.inputs.cluster_from_files import advance
from pumice.scheduler.config.volcano_conf import DEFAULT
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model.cluster import Cluster

CYCLES = 20

BY_GANGS = VICTIMS.format(action="gangpreempt, gangreclaim, backfill")
TREE = VICTIMS.format(action="backfill").replace("proportion", "capacity\n    enableHierarchy: true")


class Shape(NamedTuple):
    """What waits, under which policy, and the seconds that a cycle may take once a node was freed."""

    name: str
    gangs: int
    requests: Callable[[int], dict[str, str]]
    goal_s: float
    namespaces: int = 1
    text: str = DEFAULT
    queues: int = 2
    nodes: int = 1000
    small_pods: int = 0  #: more pods that run on each node
    freed: int = 1  #: nodes that are freed before each cycle
    phase: str = "Inqueue"


SHAPES = {
    "four": Shape("5,000 gangs of four shapes", 5000, four_shapes, 0.005),
    "different": Shape("5,000 gangs, all different", 5000, all_different, 0.03),
    "namespaces-30": Shape("5,000 gangs of four shapes in 30 namespaces", 5000, four_shapes, 0.01, 30),
    "namespaces-1000": Shape("5,000 gangs of four shapes in 1,000 namespaces", 5000, four_shapes, 0.03, 1000),
    "tree": Shape("5,000 gangs of four shapes in 2,000 queues of a tree", 5000, four_shapes, 0.03, 1, TREE, 2000),
    "evicting": Shape("5,000 gangs of four shapes, evicting actions", 5000, four_shapes, 0.02, 1, EVICTING),
    "evicting-namespaces": Shape(
        "5,000 gangs of four shapes in 1,000 namespaces, evicting actions", 5000, four_shapes, 0.05, 1000, EVICTING
    ),
    "evicting-600": Shape("600 gangs, all different, evicting actions", 600, all_different, 0.03, 1, EVICTING),
    "evicting-2000": Shape("2,000 gangs, all different, evicting actions", 2000, all_different, 0.05, 1, EVICTING),
    "gangs": Shape("5,000 gangs of four shapes, gangpreempt and gangreclaim", 5000, four_shapes, 0.05, 1, BY_GANGS),
    "gangs-2000": Shape("2,000 gangs, all different, gangpreempt and gangreclaim", 2000, all_different, 0.05, 1, BY_GANGS),
    "outside": Shape("5,000 gangs of four shapes, not let in", 5000, four_shapes, 0.02, phase="Pending"),
    "outside-namespaces": Shape("5,000 gangs in 1,000 namespaces, not let in", 5000, four_shapes, 0.05, 1000, phase="Pending"),
    "outside-different": Shape("5,000 gangs, all different, not let in", 5000, all_different, 0.05, phase="Pending"),
    "outside-tree": Shape(
        "5,000 gangs of four shapes in 2,000 queues of a tree, not let in", 5000, four_shapes, 0.05, 1, TREE, 2000, phase="Pending"
    ),
    "different-20000": Shape("20,000 gangs, all different", 20_000, all_different, 0.1),
}


def queues(shape: Shape) -> Iterator[str]:
    """The names of the queues in which gangs wait and run."""
    return iter("ab") if shape.queues == 2 else (f"leaf-{number:04d}" for number in range(shape.queues))


def tree(count: int) -> shapes.Items:
    """`count` leaf queues below ten queues below the root."""
    yield "Queue", Queue(Metadata(name="root"), QueueSpec(weight=1, reclaimable=False), QueueStatus(state="Open"))
    least = {"cpu": quantity("6400"), "memory": quantity("25600Gi"), "nvidia.com/gpu": quantity("800")}
    for number in range(10):
        yield "Queue", Queue(Metadata(name=f"part-{number}"), QueueSpec(parent="root", deserved=least), QueueStatus(state="Open"))
    for number in range(count):
        spec = QueueSpec(parent=f"part-{number % 10}", deserved={"cpu": quantity("32"), "nvidia.com/gpu": quantity("4")})
        yield "Queue", Queue(Metadata(name=f"leaf-{number:04d}"), spec, QueueStatus(state="Open"))


def built(shape: Shape) -> Cluster:
    names = list(queues(shape))

    def waiting() -> Iterator[shapes.Items]:
        for number in range(shape.gangs):
            where = {"queue": names[number // 4 % len(names)], "namespace": f"team-{number // 4 % shape.namespaces:04d}"}
            yield shapes.gang(f"wait-{number:05d}", 4, shape.requests(number), phase=shape.phase, created=100_000 + number, **where)

    on = shapes.spread(shape.nodes)
    small = (
        shapes.gang(f"small-{number:05d}", 4, {"cpu": "100m"}, queue=names[number % len(names)], phase="Running", on=on, created=number)
        for number in range(shape.nodes * shape.small_pods // 4)
    )
    runs = (
        shapes.gang(
            f"run-{number:05d}", 4, {"cpu": "1", "gpu": "1"}, queue=names[number % len(names)], phase="Running", on=on, created=number
        )
        for number in range(shape.nodes * 2)
    )
    return shapes.cluster(
        shapes.nodes(shape.nodes, cpu="64", memory="256Gi", gpu="8"),
        shapes.queues(("a", 1), ("b", 1)) if shape.queues == 2 else tree(shape.queues),
        shapes.many(runs),
        shapes.many(small),
        shapes.many(waiting()),
    )


def free(made: Cluster, number: int) -> None:
    for task in list(made.nodes.tasks[number].values()):
        made.remove("Pod", task.key)


class Figures(NamedTuple):
    first_s: float  #: the first cycle of all
    cycles_s: list[float]  #: each cycle after a node was freed
    bound: int

    @property
    def at_first(self) -> float:
        return statistics.median(self.cycles_s[: len(self.cycles_s) // 4])

    @property
    def at_last(self) -> float:
        return statistics.median(self.cycles_s[-(len(self.cycles_s) // 4) :])


def timed(made: Cluster, decide: Policy, now: float) -> tuple[Decisions, float]:
    started = time.process_time()
    decisions = cycle(made, decide, now)
    return decisions, time.process_time() - started


def figures(shape: Shape, cycles: int = CYCLES) -> Figures:
    made, decide, now = built(shape), policy(shape.text), NOW
    gc.collect()
    gc.freeze()
    decisions, first = timed(made, decide, now)
    advance(made, decisions, now)
    cycle(made, decide, now)
    found, bound = [], 0
    for number in range(cycles):
        for row in range(number * shape.freed, (number + 1) * shape.freed):
            free(made, row)
        now += 1.0
        decisions, seconds = timed(made, decide, now)
        found.append(seconds)
        bound += len(decisions.binds)
        advance(made, decisions, now)
    gc.unfreeze()
    return Figures(first, found, bound)


def run() -> list[Row]:
    collect_seldom()
    rows = []
    for shape in SHAPES.values():
        found = figures(shape)
        rows.append(Row(f"{shape.name}: a node freed, the first cycles", shape.goal_s, None, found.at_first, found.at_first))
        rows.append(Row(f"{shape.name}: a node freed, after {CYCLES}", shape.goal_s, None, found.at_last, found.at_last))
    return rows


def kinds(count: int) -> Callable[[int], dict[str, str]]:
    return lambda number: all_different(number % count)


def growth() -> list[dict[str, Any]]:
    """CPU ms of a cycle after a node was freed, by what there is of each kind of thing; else 1,000 nodes, 2,000 gangs that all differ."""
    usual = Shape("", 2000, all_different, 0)
    curves: dict[str, list[tuple[int, Shape]]] = {
        "nodes": [(number, usual._replace(nodes=number)) for number in (250, 500, 1000, 2000)],
        "running pods": [(1000 * (8 + more), usual._replace(small_pods=more)) for more in (0, 8, 24, 56)],
        "waiting gangs": [(number, usual._replace(gangs=number)) for number in (500, 2000, 5000, 10_000)],
        "kinds of 5,000 waiting gangs": [(count, usual._replace(gangs=5000, requests=kinds(count))) for count in (10, 500, 2000, 5000)],
        "nodes freed at a time": [(number, usual._replace(freed=number)) for number in (1, 2, 4, 8)],
    }
    return [
        {
            "name": "a node was freed",
            "x": by,
            "y": "CPU ms of the cycle",
            "points": [(at, statistics.median(figures(shape, 8).cycles_s) * 1e3) for at, shape in shapes_of_it],
        }
        for by, shapes_of_it in curves.items()
    ]


def main() -> None:
    collect_seldom()
    if sys.argv[1:2] == ["--growth"]:
        Path(sys.argv[2]).write_text(json.dumps({"growth": growth()}))
        return
    for name in sys.argv[1:] or SHAPES:
        shape = SHAPES[name]
        found = figures(shape)
        each = " ".join(f"{seconds:.3f}" for seconds in found.cycles_s)
        rise = f"{found.at_first:.4f} to {found.at_last:.4f}, goal {shape.goal_s}"
        print(f"{name}: first {found.first_s:.2f}; {rise}; {found.bound} bound; {each}", flush=True)


if __name__ == "__main__":
    main()
