"""The benchmarks of other schedulers, with their shapes, on the embedded cluster: API server, controllers, kubelets and scheduler in one
process. Each figure is the wall time from the first submission until all pods are bound or run (for a gang that cannot run: until it is
told so). "peer" is what the peer's own benchmark has published for the shape, with a real API server on other machines.

* KAI's twelve scale cases: 500 nodes of 8 GPU; where topology is the question 512 in racks of two, eight racks in a block, eight blocks in
  a zone. Pods come after their PodGroup was let in, so "before anything is decided" only jobs are there.
* The four shapes of kube-scheduling-perf: 10,000 pods in 10,000, 500, 20 jobs and in one. It publishes curves, not figures.
* Kueue's generators of load, baseline and large-scale: queues below cohorts, to which jobs of three sizes come at their intervals, run
  for a moment and end. What Kueue calls nominal quota is deserved here, and with what may be borrowed it is the capability.
* Godel's 30,000 nodes, with 20,000 pods.

Beside them a client that only binds: pods as many as KAI's and kube-scheduling-perf's, made and bound at once.

`python -m bench peers` takes some minutes; `python -m bench.peers WORD` measures those whose names have the word.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from bench.measure import Row
from bench.sessions import VICTIMS, policy
from pumice import garbage_collection
from pumice.api import Object
from pumice.api.annotations import RUN_SECONDS
from pumice.cli.embedded import Embedded, running
from pumice.cli.up_options import UpRequest
from pumice.cluster.nodes.node_pools import nodes_of, pools_of
from pumice.cluster.nodes.stage import read_stages

PATIENCE_S = 900.0
NODES = 500
GPU = "nvidia.com/gpu"
RECLAIMING = VICTIMS.format(action="reclaim")
BY_DESERVED = RECLAIMING.replace("proportion", "capacity")
IN_RACKS = RECLAIMING + "  - name: network-topology-aware\n"
COHORTS = VICTIMS.format(action="preempt, reclaim").replace("proportion", "capacity\n    enableHierarchy: true")
MOVING = """\
actions: "enqueue, allocate, consolidate, backfill"
configurations:
- name: consolidate
  arguments: {movesPerCycle: 0, minimumRunTime: 0s, maximumLostWork: 0s}
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""


def job(
    name: str, pods: int, queue: str, *, runs_s: float | None = None, priority: str = "", topology: bool = False, **requests: str
) -> Object:
    asked = {key.replace("gpu", GPU): value for key, value in requests.items()}
    limits = {key: value for key, value in asked.items() if "/" in key}
    container = {"name": "main", "image": "train:1", "resources": {"requests": asked, "limits": limits}}
    template: Object = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    if runs_s is not None:
        template["metadata"] = {"annotations": {RUN_SECONDS: str(runs_s)}}
    task = {"name": "worker", "replicas": pods, "template": template}
    spec: Object = {"schedulerName": "volcano", "minAvailable": pods, "queue": queue, "tasks": [task], "priorityClassName": priority}
    if topology:
        spec["networkTopology"] = {"mode": "soft"}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def jobs(name: str, count: int, pods: int, gpu: str = "1", queue: str = "default") -> Iterator[Object]:
    return (job(f"{name}-{number:05d}", pods, queue, cpu="1", gpu=gpu) for number in range(count))


class Bench:
    """A cluster in which jobs are submitted."""

    def __init__(self, cluster: Embedded) -> None:
        self._store = cluster.plane.store

    async def submit(self, wanted: Iterator[Object], *, at_once: bool = False) -> None:
        """Make jobs. `at_once`: before anything else happens in the cluster."""
        for each in wanted:
            self._store.create("jobs.batch.volcano.sh", each, "default")
            if not at_once:
                await asyncio.sleep(0)

    async def until(self, holds: Callable[[], bool], every_s: float = 0.1) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                await asyncio.sleep(every_s)

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

    def ended(self) -> int:
        """How many jobs have ended."""
        found = self._store.storage.kind_storage("jobs.batch.volcano.sh").objects.values()  # in no order: there are tens of thousands
        return sum(each.get("status", {}).get("state", {}).get("phase") == "Completed" for each in found)

    async def bind_only(self, pods: int) -> None:
        """Make pods and bind each at once, as a client does that decides nothing."""
        nodes = [node["metadata"]["name"] for node in self._store.all("nodes")]
        container = {"name": "main", "image": "train:1", "resources": {"requests": {"cpu": "10m"}}}
        for number in range(pods):
            meta = {"name": f"only-bound-{number:05d}"}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"schedulerName": "nobody", "containers": [container]}}
            self._store.create("pods", pod, "default")
            self._store.bind("default", meta["name"], nodes[number % len(nodes)])
            await asyncio.sleep(0)

    async def fill(self, queue: str = "default", gpu: int = 1, *, at_once: bool = False) -> None:
        count = NODES * 8 // gpu
        await self.submit(jobs("fill", count, 1, str(gpu), queue), at_once=at_once)
        await self.until(lambda: self.bound("fill", count))

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


