"""The benchmarks of other schedulers, with their shapes, on the embedded cluster: API server, controllers, kubelets and scheduler in one
process. Each figure is the wall time from the first submission until all pods are bound or run (for a gang that cannot run: until it is
told so). "peer" is what the peer's own benchmark has published for the shape, with a real API server on other machines.

* KAI's scale cases: 500 nodes of 8 GPU.
* The four shapes of kube-scheduling-perf: 10,000 pods in 10,000, 500, 20 jobs and in one. It publishes curves, not figures.

`python -m bench peers`; it takes some minutes.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator

from bench.measure import Row
from bench.sessions import VICTIMS, policy
from pumice import interpreter
from pumice.api import Object
from pumice.cli.embedded import Embedded, running
from pumice.cli.up_options import UpRequest
from pumice.cluster.nodes.node_pools import nodes_of, pools_of
from pumice.cluster.nodes.stage import read_stages

PATIENCE_S = 900.0
NODES = 500
RECLAIMING = VICTIMS.format(action="reclaim")
MOVING = """\
actions: "enqueue, allocate, consolidate, backfill"
configurations:
- name: consolidate
  arguments: {movesPerCycle: 0, minimumRunTime: 0s, maximumLostWork: 0s}
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""


def job(name: str, pods: int, queue: str, **requests: str) -> Object:
    asked = {key.replace("gpu", "nvidia.com/gpu"): value for key, value in requests.items()}
    limits = {key: value for key, value in asked.items() if "/" in key}
    container = {"name": "main", "image": "train:1", "resources": {"requests": asked, "limits": limits}}
    task = {"name": "worker", "replicas": pods, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    spec = {"schedulerName": "volcano", "minAvailable": pods, "queue": queue, "tasks": [task]}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def jobs(name: str, count: int, pods: int, gpu: str = "1", queue: str = "default") -> Iterator[Object]:
    return (job(f"{name}-{number:05d}", pods, queue, cpu="1", gpu=gpu) for number in range(count))


class Bench:
    """A cluster in which jobs are submitted."""

    def __init__(self, cluster: Embedded) -> None:
        self._store = cluster.plane.store

    async def submit(self, wanted: Iterator[Object]) -> None:
        for each in wanted:
            self._store.create("jobs.batch.volcano.sh", each, "default")
            await asyncio.sleep(0)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                await asyncio.sleep(0.1)

    def is_open(self) -> bool:
        """Whether all queues let jobs in."""
        return all(queue.get("status", {}).get("state") == "Open" for queue in self._store.all("queues.scheduling.volcano.sh"))

    def bound(self, name: str, pods: int) -> bool:
        """Whether so many pods of the jobs with this name have a node."""
        found = (pod for pod in self._store.all("pods") if pod["metadata"]["name"].startswith(name))
        return sum("nodeName" in pod["spec"] for pod in found) >= pods

    def is_told(self, name: str) -> bool:
        """Whether the PodGroup of the job says why it does not run."""
        groups = (group for group in self._store.all("podgroups.scheduling.volcano.sh") if group["metadata"]["name"].startswith(name))
        return any(each["type"] == "Unschedulable" for group in groups for each in group.get("status", {}).get("conditions") or ())

    def run(self, pods: int) -> bool:
        """Whether so many pods run, and no others are there."""
        phases = Counter(pod["status"].get("phase") for pod in self._store.all("pods"))
        return phases["Running"] == phases.total() == pods

    async def fill(self, queue: str = "default") -> None:
        await self.submit(jobs("fill", NODES * 8, 1, queue=queue))
        await self.until(lambda: self.bound("fill", NODES * 8))

    async def leave(self, per_node: int) -> None:
        """Delete jobs of one pod until so many are left on each node."""
        found: Counter[str] = Counter()
        for pod in self._store.all("pods"):
            found[pod["spec"]["nodeName"]] += 1
            if found[pod["spec"]["nodeName"]] > per_node:
                self._store.delete("jobs.batch.volcano.sh", pod["metadata"]["labels"]["volcano.sh/job-name"], "default")
        await self.until(lambda: len([*self._store.all("pods")]) == NODES * per_node)

    async def reclaim(self, count: int, pods: int, gpu: str = "1") -> None:
        await self.submit(jobs("more", count, pods, gpu, queue="rich"))
        await self.until(lambda: self.bound("more", count * pods))


def queue(name: str, weight: int) -> Object:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": weight}}


Act = Callable[[Bench], Awaitable[None]]


async def timed(
    name: str, peer_s: float | None, act: Act, *, first: Act | None = None, nodes: str = f"{NODES}x8gpu", conf: str = RECLAIMING
) -> Row:
    """The row of one case, in a cluster of its own. `first`: what is done there before."""
    objects = [*nodes_of(pools_of(nodes)), queue("poor", 1), queue("rich", 65_535)]
    async with running(UpRequest(policy(conf), read_stages(), objects, plain=True)) as cluster:
        interpreter.settle()
        bench = Bench(cluster)
        await bench.until(bench.is_open)
        if first is not None:
            await first(bench)
        cpu, wall = time.process_time(), time.perf_counter()
        await act(bench)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Row(name, None, peer_s, cpu, wall)


async def full(bench: Bench) -> None:
    """All GPUs are held by jobs of a queue that deserves next to nothing."""
    await bench.fill("poor")


async def in_pieces(bench: Bench) -> None:
    await bench.fill()
    await bench.leave(3)


async def consolidated(bench: Bench) -> None:
    await bench.submit(jobs("gang", 41, 10, "6"))
    await bench.until(lambda: bench.run(NODES * 3 + 410))


async def told(bench: Bench) -> None:
    await bench.submit(jobs("large", 1, 10, "8", queue="poor"))
    await bench.until(lambda: bench.is_told("large"))


async def whole_job(bench: Bench) -> None:
    await bench.submit(jobs("large", 1, 512))
    await bench.until(lambda: bench.bound("large", 512))


def of_10_000(count: int) -> Act:
    async def act(bench: Bench) -> None:
        await bench.submit(job(f"j-{number:05d}", 10_000 // count, "default", cpu="100m") for number in range(count))
        await bench.until(lambda: bench.bound("j-", 10_000))

    return act


def run() -> Iterator[Row]:
    kai = "KAI, 500 nodes x 8 GPU"
    interpreter.collect_seldom()
    yield asyncio.run(timed(f"{kai}: filled by 4,000 jobs of one GPU", 397.8, Bench.fill))
    yield asyncio.run(timed(f"{kai}: one job of 512 pods", 48.7, whole_job))
    yield asyncio.run(timed(f"{kai}: full, a gang of 10 x 8 GPU is told that it does not fit", 249.5, told, first=full))
    for name, peer_s, count, pods, gpu in (
        ("one pod", None, 1, 1, "1"),
        ("one job of 250 pods", None, 1, 250, "1"),
        ("one job of 500 pods", None, 1, 500, "1"),
        ("50 gangs of 10 x 8 GPU", 716.9, 50, 10, "8"),
        ("4,000 single pods", 694.5, 4000, 1, "1"),
    ):
        act = lambda bench, count=count, pods=pods, gpu=gpu: bench.reclaim(count, pods, gpu)  # noqa: E731
        yield asyncio.run(timed(f"{kai}: full, reclaim by {name}", peer_s, act, first=full))
    what = "3 of 8 GPU held on each node, 41 gangs of 10 x 6 GPU, until all run and all that moved run again"
    yield asyncio.run(timed(f"{kai}: {what}", 455.7, consolidated, first=in_pieces, conf=MOVING))
    for count in (10_000, 500, 20, 1):
        name = f"kube-scheduling-perf, 1,000 nodes: {count:,} jobs x {10_000 // count:,} pods"
        yield asyncio.run(timed(name, None, of_10_000(count), nodes="1000x64cpu"))
