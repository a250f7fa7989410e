"""Clusters with work that has one right end, whatever the way to it: what faults must not change.

Each says what is there at the start; `outcome` is what counts of its end: how many pods of each job run, the phases of groups, what
queues hold, and what is told of pods that wait.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from pumice.api.annotations import QUEUE_GATE
from pumice.api.kinds import (
    DEVICE_CLASSES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
)
from pumice.api.quantity import quantity
from pumice.client.failures import ApiError
from pumice.scheduler.config.volcano_conf import DEFAULT
from tests.live.memory import MemoryServer
from tests.live.stories import PREEMPTING, server

KUBE = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
GANGS = PREEMPTING.replace("preempt, reclaim", "gangpreempt, gangreclaim")
DRA = DEFAULT.replace("  - name: predicates\n", "  - name: predicates\n    arguments: {predicate.DynamicResourceAllocationEnable: true}\n")
PLAIN: Any = {"scheduler": "default-scheduler"}


class Situation(NamedTuple):
    build: Callable[[], MemoryServer]
    conf: str = DEFAULT
    scheduler: str = "volcano"


def room_for_all() -> MemoryServer:
    api = server("a", "b", "c")
    for name, pods in (("first", 3), ("second", 2), ("third", 1)):
        api.gang(name, pods=pods)
    return api


def one_is_too_large() -> MemoryServer:
    api = server("a", "b")
    api.gang("fits", pods=3)
    api.gang("large", pods=6)
    api.gang("wide", pods=1, cpu=3)
    return api


def existing(
    api: MemoryServer, name: str, pods: int, nodes: str, *, cpu: float = 1, minimum: int = 1, priority: int = 0, **spec: Any
) -> None:
    """An elastic gang that runs."""
    api.put(POD_GROUPS, name, spec={"minMember": minimum, "queue": "default", **spec}, status={"phase": "Running"})
    for number in range(pods):
        api.pod(f"{name}-{number}", cpu, group=name, node=nodes[number % len(nodes)], priority=priority)


def waiting(api: MemoryServer, name: str, pods: int, *, cpu: float = 1, minimum: int | None = None, priority: int = 0, **spec: Any) -> None:
    api.put(POD_GROUPS, name, spec={"minMember": minimum or pods, "queue": "default", **spec})
    for number in range(pods):
        api.pod(f"{name}-{number}", cpu, group=name, priority=priority)


def important(minimum: int) -> MemoryServer:
    """Two full nodes, and a more important gang that needs half of them."""
    api = server("a", "b")
    for name, value in (("low", 1), ("high", 10)):
        api.put(PRIORITY_CLASSES, name, value=value)
    existing(api, "low", 4, "ab", minimum=minimum, priority=1, priorityClassName="low")
    waiting(api, "high", 2, priority=10, priorityClassName="high")
    return api


def one_queue_has_it_all(minimum: int) -> MemoryServer:
    """A queue that took the whole cluster, and another that deserves half of it."""
    api = server("a", "b", cpu=3)
    api.queue("greedy")
    api.queue("poor")
    existing(api, "greedy", 6, "ab", minimum=minimum, queue="greedy")
    waiting(api, "poor", 3, queue="poor")
    return api


def important_and_poor() -> MemoryServer:
    """Both at once: a more important gang in the queue that has too much, and a gang of the queue that has too little."""
    api = server("a", "b", "c", cpu=2)
    for name, value in (("low", 1), ("high", 10)):
        api.put(PRIORITY_CLASSES, name, value=value)
    api.queue("greedy")
    api.queue("poor")
    existing(api, "low", 6, "abc", priority=1, queue="greedy", priorityClassName="low")
    waiting(api, "high", 2, priority=10, queue="greedy", priorityClassName="high")
    waiting(api, "poor", 3, queue="poor", priorityClassName="low")
    return api


def large_pods_of_importance() -> MemoryServer:
    """Each of the two needs two victims on one node."""
    api = server("a", "b", "c", cpu=2)
    for name, value in (("low", 1), ("high", 10)):
        api.put(PRIORITY_CLASSES, name, value=value)
    existing(api, "low", 6, "abc", priority=1, priorityClassName="low")
    waiting(api, "high", 2, cpu=2, priority=10, priorityClassName="high")
    return api


def important_in_vain() -> MemoryServer:
    """Two may go, and three would have to."""
    api = important(2)
    api.put(POD_GROUPS, "high", spec={"minMember": 3, "queue": "default", "priorityClassName": "high"})
    api.pod("high-2", group="high", priority=10)
    return api


def plain_pods_of_importance() -> MemoryServer:
    """kube-scheduler's: two are evicted for each of two, and one waits for a node that is not there."""
    api = server("a", "b", "c")
    for number in range(6):
        api.pod(f"low-{number}", node="abc"[number % 3], priority=1, **PLAIN)
    for number in range(2):
        api.pod(f"high-{number}", 2, priority=10, **PLAIN)
    api.pod("late-0", 1, priority=1, nodeSelector={"disk": "ssd"}, **PLAIN)
    return api


