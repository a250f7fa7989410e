"""The real kube-scheduler and `pumice scheduler` by the same profile, one after the other on the same real API server, in one run.

The shapes are some of scheduler_perf's. Both schedulers score all nodes, and neither is slowed by its limit on requests. The pods are
created before the scheduler starts; CPU is measured from its start to the last bind. Needs what `live` needs, and also kube-scheduler.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from bench.live import Process, Watched, add_node, at_once, pumice
from bench.measure import Row
from bench.scheduler_perf import HOST, LABELS, SHAPES, ZONE

# isort: split
from binaries import program, why_not
from realcluster import RealCluster
from stage import Stage, install_definitions

from pumice.api.kinds import NAMESPACES, PODS, ObjectRef
from pumice.client.client import Client
from pumice.client.reflector import Reflector, dict_metadata
from pumice.client.transport import ListScope, as_dict

NAMESPACE, NODE_COUNT, POD_COUNT = "peers", 1000, 1000
CHOSEN = (
    "basic",
    "required pod anti-affinity by host",
    "required pod affinity by zone",
    "preferred pod anti-affinity by host",
    "spreading by zone, required",
    "spreading by host, preferred",
)


def run() -> Iterator[Row]:
    reason = why_not(("etcd", "kube-apiserver", "kube-scheduler"))
    if reason:
        print(f"live_peer: {reason}")
        return
    with tempfile.TemporaryDirectory() as folder, RealCluster(Path(folder)) as cluster:
        commands = _commands(cluster, Path(folder))
        asyncio.run(_prepare(cluster))
        for shape in SHAPES:
            if shape.name in CHOSEN:
                assert isinstance(shape.spec, dict)
                theirs, ours = (asyncio.run(_placed(cluster, command, shape.spec)) for command in commands)
                name = f"live, beside kube-scheduler: {shape.name}, {NODE_COUNT:,} nodes, {POD_COUNT:,} pods"
                counts = {"binds/s": round(ours.rate), "binds/s of kube-scheduler": round(theirs.rate)}
                yield Row(name, None, theirs.cpu_s, ours.cpu_s, ours.wall_s, counts=counts)


class Placed:
    """What a scheduler needed to place the pods: CPU seconds, seconds by the wall, and binds per second."""

    def __init__(self, process: Process, watched: Watched) -> None:
        self.cpu_s = process.cpu_s
        self.wall_s = watched.last_at - process.started_at
        self.rate = POD_COUNT / (watched.last_at - watched.first_at)


def _commands(cluster: RealCluster, folder: Path) -> tuple[list[str], list[str]]:
    """The commands of kube-scheduler and of Pumice's scheduler, each with its configuration file."""
    profiles: dict[str, Any] = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    connection = {"kubeconfig": str(cluster.kubeconfig()), "qps": 5000, "burst": 5000}
    kube = profiles | {"percentageOfNodesToScore": 100, "clientConnection": connection, "leaderElection": {"leaderElect": False}}
    theirs, ours = folder / "kube-scheduler.yaml", folder / "pumice.yaml"
    theirs.write_text(yaml.safe_dump(kube))
    ours.write_text(yaml.safe_dump(profiles))
    return (
        [str(program("kube-scheduler")), f"--config={theirs}", "--secure-port=0"],
        pumice(cluster.kubeconfig(), f"--scheduler-conf={ours}", "--scheduler-name=default-scheduler"),
    )


async def _prepare(cluster: RealCluster) -> None:
    async with Client(cluster.access()) as client:
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        await install_definitions(client)
        await Stage(client, NAMESPACE).set_up()
        labels = [{HOST: f"n{number}", ZONE: f"zone-{number % 3}"} for number in range(NODE_COUNT)]
        await at_once([lambda node=node: add_node(client, node[HOST], **node) for node in labels])


async def _placed(cluster: RealCluster, command: list[str], spec: dict[str, Any]) -> Placed:
    """Create the pods, let the scheduler of this command place them, and delete them. Return what the scheduler needed."""
    async with Client(cluster.access()) as client:
        names = [f"p{number}" for number in range(POD_COUNT)]
        await at_once([lambda name=name: client.create(PODS, _pod(name, spec), NAMESPACE) for name in names])
        watched = Watched()
        following = asyncio.create_task(Reflector(client, ListScope(PODS, NAMESPACE), as_dict, watched.take, metadata=dict_metadata).run())
        process = Process(command)
        try:
            await asyncio.wait_for(watched.until(POD_COUNT), 300)
            return Placed(process, watched)
        finally:
            process.end()
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await at_once([lambda name=name: client.delete(PODS, ObjectRef(name, NAMESPACE), grace_s=0) for name in names])


def _pod(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}}}
    whole = {"containers": [container], "schedulerName": "default-scheduler", "automountServiceAccountToken": False, **spec}
    return {"metadata": {"name": name, "labels": LABELS}, "spec": whole}