def queue(name: str, weight: int, **more: object) -> Object:
    spec = {"weight": weight, **more}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


class Stream(NamedTuple):
    """Jobs of one size that come to each queue, one after the other."""

    size: str
    count: int
    every_s: float
    runs_s: float
    priority: int
    cpu: str


class Cohorts(NamedTuple):
    """Cohorts of equal queues, and what comes to each queue."""

    cohorts: int
    queues: int
    streams: tuple[Stream, ...]

    @property
    def jobs(self) -> int:
        return self.cohorts * self.queues * sum(stream.count for stream in self.streams)

    def objects(self) -> Iterator[Object]:
        for stream in self.streams:
            meta = {"name": stream.size}
            yield {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta, "value": stream.priority}
        for cohort in range(self.cohorts):
            yield queue(f"cohort-{cohort}", 1, deserved={"cpu": str(20 * self.queues)})
            for number in range(self.queues):
                quota = {"deserved": {"cpu": "20"}, "capability": {"cpu": "120"}}
                yield queue(f"cq-{cohort}-{number}", 1, parent=f"cohort-{cohort}", **quota)

    async def submit(self, bench: Bench) -> None:
        """Let the jobs come at their times, and wait until all have ended."""
        async with asyncio.TaskGroup() as tasks:
            for cohort in range(self.cohorts):
                for number in range(self.queues):
                    for stream in self.streams:
                        tasks.create_task(self._come(bench, f"cq-{cohort}-{number}", stream))
        await bench.until(lambda: bench.ended() >= self.jobs, every_s=2.0)

    async def _come(self, bench: Bench, name: str, stream: Stream) -> None:
        for number in range(stream.count):
            made = job(f"{name}-{stream.size}-{number}", 1, name, runs_s=stream.runs_s, priority=stream.size, cpu=stream.cpu)
            await bench.submit(iter([made]))
            await asyncio.sleep(stream.every_s)


BASELINE = Cohorts(
    5, 6, (Stream("small", 350, 0.1, 0.2, 50, "1"), Stream("medium", 100, 0.5, 0.5, 100, "5"), Stream("large", 50, 1.2, 1.0, 200, "20"))
)
LARGE_SCALE = BASELINE._replace(cohorts=10, queues=10)


Act = Callable[[Bench], Awaitable[None]]


async def timed(
    name: str,
    peer_s: float | None,
    act: Act,
    *,
    first: Act | None = None,
    nodes: str = f"{NODES}x8gpu",
    conf: str = RECLAIMING,
    more: Iterable[Object] = (),
) -> Row:
    """The row of one case, in a cluster of its own. `first`: what is done there before; `more`: what is there from the start."""
    wanted = UpRequest(policy(conf), read_stages(), list(nodes_of(pools_of(nodes))), plain=True)
    async with running(wanted) as cluster:
        cluster.plane.add([queue("poor", 1, deserved={GPU: "0"}), queue("rich", 65_535, deserved={GPU: str(NODES * 8)}), *more])
        garbage_collection.settle()
        bench = Bench(cluster)
        await bench.until(bench.is_open)
        if first is not None:
            await first(bench)
        cpu, wall = time.process_time(), time.perf_counter()
        await act(bench)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Row(name, None, peer_s, cpu, wall)


async def full(bench: Bench, gpu: int = 1) -> None:
    """All GPUs are held by jobs of a queue that deserves next to nothing."""
    await bench.fill("poor", gpu)


async def others_wait(bench: Bench) -> None:
    """400 jobs wait in a queue that gets no GPU."""
    await bench.submit(jobs("background", 400, 1, queue="none"))
    await bench.until(lambda: bench.is_told("background"))


