"""The real kube-scheduler and `pumice scheduler` by the same profile, one after the other on the same real API server, in one run.

The shapes are some of scheduler_perf's: single pods by the rules of 1.36, and Kubernetes' own gangs by those of 1.37, on servers of these
releases. Both schedulers score all nodes, and neither is slowed by its limit on requests. The pods are created before the scheduler starts;
CPU is measured from its start to the last bind. Needs what `live` needs, and also kube-scheduler.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from bench.live import Process, Watched, add_node, at_once, pumice
from bench.measure import Row
from bench.native_gangs import RACK
from bench.scheduler_perf import HOST, LABELS, SHAPES, ZONE

# isort: split
from binaries import NEXT, program, why_not
from realcluster import RealCluster
from stage import Stage, install_definitions

from pumice.api.kinds import NAMESPACES, NATIVE_POD_GROUPS, PODS, Kind, ObjectRef
from pumice.client.client import Client
from pumice.client.reflector import Reflector, dict_metadata
from pumice.client.transport import ListScope, as_dict

NAMESPACE, NODE_COUNT, POD_COUNT = "peers", 1000, 1000
LIMIT_S = 900  #: for a run that hangs
CHOSEN = (
    "basic",
    "required pod anti-affinity by host",
    "required pod affinity by zone",
    "preferred pod anti-affinity by host",
    "spreading by zone, required",
    "spreading by host, preferred",
)
GATES = "--feature-gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true"
#: PodGroups are deleted at once: no controller is there to let them go
SERVED = (GATES, "--runtime-config=scheduling.k8s.io/v1beta1=true", "--disable-admission-plugins=PodGroupProtection")


class Gangs(NamedTuple):
    count: int
    size: int
    in_racks: bool = False

    def name(self, nodes: int) -> str:
        """As rows have it."""
        where = f"{nodes:,} nodes in racks of {PER_RACK}, " if self.in_racks else f"{nodes:,} nodes, "
        return f"{where}{self.count:,} gangs of {self.size:,}{', each in a rack' if self.in_racks else ''}"


PER_RACK = 100
IN_RACKS = (Gangs(750, 4, in_racks=True), Gangs(3, 1000, in_racks=True))
GANGS = {NODE_COUNT: (Gangs(1000, 3), Gangs(3, 1000), *IN_RACKS), 5 * NODE_COUNT: IN_RACKS}  #: by the number of nodes
Objects = list[tuple[Kind, dict[str, Any]]]


def run() -> Iterator[Row]:
    yield from _single_pods()
    yield from _gangs()


def _single_pods() -> Iterator[Row]:
    reason = why_not(("etcd", "kube-apiserver", "kube-scheduler"))
    if reason:
        print(f"live_peer: {reason}")
        return
    labels = [{HOST: f"n{number}", ZONE: f"zone-{number % 3}"} for number in range(NODE_COUNT)]
    with tempfile.TemporaryDirectory() as folder, RealCluster(Path(folder)) as cluster:
        commands = _commands(cluster, Path(folder), "kube-scheduler")
        asyncio.run(_prepare(cluster, labels))
        for shape in SHAPES:
            if shape.name in CHOSEN:
                assert isinstance(shape.spec, dict)
                pods = [(PODS, _pod(f"p{number}", "500Mi", shape.spec)) for number in range(POD_COUNT)]
                yield _row(f"{shape.name}, {NODE_COUNT:,} nodes, {POD_COUNT:,} pods", cluster, commands, pods)


def _gangs() -> Iterator[Row]:
    names = (f"kube-apiserver-{NEXT}", f"kube-scheduler-{NEXT}")
    reason = why_not(("etcd", *names))
    if reason:
        print(f"live_peer: {reason}")
        return
    for nodes, shapes in GANGS.items():
        labels = [{HOST: f"n{number}", RACK: f"rack-{number // PER_RACK}"} for number in range(nodes)]
        with tempfile.TemporaryDirectory() as folder, RealCluster(Path(folder), release=NEXT, flags=SERVED) as cluster:
            commands = _commands(cluster, Path(folder), names[1], GATES)
            asyncio.run(_prepare(cluster, labels))
            for gangs in shapes:
                yield _row(gangs.name(nodes), cluster, commands, list(_members(gangs)))


def _members(gangs: Gangs) -> Iterator[tuple[Kind, dict[str, Any]]]:
    constraints = {"schedulingConstraints": {"topology": [{"key": RACK}]}} if gangs.in_racks else {}
    for number in range(gangs.count):
        spec = {"schedulingPolicy": {"gang": {"minCount": gangs.size}}, **constraints}
        head = {"apiVersion": NATIVE_POD_GROUPS.api_version, "kind": NATIVE_POD_GROUPS.kind}
        yield NATIVE_POD_GROUPS, {**head, "metadata": {"name": f"g{number}"}, "spec": spec}
        for member in range(gangs.size):
            yield PODS, _pod(f"g{number}-{member}", "100Mi", {"schedulingGroup": {"podGroupName": f"g{number}"}})


def _row(name: str, cluster: RealCluster, commands: tuple[list[str], list[str]], objects: Objects) -> Row:
    theirs, ours = (asyncio.run(_placed(cluster, command, objects)) for command in commands)
    counts = {"binds/s": round(ours.rate), "binds/s of kube-scheduler": round(theirs.rate)}
    return Row(f"live, beside kube-scheduler: {name}", None, theirs.cpu_s, ours.cpu_s, ours.wall_s, counts=counts)


class Placed:
    """What a scheduler needed to place the pods: CPU seconds, seconds by the wall, and binds per second."""

    def __init__(self, process: Process, watched: Watched) -> None:
        self.cpu_s = process.cpu_s
        self.wall_s = watched.last_at - process.started_at
        self.rate = len(watched.placed) / (watched.last_at - watched.first_at)


def _commands(cluster: RealCluster, folder: Path, peer: str, *flags: str) -> tuple[list[str], list[str]]:
    """The commands of kube-scheduler and of Pumice's scheduler, each with its configuration file."""
    profiles: dict[str, Any] = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    connection = {"kubeconfig": str(cluster.kubeconfig()), "qps": 5000, "burst": 5000}
    kube = profiles | {"percentageOfNodesToScore": 100, "clientConnection": connection, "leaderElection": {"leaderElect": False}}
    theirs, ours = folder / "kube-scheduler.yaml", folder / "pumice.yaml"
    theirs.write_text(yaml.safe_dump(kube))
    ours.write_text(yaml.safe_dump(profiles))
    return (
        [str(program(peer)), f"--config={theirs}", "--secure-port=0", *flags],
        pumice(cluster.kubeconfig(), f"--scheduler-conf={ours}", "--scheduler-name=default-scheduler", *flags),
    )