def with_volumes() -> MemoryServer:
    """Two pods with a claim each, one for a volume that is there and one for a volume that is made."""
    api = server("a", "b", cpu=1)
    api.put(STORAGE_CLASSES, "there", provisioner="kubernetes.io/no-provisioner", volumeBindingMode="WaitForFirstConsumer")
    api.put(STORAGE_CLASSES, "made", provisioner="x", volumeBindingMode="WaitForFirstConsumer")
    for name in ("there", "made"):
        asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        api.put(VOLUME_CLAIMS, name, spec={"storageClassName": name, **asked}, status={"phase": "Pending"})
    room = {"storageClassName": "there", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    api.put(VOLUMES, "disk", spec=room, status={"phase": "Available"})
    api.put(POD_GROUPS, "work", spec={"minMember": 2, "queue": "default"})
    for number, name in enumerate(("there", "made")):
        api.pod(f"work-{number}", group="work", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}])
    return api


def with_devices() -> MemoryServer:
    """One device on each of two nodes, a claim for one in each of two pods."""
    api = server("a", "b")
    api.put(DEVICE_CLASSES, "gpu", spec={})
    for name in "ab":
        pool = {"name": name, "resourceSliceCount": 1}
        api.put(RESOURCE_SLICES, name, spec={"driver": "d", "nodeName": name, "pool": pool, "devices": [{"name": "gpu"}]})
    api.put(POD_GROUPS, "work", spec={"minMember": 2, "queue": "default"})
    for number in range(2):
        asked = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
        api.put(RESOURCE_CLAIMS, f"gpu-{number}", spec={"devices": {"requests": asked}}, status={})
        api.pod(f"work-{number}", group="work", resourceClaims=[{"name": "g", "resourceClaimName": f"gpu-{number}"}])
    return api


def with_gates() -> MemoryServer:
    """A gang that the queue's room is to let in, and one that it has none for."""
    api = server("a", "b")
    for name, pods in (("fits", 3), ("large", 6)):
        api.gang(name, pods=pods)
    for pod in api.all(PODS):
        annotations = {**pod["metadata"]["annotations"], QUEUE_GATE: "true"}
        gated = {**pod["spec"], "schedulingGates": [{"name": QUEUE_GATE}]}
        api.put(PODS, pod["metadata"]["name"], metadata={"annotations": annotations}, spec=gated, status=pod["status"])
    return api


SITUATIONS = {
    "room for all": Situation(room_for_all),
    "one is too large": Situation(one_is_too_large),
    "preempt": Situation(partial(important, 1), PREEMPTING),
    "preempt two for one": Situation(large_pods_of_importance, PREEMPTING),
    "preempt in vain": Situation(important_in_vain, PREEMPTING),
    "gangpreempt": Situation(partial(important, 2), GANGS),  # all that may go of a gang goes
    "reclaim": Situation(partial(one_queue_has_it_all, 1), PREEMPTING),
    "gangreclaim": Situation(partial(one_queue_has_it_all, 3), GANGS),
    "preempt and reclaim": Situation(important_and_poor, PREEMPTING),
    "plain pods": Situation(plain_pods_of_importance, KUBE, "default-scheduler"),
    "volumes": Situation(with_volumes),
    "devices": Situation(with_devices, DRA),
    "gates": Situation(with_gates),
}


