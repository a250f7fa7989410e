"""The live scheduler, a process of its own, on a real kube-apiserver and etcd: CPU spent, seconds by the wall, memory.

Measured like the peers: gangs are created before the scheduler starts, from its start to the last bind; CPU while many pods run and nothing
happens; from a start in this state to the first bind, for the first scheduler that sees the pods and for the next. Further rows have the
server's own limit (binds by a client that decides nothing), and the time from submission to the last bind, in turn by a running
scheduler, by a client that watches the pods and only binds (`live_binder.py`), and by the submitter itself. Needs what tests/cluster needs:
Go, or the programs in the cache; else there are no rows.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench import live_binder
from bench.live_binder import HANDS, bind
from bench.measure import Row, rate

sys.path.append(str(Path(__file__).parent.parent / "tests" / "cluster"))

from binaries import why_not
from realcluster import RealCluster
from stage import Stage, install_definitions

from pumice.api.kinds import NAMESPACES, NODES, POD_GROUPS, PODS, ObjectRef
from pumice.client.client import Client
from pumice.client.known_versions import Deleted
from pumice.client.reflector import Reflector, dict_metadata
from pumice.client.transport import ListScope, PatchType, as_dict
from pumice.live.clock import WallClock
from pumice.live.scheduler.required_queues import make_queues

GANGS, MEMBERS, NODE_COUNT = 20, 100, 1000
RUNNING = 20_000
SUBMITTED = {2000: 11, 10_000: 5}  #: number of rounds, by number of pods
STARTS = {
    f"live: first start with {RUNNING} pods of which nothing was written yet, to the first bind": 4.0,
    f"live: restart with {RUNNING} pods to the first bind": 0.5,
}
NAMESPACE = "bench"
TICKS_S = os.sysconf("SC_CLK_TCK")
IDLE_S = 30.0


class Watched:
    """The names of placed pods, as the watch reports them, and when the first and the last of them were placed."""

    def __init__(self) -> None:
        self.placed: set[str] = set()
        self.first_at = self.last_at = 0.0

    def take(self, change: Any) -> None:
        if isinstance(change, Deleted) or not change.object["spec"].get("nodeName"):
            return
        if change.object["metadata"]["name"] not in self.placed:
            self.placed.add(change.object["metadata"]["name"])
            self.last_at = time.monotonic()
            self.first_at = self.first_at or self.last_at

    async def until(self, count: int) -> None:
        while len(self.placed) < count:
            await asyncio.sleep(0.02)


def pumice(kubeconfig: Path, *flags: str) -> list[str]:
    """The command that runs Pumice's scheduler with this kubeconfig."""
    return [str(Path(sys.executable).with_name("pumice")), "scheduler", f"--kubeconfig={kubeconfig}", "--leader-elect=false", *flags]


class Process:
    """A running program: when it was started, its CPU time and its peak memory."""

    def __init__(self, command: list[str]) -> None:
        self.started_at = time.monotonic()
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @property
    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_S

    @property
    def memory_mib(self) -> float:
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(30)


async def at_once(calls: Iterable[Callable[[], Awaitable[Any]]]) -> None:
    """Await all calls, at most HANDS of them at once: the server handles this number well."""
    places = asyncio.Semaphore(HANDS)

    async def one(call: Callable[[], Awaitable[Any]]) -> None:
        async with places:
            await call()

    await asyncio.gather(*(one(call) for call in calls))


async def add_node(client: Client, name: str, **labels: str) -> None:
    await client.create(NODES, {"metadata": {"name": name, "labels": labels}})
    amounts = {"cpu": "32", "memory": "256Gi", "pods": "256"}
    status = {"allocatable": amounts, "capacity": amounts}
    await client.patch(NODES, ObjectRef(name), {"status": status}, PatchType.MERGE, subresource="status")
    await client.patch(NODES, ObjectRef(name), {"spec": {"taints": None}}, PatchType.MERGE)


def binder(kubeconfig: Path) -> list[str]:
    """The command that runs the client that only binds."""
    return [sys.executable, "-m", "bench.live_binder", str(kubeconfig), str(NODE_COUNT)]


