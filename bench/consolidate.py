"""Room for gangs by moving pods: how long it takes to decide, and how good the plans are."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from msgspec.structs import replace

from bench import shapes
from bench.exact_moves import rates, verdicts
from bench.measure import Row, measured
from bench.sessions import NOW, policy
from pumice.api import Object
from pumice.api.meta import OwnerReference
from pumice.cli.embedded import running as running_cluster
from pumice.cli.up_options import UpRequest
from pumice.cluster.nodes.node_pools import nodes_of, pools_of
from pumice.cluster.nodes.stage import read_stages
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.model.cluster import Cluster

CONFIGURATION = """\
actions: "enqueue, allocate, consolidate, backfill"
configurations:
- name: consolidate
  arguments: {movesPerCycle: 0, minimumRunTime: 0s, maximumLostWork: 0s}
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
STATES = 500
PATIENCE_S = 600.0


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


def job(name: str, replicas: int, gpus: int) -> Object:
    resources = {"requests": {"cpu": "4", "nvidia.com/gpu": str(gpus)}, "limits": {"nvidia.com/gpu": str(gpus)}}
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1", "resources": resources}]}}
    spec = {"schedulerName": "volcano", "minAvailable": replicas, "tasks": [{"name": "worker", "replicas": replicas, "template": template}]}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


async def whole(nodes: int, gangs: int, size: int) -> Row:
    """The row of the time from the first submission of gangs, for which each node has too little room, until all pods run, in a whole
    cluster. Each node has a job of one pod; evicted pods end in their own time."""
    wanted = UpRequest(policy(CONFIGURATION), read_stages(), list(nodes_of(pools_of(f"{nodes}x8gpu"))), plain=True)
    async with running_cluster(wanted) as cluster:
        store = cluster.plane.store

        async def submit(jobs: Iterator[Object], pods: int) -> None:
            for each in jobs:
                store.create("jobs.batch.volcano.sh", each, "default")
                await asyncio.sleep(0)
            async with asyncio.timeout(PATIENCE_S):
                while sum(pod["status"].get("phase") == "Running" for pod in store.all("pods")) < pods:
                    await asyncio.sleep(0.1)

        await submit((job(f"small-{number:03d}", 1, 1) for number in range(nodes)), nodes)
        cpu, wall = time.process_time(), time.perf_counter()
        await submit((job(f"gang-{number:02d}", size, 8) for number in range(gangs)), nodes + gangs * size)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    name = f"embedded: {gangs} gangs of {size} x 8 GPU on {nodes} nodes in pieces, from submit to running, moved pods included"
    return Row(name, 60.0, None, cpu, wall, counts={"pods": gangs * size})


def run() -> Iterator[Row]:
    decide = policy(CONFIGURATION)
    what = "1,000 nodes x 8 GPU half empty in pieces, 20 gangs of 8 x 8: room by moves"
    yield measured(what, 0.5, None, lambda: half_empty(1000, 20), lambda made: cycle(made, decide, NOW), 3)
    yield asyncio.run(whole(500, 41, 10))
    found = rates(verdict for _, verdict in verdicts(STATES))
    for name, share, most in (
        ("no plan is found", found.found, 2.0),
        ("it has not the fewest moves", found.optimal, 10.0),
        ("it has two more moves or worse", found.within_one, 1.0),
        ("not all pods run in the end", found.all_run, 0.0),
    ):
        missed = 100.0 * (1.0 - share)
        yield Row(f"{STATES} random states where moves help, by an exact solver: {name}", most, None, missed, missed, "%")
