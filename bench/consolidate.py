"""Room for gangs by moving pods: how long it takes to decide, and how good the plans are."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from bench import shapes
from bench.exact_moves import rates, verdicts
from bench.measure import Row, measured
from bench.peers import MOVING
from bench.sessions import NOW, policy
from pumice.api.meta import OwnerReference
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.model.cluster import Cluster

STATES = 500


def owned(items: shapes.Items) -> shapes.Items:
    """The same objects, with PodGroups that a controller owns."""
    for kind, item in items:
        if kind == "PodGroup":
            owners = [OwnerReference(item.metadata.name, kind="Job", controller=True)]
            yield kind, replace(item, metadata=replace(item.metadata, owner_references=owners))
        else:
            yield kind, item


def half_empty(nodes: int, gangs: int) -> Cluster:
    """Nodes of 8 GPUs, on each of them jobs of one pod that hold 3 to 5 GPUs, and gangs of 8 pods of 8 GPUs that wait."""
    sizes = ((1, 1, 2), (2, 2), (1, 2, 2), (1, 1, 1, 1), (3, 1))

    def existing() -> Iterator[shapes.Items]:
        for number in range(nodes):
            for place, gpus in enumerate(sizes[number % len(sizes)]):
                on = iter([f"node-{number:05d}"])
                yield shapes.gang(f"run-{number:05d}-{place}", 1, {"cpu": "2", "gpu": str(gpus)}, phase="Running", on=on, created=number)

    waiting = (shapes.gang(f"wait-{number:03d}", 8, {"cpu": "8", "gpu": "8"}, phase="Inqueue", created=number) for number in range(gangs))
    return shapes.cluster(
        shapes.nodes(nodes, cpu="64", memory="256Gi", gpu="8"), shapes.queues(), owned(shapes.many(existing())), shapes.many(waiting)
    )


def run() -> Iterator[Row]:
    decide = policy(MOVING)
    what = "1,000 nodes x 8 GPU half empty in pieces, 20 gangs of 8 x 8: room by moves"
    yield measured(what, 0.5, None, lambda: half_empty(1000, 20), lambda made: cycle(made, decide, NOW), 3)
    found = rates(verdict for _, verdict in verdicts(STATES))
    for name, share, most in (
        ("no plan is found", found.found, 2.0),
        ("it has not the fewest moves", found.optimal, 10.0),
        ("it has two more moves or worse", found.within_one, 1.0),
        ("not all pods run in the end", found.all_run, 0.0),
    ):
        missed = 100.0 * (1.0 - share)
        yield Row(f"{STATES} random states where moves help, by an exact solver: {name}", most, None, missed, missed, "%")