def _pod(name: str, group: str, node: str = "", scheduler: str = "volcano") -> dict[str, Any]:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "250m", "memory": "1Gi"}}}
    spec = {"containers": [container], "schedulerName": scheduler, "automountServiceAccountToken": False, "nodeName": node}
    return {"metadata": {"name": name, "annotations": {"scheduling.k8s.io/group-name": group}}, "spec": spec}


async def _gangs(
    client: Client, namespace: str, count: int, members: int, *, prefix: str, nodes: int = 0, scheduler: str = "volcano"
) -> None:
    """Create PodGroups and their pods. With `nodes`, the pods are already bound to that many nodes."""
    spec = {"minMember": members, "queue": "default"}
    group = {"apiVersion": POD_GROUPS.api_version, "kind": POD_GROUPS.kind, "spec": spec}
    groups = [group | {"metadata": {"name": f"{prefix}{number}"}} for number in range(count)]
    await at_once([lambda g=group: client.create(POD_GROUPS, g, namespace) for group in groups])
    pods = [
        _pod(f"{prefix}{group}-{member}", f"{prefix}{group}", f"n{(group * members + member) % nodes}" if nodes else "", scheduler)
        for group in range(count)
        for member in range(members)
    ]
    await at_once([lambda p=pod: client.create(PODS, p, namespace) for pod in pods])


@asynccontextmanager
async def _nodes_and_queue(cluster: RealCluster) -> AsyncIterator[tuple[Client, Watched]]:
    """Create empty nodes and an open queue, and watch the pods inside this context."""
    async with Client(cluster.access()) as client:
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        await install_definitions(client)
        stage = Stage(client, NAMESPACE)
        await stage.set_up()
        await make_queues(client, "default", WallClock())
        await stage.open_queue("default")
        await at_once([lambda n=number: add_node(client, f"n{n}") for number in range(NODE_COUNT)])
        watched = Watched()
        reflector = Reflector(client, ListScope(PODS, NAMESPACE), as_dict, watched.take, metadata=dict_metadata)
        following = asyncio.create_task(reflector.run())
        try:
            yield client, watched
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


async def _measure(cluster: RealCluster) -> list[Row]:
    async with _nodes_and_queue(cluster) as (client, watched):
        rows = await _gang_rows(client, cluster, watched)
        rows += await _idle_rows(client, cluster, watched)
        rows.append(await _limit(client))
        return rows


async def _gang_rows(client: Client, cluster: RealCluster, watched: Watched) -> list[Row]:
    await _gangs(client, NAMESPACE, GANGS, MEMBERS, prefix="g")
    process = Process(pumice(cluster.kubeconfig()))
    try:
        await watched.until(GANGS * MEMBERS)
        wall_s = watched.last_at - process.started_at
        counts = {"ms to first bind": round(1000 * (watched.first_at - process.started_at)), "MiB": round(process.memory_mib)}
        name = f"live: {GANGS * MEMBERS} pods in gangs of {MEMBERS}, {NODE_COUNT} nodes"
        binds = rate("live: binds from the first to the last of them", GANGS * MEMBERS / (watched.last_at - watched.first_at))
        return [Row(name, 3.0, 13.8, process.cpu_s, wall_s, counts=counts), binds]
    finally:
        process.end()