async def _prepare(cluster: RealCluster, labels: list[dict[str, str]]) -> None:
    """Make nodes with these labels, named after their hosts."""
    async with Client(cluster.access()) as client:
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        await install_definitions(client)
        await Stage(client, NAMESPACE).set_up()
        await at_once([lambda node=node: add_node(client, node[HOST], **node) for node in labels])


async def _placed(cluster: RealCluster, command: list[str], objects: Objects) -> Placed:
    """Create the objects, let the scheduler of this command place the pods, and delete all. Return what the scheduler needed."""
    async with Client(cluster.access()) as client:
        await at_once([lambda kind=kind, body=body: client.create(kind, body, NAMESPACE) for kind, body in objects])
        watched = Watched()
        following = asyncio.create_task(Reflector(client, ListScope(PODS, NAMESPACE), as_dict, watched.take, metadata=dict_metadata).run())
        process = Process(command)
        try:
            await asyncio.wait_for(watched.until(sum(kind == PODS for kind, _ in objects)), LIMIT_S)
            return Placed(process, watched)
        finally:
            process.end()
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            names = [(kind, ObjectRef(body["metadata"]["name"], NAMESPACE)) for kind, body in objects]
            await at_once([lambda kind=kind, ref=ref: client.delete(kind, ref, grace_s=0) for kind, ref in names])


def _pod(name: str, memory: str, spec: dict[str, Any]) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "100m", "memory": memory}}}
    whole = {"containers": [container], "schedulerName": "default-scheduler", "automountServiceAccountToken": False, **spec}
    return {"metadata": {"name": name, "labels": LABELS}, "spec": whole}
