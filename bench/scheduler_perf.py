"""scheduler_perf's shapes: upstream's own workloads for kube-scheduler, each pod looked at by itself and all nodes scored.

Figures are pods per second of CPU time, in process. The budget is the rate that upstream demands of kube-scheduler, which samples nodes and
has an API server in front of it. Each shape is measured with equal pods, then with pods whose requests all differ. `naive`: every node is
evaluated anew for every pod, measured with a few of the equal pods.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from bench.kube_scheduler import NOW, policy
from bench.measure import Row, rate
from bench.naive import scanning
from pumice.api.annotations import BIND_COMPLETED
from pumice.api.structs import STRUCTS, convert
from pumice.scheduler.actions.schedule import ScheduleLoop
from pumice.scheduler.config import schedulers_of
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model.cluster import Cluster

Object = dict[str, Any]
STRUCT = {kind.kind: struct for kind, struct in STRUCTS.items()}
SAMPLE = 40  #: number of pods with which the naive loop is measured
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
LABELS = {"color": "blue"}
BLUE = {"matchLabels": LABELS}


def affinity(kind: str, key: str, *, required: bool, everywhere: bool = False) -> Object:
    """A pod spec with one (anti-)affinity term that selects blue pods; with `everywhere`, in all namespaces labelled team=devops."""
    term = {"labelSelector": BLUE, "topologyKey": key} | ({"namespaceSelector": {"matchLabels": {"team": "devops"}}} if everywhere else {})
    if required:
        return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}}}


def node_affinity(key: str, *values: str) -> Object:
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}]
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}


def spread(key: str, when: str) -> Object:
    return {"topologySpreadConstraints": [{"maxSkew": 5, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": BLUE}]}


class Shape(NamedTuple):
    """One workload. `spec` is what the measured pods have besides their requests, or a function that gives this by the pod's number.
    Pods placed before the measurement have `before` instead."""

    name: str
    demanded: float | None  #: pods per second that upstream demands
    count: int
    spec: Object | Callable[[int], Object] = {}
    init: int = 1000
    before: Object | None = None  #: None: the same as `spec`
    nodes: int = 5000
    namespaces: int = 1  #: number of namespaces over which the pods placed before are spread
    hopeless: int = 0  #: number of pods that fit nowhere, in front of the others
    others: Callable[[int], list[tuple[str, Object]]] = lambda number: []  #: the objects that come with the pod of this number
    batch: int = 0  #: number of pods that come at a time, with a new node and a pod that fits nowhere; 0: all at once


def volume(number: int) -> list[tuple[str, Object]]:
    """The volume and the claim of the pod of this number, bound to each other."""
    name = f"v-{number}"
    claim = {"namespace": "default", "name": name}
    modes: Object = {"accessModes": ["ReadWriteOnce"]}
    csi = {"driver": "csi.example.com", "volumeHandle": name}
    kept = {**modes, "capacity": {"storage": "1Gi"}, "csi": csi, "claimRef": claim}
    bound = {**claim, "annotations": {BIND_COMPLETED: "yes"}}
    return [
        ("PersistentVolume", {"metadata": {"name": name}, "spec": kept}),
        ("PersistentVolumeClaim", {"metadata": bound, "spec": {**modes, "volumeName": name}, "status": {"phase": "Bound"}}),
    ]


def with_volume(number: int) -> Object:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": f"v-{number}"}}]}


def device_claim(number: int) -> list[tuple[str, Object]]:
    ask = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}
    return [
        ("ResourceClaim", {"metadata": {"namespace": "default", "name": f"d-{number}", "uid": f"d-{number}"}, "spec": {"devices": ask}})
    ]


def with_device(number: int) -> Object:
    return {"resourceClaims": [{"name": "gpu", "resourceClaimName": f"d-{number}"}]}


def devices(nodes: int) -> Iterator[tuple[str, Object]]:
    """A device class, and a ResourceSlice with four devices for each of the nodes."""
    yield "DeviceClass", {"metadata": {"name": "gpu"}, "spec": {}}
    for number in range(nodes):
        node, four = f"node-{number:05d}", [{"name": f"gpu-{index}"} for index in range(4)]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        yield (
            "ResourceSlice",
            {"metadata": {"name": node}, "spec": {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": four}},
        )


def daemon(number: int) -> Object:
    """The spec of a pod that is pinned to one node by name, as the DaemonSet controller pins it."""
    fields = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"node-{number:05d}"]}]}]
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": fields}}}}


SHAPES = (
    Shape("basic", 270, 10_000),
    Shape("required pod anti-affinity by host", 60, 2000, affinity("podAntiAffinity", HOST, required=True)),
    Shape("plain pods that match others' anti-affinity", 600, 5000, {}, before=affinity("podAntiAffinity", HOST, required=True)),
    Shape("required pod affinity by zone", 35, 5000, affinity("podAffinity", ZONE, required=True), 5000),
    Shape("preferred pod affinity by host", 90, 5000, affinity("podAffinity", HOST, required=False), 5000),
    Shape("preferred pod anti-affinity by host", 90, 5000, affinity("podAntiAffinity", HOST, required=False), 5000),
    Shape("node affinity", 220, 10_000, node_affinity(ZONE, "zone-0", "zone-1"), 5000),
    Shape("plain pods among pods with all kinds of terms", 140, 5000, {}, 2000, affinity("podAffinity", ZONE, required=False)),
    Shape(
        *("required anti-affinity, namespaces by label", 24, 2000, affinity("podAntiAffinity", HOST, required=True, everywhere=True)),
        *(4000, None, 6000, 40),
    ),
    Shape(
        *("preferred anti-affinity, namespaces by label", 55, 2000, affinity("podAntiAffinity", HOST, required=False, everywhere=True)),
        *(4000, None, 5000, 40),
    ),
    Shape(
        *("required affinity, namespaces by label", 35, 2000, affinity("podAffinity", ZONE, required=True, everywhere=True)),
        *(5000, None, 5000, 50),
    ),
    Shape(
        *("preferred affinity, namespaces by label", 90, 5000, affinity("podAffinity", HOST, required=False, everywhere=True)),
        *(5000, None, 5000, 50),
    ),
    Shape("daemon set on 15,000 nodes", 390, 15_000, daemon, 0, nodes=15_000),
    Shape("100 unschedulable pods in front", 140, 10_000, {}, 0, hopeless=100),
    Shape("mixed churn: a node and a pod that fits nowhere come with every 500", 265, 10_000, {}, 0, batch=500),
    Shape("spreading by zone, required", 85, 5000, spread(ZONE, "DoNotSchedule"), 5000, {}),
    Shape("spreading by zone, preferred", 125, 5000, spread(ZONE, "ScheduleAnyway"), 5000, {}),
    Shape("spreading by host, required", None, 5000, spread(HOST, "DoNotSchedule"), 5000, {}),
    Shape("spreading by host, preferred", None, 5000, spread(HOST, "ScheduleAnyway"), 5000, {}),
    Shape("volumes bound beforehand (CSI)", 48, 5000, with_volume, 5000, {}, others=volume),
    Shape("device claims (DRA)", None, 500, with_device, 0, nodes=500, others=device_claim),
)


def pod(name: str, spec: Object, namespace: str = "default", *, extra_ki: int = 0, cpu: str = "100m", node: str = "") -> tuple[str, Object]:
    asked = {"cpu": cpu, "memory": f"{500 * 1024 + extra_ki}Ki"}
    whole = {"containers": [{"name": "main", "resources": {"requests": asked}}], "schedulerName": "default-scheduler", **spec}
    placed = {"nodeName": node} if node else {}
    return "Pod", {"metadata": {"namespace": namespace, "name": name, "uid": name, "labels": LABELS}, "spec": {**whole, **placed}}


def machine(number: int) -> tuple[str, Object]:
    labels = {HOST: f"node-{number:05d}", ZONE: f"zone-{number % 3}"}
    return "Node", {
        "metadata": {"name": f"node-{number:05d}", "labels": labels},
        "status": {"allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110"}},
    }


def there(shape: Shape) -> Iterator[tuple[str, Object]]:
    """The objects that exist before the measurement: nodes, namespaces, devices and placed pods."""
    yield from map(machine, range(shape.nodes))
    spaces = [f"space-{number}" for number in range(shape.namespaces)] if shape.namespaces > 1 else ["default"]
    yield from (("Namespace", {"metadata": {"name": name, "labels": {"team": "devops"}}}) for name in {*spaces, "default"})
    if shape.spec is with_device:
        yield from devices(shape.count // 4)
    for number in range(shape.init):
        before = shape.before if shape.before is not None else shape.spec
        assert isinstance(before, dict), "pods that differ by number have others before them"
        yield pod(f"before-{number}", before, spaces[number % len(spaces)], node=f"node-{number % shape.nodes:05d}")


def coming(shape: Shape, count: int, different: bool) -> Iterator[list[tuple[str, Object]]]:
    """The measured pods and the objects that come with them, in batches."""
    batch = shape.batch or count
    for first in range(0, count, batch):
        come = [pod(f"hopeless-{number}", {"priority": 10}, cpu="1000", extra_ki=number * different) for number in range(shape.hopeless)]
        if shape.batch:
            come += [machine(shape.nodes + first), pod(f"hopeless-{first}", {"priority": 10}, cpu="1000")]
        for number in range(first, min(first + batch, count)):
            spec = shape.spec(number) if callable(shape.spec) else shape.spec
            come += [*shape.others(number), pod(f"pod-{number}", spec, extra_ki=number * different)]
        yield come


def seconds_a_pod(shape: Shape, count: int, different: bool = False, unclocked: int = 0) -> float:
    """CPU seconds per pod of the sessions that place `count` pods. The first `unclocked` pods are not counted. Raises RuntimeError if not
    all pods were placed."""
    chosen = policy()
    assert chosen.profiles is not None
    made, spent, bound = Cluster(schedulers_of(chosen)), 0.0, 0
    taken = chain([list(there(shape))], coming(shape, count, different))
    for objects in taken:
        for kind, value in objects:
            made.put(kind, convert(value, STRUCT[kind]))
        gc.collect()
        gc.freeze()
        started = time.process_time()
        with Session(made, chosen, NOW) as session:
            loop = ScheduleLoop(session, chosen.profiles)
            for number, task in enumerate(loop.queue()):
                if number == unclocked:
                    started = time.process_time()
                loop.attempt_pod(task, planned=False)
            bound += len(session.decisions.binds)
        spent += time.process_time() - started
        gc.unfreeze()
    if bound != count:
        raise RuntimeError(f"{shape.name}: {bound} of {count} pods were placed")
    return spent / (count - unclocked)


def run() -> Iterator[Row]:
    for shape in SHAPES:
        size = f"scheduler_perf: {shape.name}, {shape.nodes:,} nodes, {shape.init:,} and {shape.count:,} pods"
        equal = seconds_a_pod(shape, shape.count)
        with scanning():
            naive = seconds_a_pod(shape._replace(hopeless=0), SAMPLE, unclocked=1)
        yield rate(size, 1 / equal, shape.demanded)._replace(naive=naive / equal)
        yield rate(f"{size}, all different", 1 / seconds_a_pod(shape, shape.count, different=True), shape.demanded)