async def _submissions(cluster: RealCluster) -> list[Row]:
    """The rows, one for each number of pods. A running scheduler, a client that only binds, and the submitter that binds by itself are
    measured in turn, each in an empty cluster; the row has the turn with the median ratio of the first two."""
    async with _nodes_and_queue(cluster) as (client, watched):
        rows = []
        for count, rounds in SUBMITTED.items():
            turns = []
            for turn in range(rounds):
                scheduled_s = await _bound(client, pumice(cluster.kubeconfig()), watched, count, f"s{count}-{turn}-", "volcano")
                bare_s = await _bound(client, binder(cluster.kubeconfig()), watched, count, f"b{count}-{turn}-", live_binder.NAME)
                own_s = await _bound_by_hand(client, count, f"own{count}-{turn}-")
                turns.append((scheduled_s / bare_s, scheduled_s, bare_s, scheduled_s / own_s))
            ratios, _, _, of_own = zip(*sorted(turns), strict=True)
            _, scheduled_s, bare_s, _ = sorted(turns)[len(turns) // 2]
            name = f"live: {count} pods in gangs of {MEMBERS} from submit to the last bind"
            counts = {
                "s by a client that only binds": round(bare_s, 2),
                "times as long": _listed(ratios),
                "times as long as the submitter itself": _listed(sorted(of_own)),
            }
            rows.append(Row(name, 1.1 * bare_s, None, scheduled_s, scheduled_s, counts=counts))
        return rows


def _listed(ratios: Iterable[float]) -> str:
    return " ".join(f"{ratio:.2f}" for ratio in ratios)


async def _bound(client: Client, command: list[str], watched: Watched, count: int, prefix: str, scheduler: str) -> float:
    """Seconds from the submission of the first pod to the bind of the last pod, by a program that is already running."""
    process = Process(command)
    try:
        await asyncio.sleep(3)  # by then the program has read the cluster and has nothing to do
        placed, started = len(watched.placed), time.monotonic()
        await _gangs(client, NAMESPACE, count // MEMBERS, MEMBERS, prefix=prefix, scheduler=scheduler)
        await watched.until(placed + count)
        return watched.last_at - started
    finally:
        process.end()
        await _clear(client)


async def _bound_by_hand(client: Client, count: int, prefix: str) -> float:
    """Seconds to create and bind the pods, by a submitter that binds each pod as soon as it has created the pod."""

    async def place(number: int) -> None:
        pod = _pod(f"{prefix}{number}", "none", scheduler="nobody")
        await client.create(PODS, pod, NAMESPACE)
        await bind(client, NAMESPACE, pod["metadata"]["name"], f"n{number % NODE_COUNT}")

    started = time.monotonic()
    await at_once([lambda number=number: place(number) for number in range(count)])
    took_s = time.monotonic() - started
    await _clear(client)
    return took_s


async def _clear(client: Client) -> None:
    """Delete all pods and PodGroups, so that each turn begins with an empty cluster."""
    for kind in (PODS, POD_GROUPS):
        names = [as_dict(item)["metadata"]["name"] async for page in client.pages(ListScope(kind, NAMESPACE)) for item in page.items]
        await at_once([lambda k=kind, n=name: client.delete(k, ObjectRef(n, NAMESPACE), grace_s=0) for name in names])


async def _idle_rows(client: Client, cluster: RealCluster, watched: Watched) -> list[Row]:
    await _gangs(client, NAMESPACE, RUNNING // MEMBERS - GANGS, MEMBERS, prefix="r", nodes=NODE_COUNT)
    await watched.until(RUNNING)
    starts = []
    for name, budget_s in STARTS.items():
        await _gangs(client, NAMESPACE, 1, 1, prefix=f"new{len(starts)}-")
        process = Process(pumice(cluster.kubeconfig()))
        try:
            await watched.until(RUNNING + len(starts) + 1)
            starts.append(Row(name, budget_s, 3.0, process.cpu_s, watched.last_at - process.started_at))
            await asyncio.sleep(10)
            if len(starts) == len(STARTS):
                before = process.cpu_s
                await asyncio.sleep(IDLE_S)
                idle_percent = 100 * (process.cpu_s - before) / IDLE_S
                memory = {"MiB": round(process.memory_mib)}
        finally:
            process.end()
    return [*starts, Row(f"live: idle with {RUNNING} pods, percent of a core", 1.0, 45.0, idle_percent, idle_percent, "%", memory)]


async def _limit(client: Client) -> Row:
    """The row of the binds per second that the server accepts from a client that only binds."""
    names = [f"bare-{number}" for number in range(GANGS * MEMBERS)]
    pods = [_pod(name, "none", scheduler="nobody") for name in names]
    await at_once([lambda p=pod: client.create(PODS, p, NAMESPACE) for pod in pods])

    started = time.monotonic()
    await at_once(
        [lambda name=name, number=number: bind(client, NAMESPACE, name, f"n{number % NODE_COUNT}") for number, name in enumerate(names)]
    )
    return rate("live: binds by a bare client, nothing else running", len(names) / (time.monotonic() - started))


def run() -> list[Row]:
    reason = why_not()
    if reason:
        print(f"live: {reason}")
        return []
    rows = []
    for part in (_measure, _submissions):
        with tempfile.TemporaryDirectory() as folder, RealCluster(Path(folder)) as cluster:
            rows += asyncio.run(part(cluster))
    return rows
