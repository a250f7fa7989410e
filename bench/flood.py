"""One namespace floods, and another works on: a Deployment of two billion replicas, beside which gangs are submitted one after the other.

The figures are what the other namespace feels: the longest of its reads over HTTP, and the longest time from submitting a gang of two until
both pods are bound.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from bench.measure import Row
from pumice import garbage_collection
from pumice.api import Object, kinds
from pumice.api.kinds import PODS
from pumice.cli.embedded import Embedded, running
from pumice.cli.up_options import UpRequest, policy_of
from pumice.client.access import Access, Fixed
from pumice.client.client import Client
from pumice.client.transport import ListScope
from pumice.cluster.nodes.node_pools import nodes_of, pools_of
from pumice.cluster.nodes.stage import read_stages

READ_BUDGET_S, GANG_BUDGET_S = 1.0, 1.0
PATIENCE_S = 120.0
GANGS, PAUSE_S = 8, 1.0


def run() -> Iterator[Row]:
    garbage_collection.collect_seldom()
    yield from asyncio.run(beside_a_flood(300))


def _pod_spec() -> Object:
    return {"containers": [{"name": "main", "image": "web:1", "resources": {"requests": {"cpu": "100m"}}}]}


def flood() -> Object:
    labels = {"app": "flood"}
    template = {"metadata": {"labels": labels}, "spec": _pod_spec()}
    spec = {"replicas": 2**31 - 1, "selector": {"matchLabels": labels}, "template": template}
    return kinds.new("Deployment.apps", "flood", "flood", spec=spec)


def gang(number: int) -> Object:
    tasks = [{"name": "w", "replicas": 2, "template": {"spec": {"restartPolicy": "Never", **_pod_spec()}}}]
    return kinds.new(kinds.JOB, "quiet", f"gang-{number}", spec={"schedulerName": "volcano", "minAvailable": 2, "tasks": tasks})


async def beside_a_flood(nodes: int) -> list[Row]:
    wanted = UpRequest(policy_of(), read_stages(), list(nodes_of(pools_of(f"{nodes}x64cpu"))), plain=True)
    async with running(wanted) as cluster, Client(Access(cluster.server.url, Fixed(f"Bearer {cluster.server.token}"))) as client:
        garbage_collection.settle()
        store = cluster.plane.store
        for name in ("flood", "quiet"):
            store.create("namespaces", {"metadata": {"name": name}})
        store.create("deployments.apps", flood(), "flood")
        reads: list[float] = []
        reading = asyncio.create_task(_read(client, reads))
        gangs = [await _bound(cluster, number) for number in range(GANGS)]
        reading.cancel()
        made = sum(1 for _ in store.all("pods", "flood"))
    figures = (("longest read of another namespace", READ_BUDGET_S, reads), ("a gang of another one, until bound", GANG_BUDGET_S, gangs))
    counts = {"pods of the flood": made}
    return [Row(f"flood of one namespace: {what}", budget, None, max(took), max(took), counts=counts) for what, budget, took in figures]


async def _read(client: Client, reads: list[float]) -> None:
    while True:
        began = time.perf_counter()
        async for _ in client.pages(ListScope(PODS, "quiet")):
            pass
        reads.append(time.perf_counter() - began)
        await asyncio.sleep(0.02)


async def _bound(cluster: Embedded, number: int) -> float:
    """How long it takes until both pods of a gang that is submitted now are bound."""
    store = cluster.plane.store
    await asyncio.sleep(PAUSE_S)
    began = time.perf_counter()
    store.create("jobs.batch.volcano.sh", gang(number), "quiet")
    while time.perf_counter() - began < PATIENCE_S:
        pods = [pod for pod in store.all("pods", "quiet") if pod["metadata"]["name"].startswith(f"gang-{number}-")]
        if len(pods) == 2 and all(pod["spec"].get("nodeName") for pod in pods):
            return time.perf_counter() - began
        await asyncio.sleep(0.005)
    raise TimeoutError(f"gang {number} was not bound within {PATIENCE_S:.0f} s")
