"""A full cluster with a long queue: the first cycle, one in which nothing has changed, one with a node freed."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator

from bench import shapes
from bench.measure import Row, measured
from bench.sessions import NOW, VICTIMS, policy, running
from pumice.garbage_collection import collect_seldom
from pumice.scheduler.config.volcano_conf import DEFAULT
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.observer import Observer
from pumice.scheduler.model.cluster import Cluster

EVICTING = VICTIMS.format(action="preempt, reclaim, backfill")
FOUR_SHAPES = [{"cpu": str(size), "memory": f"{size}Gi", "gpu": str(size)} for size in (1, 2, 4, 8)]


def four_shapes(number: int) -> dict[str, str]:
    return FOUR_SHAPES[number % 4]


def all_different(number: int) -> dict[str, str]:
    return {"cpu": f"{1000 + number}m", "memory": f"{1024 + number}Mi", "gpu": str(1 + number % 8)}


def full(gangs: int, shape: Callable[[int], dict[str, str]]) -> Cluster:
    """A cluster of 1,000 nodes of 8 GPU, full of the gangs of two queues, and `gangs` more gangs of 4 pods, already enqueued."""

    def waiting() -> Iterator[shapes.Items]:
        for number in range(gangs):
            queue = "ab"[number // 4 % 2]
            yield shapes.gang(f"wait-{number:05d}", 4, shape(number), queue=queue, phase="Inqueue", created=100_000 + number)

    return shapes.cluster(
        shapes.nodes(1000, cpu="64", memory="256Gi", gpu="8"),
        shapes.queues(("a", 1), ("b", 1)),
        *(running(1000, 1000, 4, requests={"cpu": "1", "gpu": "1"}, queue=queue) for queue in "ab"),
        shapes.many(waiting()),
    )


def free_one(made: Cluster) -> None:
    for task in list(made.nodes.tasks[0].values()):
        made.remove("Pod", task.key)


def rows(what: str, gangs: int, shape: Callable[[int], dict[str, str]], text: str, first_s: float, freed: bool = False) -> list[Row]:
    """The rows of the cycles on one such cluster. `naive` is how many times longer a cycle takes that evaluates everything anew."""
    decide = policy(text)

    def again(made: Cluster) -> Decisions:
        return cycle(made, decide, NOW)

    def anew(made: Cluster) -> Decisions:
        return cycle(made, decide, NOW, observer=Observer())

    made = full(gangs, shape)
    gc.collect()
    found = [measured(f"{what}: first cycle", first_s, None, lambda: made, again, 1)]
    again(made)
    found.append(measured(f"{what}: nothing has changed", 0.02, None, lambda: made, again, 5))
    if freed:
        free_one(made)
        found.append(measured(f"{what}: one node freed", 0.05, None, lambda: made, again, 1))
        found.append(measured(f"{what}: after two gangs were placed", 0.05, None, lambda: made, again, 1))
    found[1] = found[1]._replace(naive=measured("", 0, None, lambda: made, anew, 1).cpu / found[1].cpu)
    return found


def memory(size: int, kind: str, shape: Callable[[int], dict[str, str]], jobs: int = 3000) -> Row:
    """What a job of `size` pods that waits takes before its first cycle, its objects included, as tracemalloc counts it."""
    made = shapes.cluster(shapes.nodes(10, cpu="64", memory="256Gi", gpu="8"), shapes.queues(("a", 1), ("b", 1)))

    def put(numbers: range) -> None:
        for number in numbers:
            queue = "ab"[number // 4 % 2]
            for each in shapes.gang(f"wait-{number:05d}", size, shape(number), queue=queue, phase="Inqueue", created=100_000 + number):
                made.put(*each)

    put(range(1000))  # what all share is there
    gc.collect()
    tracemalloc.start()
    put(range(1000, 1000 + jobs))
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    what = "a job of one pod" if size == 1 else f"a gang of {size}"
    each = kept / jobs / 1024
    return Row(f"memory of {what} that waits, {kind}, KiB", 3, None, each, each, "KiB")


def run() -> list[Row]:
    collect_seldom()  # as all programs of Pumice do
    return [
        *(memory(size, kind, shape) for size in (1, 4) for kind, shape in (("four shapes", four_shapes), ("all different", all_different))),
        *rows("20,000 gangs wait, four shapes", 20_000, four_shapes, DEFAULT, 1.5, freed=True),
        *rows("5,000 gangs wait, evicting actions", 5_000, four_shapes, EVICTING, 0.8),
        *rows("2,000 gangs wait, all different, evicting actions", 2_000, all_different, EVICTING, 3),
    ]
