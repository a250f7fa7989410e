"""The scheduler over HTTP, and a proxy before the server that spoils every kind of call and watch: all ends as it would without."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from pumice.api.quantity import quantity
from pumice.client.access import Access, Fixed
from pumice.client.client import Client
from pumice.client.rate_limit import ClientLimits
from pumice.cluster.apiserver import Server
from pumice.cluster.clock import RunningClock
from pumice.cluster.control_plane import ControlPlane
from pumice.cluster.nodes.containers import SimulatedContainers
from pumice.cluster.nodes.stage import read_stages
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from tests.live.fault_proxy import ODD_SCRIPT, SCRIPT, FaultProxy, Step
from tests.live.stories import PREEMPTING, policy

NODES, CPU = 4, 4
TROUBLE_S, CALM_S = 8.0, 120.0


def node(name: str) -> dict[str, Any]:
    amounts = {"cpu": str(CPU), "memory": "64Gi", "pods": "64"}
    metadata = {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": amounts, "capacity": amounts}}


def job(name: str, replicas: int, least: int, priority: str = "") -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"schedulerName": "volcano", "minAvailable": least, "tasks": [{"name": "w", "replicas": replicas, "template": template}]}
    if priority:
        spec["priorityClassName"] = priority
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


class Watchman:
    """Looks at every change of a pod: nobody moves from node to node, and no node holds more than it has."""

    def __init__(self, plane: ControlPlane) -> None:
        self.breaches: list[str] = []
        self.evicted: set[str] = set()
        self._plane = plane
        self._nodes: dict[str, str] = {}
        plane.store.storage.listen(lambda storage, event: self._look(), "pods")

    def _look(self) -> None:
        used: Counter[str] = Counter()
        for pod in self._plane.store.all("pods"):
            name, where = pod["metadata"]["uid"], pod["spec"].get("nodeName") or ""
            if self._nodes.setdefault(name, where) not in ("", where):
                self.breaches.append(f"{pod['metadata']['name']} went from {self._nodes[name]} to {where}")
            self._nodes[name] = where
            if pod["metadata"].get("deletionTimestamp") and where:
                self.evicted.add(pod["metadata"]["name"])
            if where and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                used[where] += int(quantity(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]).milli)
        self.breaches += [f"{where} holds {milli}m" for where, milli in used.items() if milli > CPU * 1000]

    def running(self) -> Counter[str]:
        """Pods by job."""
        pods = [pod for pod in self._plane.store.all("pods") if (pod.get("status") or {}).get("phase") == "Running"]
        return Counter(pod["metadata"]["name"].partition("-")[0] for pod in pods if not pod["metadata"].get("deletionTimestamp"))


async def play(seed: int, rate: float, script: Sequence[Step] = ()) -> tuple[Watchman, Counter[str]]:
    """With a script, the first jobs run before the next comes, and all ends when all of the script was done."""
    clock = RunningClock(time.time(), 1.0)
    plane = ControlPlane(clock, Server(clock=clock.now, containers=SimulatedContainers(clock.now), plain=True), read_stages())
    watchman = Watchman(plane)
    await plane.start()
    try:
        while (plane.store.find("queues.scheduling.volcano.sh", "", "default") or {}).get("status", {}).get("state") != "Open":
            await asyncio.sleep(0.01)
        plane.add([node(f"n{number}") for number in range(NODES)])
        high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
        plane.add([high, job("base", 12, 4), job("train", 4, 4)])
        async with FaultProxy(plane.server.url, seed, rate, script) as proxy:
            access = Access(proxy.url, Fixed(f"Bearer {plane.server.token}"))
            async with Client(access, limits=ClientLimits(timeout_s=2.0)) as client:
                scheduler = Scheduler(client, policy(PREEMPTING), Options(), clock)
                deciding = asyncio.create_task(scheduler.run())
                if script:
                    async with asyncio.timeout(CALM_S):
                        while watchman.running() != {"base": 12, "train": 4}:
                            await asyncio.sleep(0.1)
                else:
                    await asyncio.sleep(TROUBLE_S / 2)
                plane.add([job("urgent", 3, 3, "high")])
                if not script:
                    await asyncio.sleep(TROUBLE_S / 2)
                proxy.rate = 0.0
                async with asyncio.timeout(CALM_S):
                    while proxy.left or watchman.running() != {"base": 9, "train": 4, "urgent": 3}:
                        if deciding.done():
                            deciding.result()
                        await asyncio.sleep(0.1)
                deciding.cancel()
                await asyncio.gather(deciding, return_exceptions=True)
            return watchman, proxy.done
    finally:
        await plane.stop()


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 12))])
def test_all_ends_as_it_would_without_faults(seed: int) -> None:
    watchman, done = asyncio.run(play(seed, 0.3))
    assert not watchman.breaches and sum(done.values()) > 3
    assert {name.partition("-")[0] for name in watchman.evicted} <= {"base"} and len(watchman.evicted) <= 6


@pytest.mark.parametrize("script", [SCRIPT, ODD_SCRIPT], ids=["versions and sizes", "odd answers"])
def test_a_server_that_lies_costs_no_gang_and_no_pod_its_node(script: Sequence[Step]) -> None:
    watchman, done = asyncio.run(play(1, 0.0, script))
    assert not watchman.breaches and sum(done.values()) == sum(step.times for step in script)