async def volume_controller(api: MemoryServer) -> None:
    """Makes volumes that are asked for on a node, and binds claims to volumes that name them."""
    while True:
        await asyncio.sleep(0.5)
        for claim in api.all(VOLUME_CLAIMS):
            name, chosen = claim["metadata"]["name"], claim["metadata"].get("annotations") or {}
            ours = {"namespace": "default", "name": name, "uid": claim["metadata"]["uid"]}
            volumes = {pv["metadata"]["name"]: pv for pv in api.all(VOLUMES) if (pv["spec"].get("claimRef") or {}).get("name") == name}
            if not volumes and "volume.kubernetes.io/selected-node" in chosen:
                room = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "claimRef": ours}
                volumes = {f"for-{name}": api.put(VOLUMES, f"for-{name}", spec=room, status={"phase": "Bound"})}
            if volumes and not claim["spec"].get("volumeName"):
                done = {**chosen, "pv.kubernetes.io/bind-completed": "yes"}
                bound = {**claim["spec"], "volumeName": next(iter(volumes))}
                api.put(VOLUME_CLAIMS, name, metadata={"annotations": done}, spec=bound, status={"phase": "Bound"})


VICTIMS = {"low", "greedy"}


class Outcome(NamedTuple):
    running: dict[str, int]  #: by job
    phases: dict[str, tuple[str, int]]  #: of groups, and how many of their pods they say run
    allocated: dict[str, int]  #: cpu of queues, in milli-units
    keep_raw: dict[str, tuple[str, str]]  #: of each pod without a gate: whether it is said to be placed, and why not


def outcome(api: MemoryServer) -> Outcome:
    running: Counter[str] = Counter()
    keep_raw = {}
    for pod in api.all(PODS):
        name, status = pod["metadata"]["name"], pod.get("status") or {}
        running[name.rpartition("-")[0]] += status.get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        placed = [each for each in status.get("conditions") or () if each["type"] == "PodScheduled"]
        if (placed or not pod["spec"].get("nodeName")) and not pod["spec"].get("schedulingGates"):
            keep_raw[name] = (placed[0]["status"], placed[0].get("message", "")) if placed else ("", "")
    groups = {group["metadata"]["name"]: group.get("status") or {} for group in api.all(POD_GROUPS)}
    phases = {name: (status.get("phase", ""), status.get("running", 0)) for name, status in groups.items()}
    held = {each["metadata"]["name"]: (each["status"].get("allocated") or {}).get("cpu", "0") for each in api.all(QUEUES)}
    return Outcome(dict(running), phases, {name: quantity(cpu).milli for name, cpu in held.items()}, keep_raw)


def with_fewer_victims_left(found: Outcome, expected: Outcome) -> bool:
    """The same but that more was evicted: who decides anew, after some victims of a decision went and others did not, may choose others."""
    fewer = {job for job, pods in found.running.items() if pods < expected.running[job]}
    if not fewer <= VICTIMS or any(found.phases.get(job, ("Running", 0))[0] != "Running" for job in fewer):
        return False
    lost = {job: expected.running[job] - found.running[job] for job in fewer}
    said = {job: (phase, count + lost.get(job, 0)) for job, (phase, count) in found.phases.items()}
    return found._replace(running=expected.running, phases=said, allocated=expected.allocated, keep_raw=expected.keep_raw) == expected


def runs(api: MemoryServer, beneficiary: str) -> bool:
    """Whether a pod, or the gang of a PodGroup, stands."""
    namespace, _, name = beneficiary.partition("/")
    with suppress(KeyError, ApiError):
        if ("podgroups", namespace, name) in api.objects:
            return len(api.placed(f"{name}-")) >= api.found(POD_GROUPS, name, namespace)["spec"]["minMember"]
        return name in api.placed(name)
    return False
