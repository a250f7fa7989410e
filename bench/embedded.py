"""The embedded cluster as a whole: how long it takes to start, and from submitting gangs until all their pods run.

The start is measured from outside and includes the start of the interpreter. The gangs are Volcano jobs with one task. Their pods run one
second of the cluster's time after they are bound. This second is not subtracted: the figure is the time for which a user waits.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from bench.measure import Row
from pumice import garbage_collection
from pumice.api import Object
from pumice.cli.embedded import Embedded, running
from pumice.cli.up_options import UpRequest, policy_of
from pumice.cluster.nodes.node_pools import nodes_of, pools_of
from pumice.cluster.nodes.stage import read_stages

START_BUDGET_S = 2.5
GANGS_BUDGET_S = 20.0
PATIENCE_S = 300.0
SETTLING_S, IDLE_S = 20.0, 15.0
IDLE_BUDGET = 3.0  #: % of a core, heartbeats of the nodes included


def run() -> Iterator[Row]:
    yield start(1000)
    garbage_collection.collect_seldom()
    yield asyncio.run(gangs(5000, 100, 100))
    yield asyncio.run(idle(1000, 20_000))


def start(nodes: int) -> Row:
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-c", "from pumice.cli.main import main; main()", "up", "--port", "0", "--once"]
        environment = {**os.environ, "HOME": home, "XDG_RUNTIME_DIR": home}
        began = time.perf_counter()
        process = subprocess.Popen([*command, "--nodes", f"{nodes}x8gpu"], env=environment, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
    return Row(
        f"pumice up: {nodes:,} nodes, from nothing to all up, and its end", START_BUDGET_S, None, used.ru_utime + used.ru_stime, wall
    )


def job(name: str, replicas: int) -> Object:
    resources = {"requests": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1", "resources": resources}]}
    tasks = [{"name": "worker", "replicas": replicas, "template": {"spec": pod}}]
    spec = {"schedulerName": "volcano", "minAvailable": replicas, "tasks": tasks}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


async def gangs(nodes: int, count: int, size: int) -> Row:
    """The row of the time from the first submission until all pods run."""
    wanted = UpRequest(policy_of(), read_stages(), list(nodes_of(pools_of(f"{nodes}x8gpu"))), plain=True)
    async with running(wanted) as cluster:
        garbage_collection.settle()
        await asyncio.sleep(1)  # let the nodes' first heartbeats pass
        cpu, wall = time.process_time(), time.perf_counter()
        for number in range(count):
            cluster.plane.store.create("jobs.batch.volcano.sh", job(f"train-{number}", size), "default")
            await asyncio.sleep(0)
        await _until_running(cluster, count * size)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    name = f"embedded: {count} gangs of {size} on {nodes:,} nodes, from submit to running"
    return Row(name, GANGS_BUDGET_S, None, cpu, wall, counts={"pods": count * size})


async def idle(nodes: int, pods: int) -> Row:
    """The row of what a cluster costs in which nothing happens except heartbeats."""
    wanted = UpRequest(policy_of(), read_stages(), list(nodes_of(pools_of(f"{nodes}x64cpu"))), plain=True)
    async with running(wanted) as cluster:
        garbage_collection.settle()
        store = cluster.plane.store
        names = [node["metadata"]["name"] for node in store.all("nodes")]
        container = {"name": "main", "image": "web:1", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
        for number in range(pods):
            store.create("pods", {"metadata": {"name": f"web-{number}"}, "spec": {"containers": [container]}}, "default")
            store.bind("default", f"web-{number}", names[number % nodes])
            await asyncio.sleep(0)
        await _until_running(cluster, pods)
        await asyncio.sleep(SETTLING_S)
        cpu, wall = time.process_time(), time.perf_counter()
        await asyncio.sleep(IDLE_S)
        share = 100 * (time.process_time() - cpu) / (time.perf_counter() - wall)
    return Row(f"embedded: idle, {nodes:,} nodes, {pods:,} running pods", IDLE_BUDGET, None, share, share, "% of a core")


async def _until_running(cluster: Embedded, count: int) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        await asyncio.sleep(0.1)
        pods = list(cluster.plane.store.all("pods"))
        if len(pods) == count and all(pod["status"]["phase"] == "Running" for pod in pods):
            return
    raise TimeoutError(f"not all of {count} pods run after {PATIENCE_S:.0f} s")