def racks() -> Iterator[Object]:
    """HyperNodes for 512 nodes."""
    below, kind = [f"gpu8-{number}" for number in range(512)], "Node"
    for tier, (name, size) in enumerate((("rack", 2), ("block", 8), ("zone", 8)), 1):
        whole = [below[first : first + size] for first in range(0, len(below), size)]
        below = [f"{name}-{number}" for number in range(len(whole))]
        for made, its in zip(below, whole, strict=True):
            members = [{"type": kind, "selector": {"exactMatch": {"name": each}}} for each in its]
            spec = {"tier": tier, "members": members}
            yield {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": made}, "spec": spec}
        kind = "HyperNode"


async def in_pieces(bench: Bench) -> None:
    await bench.fill()
    await bench.leave(3)


async def consolidated(bench: Bench) -> None:
    await bench.submit(jobs("gang", 41, 10, "6"))
    await bench.until(lambda: bench.run(NODES * 3 + 410))


async def told(bench: Bench) -> None:
    await bench.submit(jobs("large", 1, 10, "8", queue="poor"))
    await bench.until(lambda: bench.is_told("large"))


async def whole_job(bench: Bench, *, topology: bool = False) -> None:
    await bench.submit(iter([job("large", 512, "default", topology=topology, cpu="1", gpu="2")]))
    await bench.until(lambda: bench.bound("large", 512))


def of_pods(pods: int, count: int) -> Act:
    async def act(bench: Bench) -> None:
        await bench.submit(job(f"j-{number:05d}", pods // count, "default", cpu="100m") for number in range(count))
        await bench.until(lambda: bench.bound("j-", pods))

    return act


def cases() -> Iterator[tuple[str, Callable[[str], Coroutine[None, None, Row]]]]:
    """The names of all rows, and what measures them."""
    kai, perf = "KAI, 500 nodes x 8 GPU", "kube-scheduling-perf, 1,000 nodes"
    yield f"{kai}: filled by 4,000 jobs of one GPU", partial(timed, peer_s=397.8, act=Bench.fill)
    at_once = partial(Bench.fill, at_once=True)
    yield f"{kai}: filled by 4,000 jobs of one GPU that are there before anything is decided", partial(timed, peer_s=None, act=at_once)
    none = [queue("none", 1, capability={GPU: "0"})]
    background = partial(timed, peer_s=None, act=Bench.fill, first=others_wait, more=none)
    yield f"{kai}: filled by 4,000 jobs of one GPU while 400 others wait in vain", background
    yield "KAI, 512 nodes x 8 GPU: one job of 512 pods of 2 GPU", partial(timed, peer_s=48.7, act=whole_job, nodes="512x8gpu")
    in_racks = partial(whole_job, topology=True)
    measure = partial(timed, peer_s=None, act=in_racks, nodes="512x8gpu", conf=IN_RACKS, more=[*racks()])
    yield "KAI, 512 nodes x 8 GPU in racks: one job of 512 pods of 2 GPU, in few racks if possible", measure
    yield f"{kai}: full, a gang of 10 x 8 GPU is told that it does not fit", partial(timed, peer_s=249.5, act=told, first=full)
    for name, peer_s, count, pods, gpu, held in (
        ("of jobs of one GPU by one pod", None, 1, 1, 1, 1),
        ("of jobs of one GPU by one job of 250 x 8 GPU", None, 1, 250, 8, 1),
        ("of jobs of 8 GPU by one job of 500 x 8 GPU", None, 1, 500, 8, 8),
        ("of jobs of one GPU by 50 gangs of 10 x 8 GPU", 716.9, 50, 10, 8, 1),
        ("of jobs of one GPU by 4,000 single pods", 694.5, 4000, 1, 1, 1),
    ):
        act = partial(Bench.reclaim, count=count, pods=pods, gpu=str(gpu))
        yield f"{kai}: full, reclaim {name}", partial(timed, peer_s=peer_s, act=act, first=partial(full, gpu=held), conf=BY_DESERVED)
    what = "3 of 8 GPU held on each node, 41 gangs of 10 x 6 GPU, until all run and all that moved run again"
    yield f"{kai}: {what}", partial(timed, peer_s=455.7, act=consolidated, first=in_pieces, conf=MOVING)
    for count in (10_000, 500, 20, 1):
        act = of_pods(10_000, count)
        yield f"{perf}: {count:,} jobs x {10_000 // count:,} pods", partial(timed, peer_s=None, act=act, nodes="1000x64cpu")
    for name, load, peer_s in (("baseline", BASELINE, 351), ("large-scale", LARGE_SCALE, 1179)):
        nodes = f"{load.cohorts * load.queues}x64cpu"
        measure = partial(timed, peer_s=peer_s, act=load.submit, nodes=nodes, conf=COHORTS, more=load.objects())
        yield f"Kueue, {name}: {load.jobs:,} jobs in {load.cohorts * load.queues} queues, from the first until all have ended", measure
    act = of_pods(20_000, 200)
    yield "Godel, 30,000 nodes: 200 jobs x 100 pods", partial(timed, peer_s=10.0, act=act, nodes="30000x64cpu")
    for pods in (512, 4000, 10_000):
        yield (
            f"a client that only binds: {pods:,} pods made and bound",
            partial(timed, peer_s=None, act=partial(Bench.bind_only, pods=pods)),
        )


def run(word: str = "") -> Iterator[Row]:
    garbage_collection.collect_seldom()
    for name, measure in cases():
        if word in name:
            yield asyncio.run(measure(name))


if __name__ == "__main__":
    for row in run(*sys.argv[1:2]):
        print(f"{row.name}: {row.cpu:.2f} s of CPU, {row.wall:.2f} s, peer {row.peer or ''}", flush=True)
