"""Pods wait for what could help them, back off, and are never forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.scheduler.framework.cluster_events import (
    ClusterEvent,
    EventKind,
    of_node,
    of_own,
)
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.kube.queueing_hints import HINTS
from pumice.scheduler.kube.scheduling_queue import FORGOTTEN_S, SchedulingQueue
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.resources import WIDTH
from pumice.scheduler.model.shared_templates import Pairs
from pumice.scheduler.model.task import Task
from pumice.testing.builders import PodBuilder, manifest
from tests.kube_scheduler.stage import NOW, cluster, existing, machine, policy, profile, waiting
from tests.nodes_for_pods.test_devices import claim, held

FIT = frozenset(["NodeResourcesFit"])
TERM = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}


def names(tasks: Iterable[Task]) -> list[str]:
    return [task.name for task in tasks]


def started(*objects: object) -> tuple[Cluster, SchedulingQueue]:
    made = cluster(policy(), *objects)  # type: ignore[arg-type]
    queue = SchedulingQueue(made)
    for task in made.without_job.values():
        queue.add(task)
    return made, queue


def refused_once(*objects: object, by: frozenset[str] = FIT) -> tuple[Cluster, SchedulingQueue]:
    """All pending pods were tried at 0 and refused."""
    made, queue = started(*objects)
    for task in queue.take(0.0):
        queue.refused(task, by, 0.0)
    return made, queue


GONE = ClusterEvent(EventKind.POD_GONE)


def test_a_new_pod_is_tried_once_and_then_waits_for_help() -> None:
    _, queue = started(waiting("p"))
    assert names(queue.take(0.0)) == ["p"]
    queue.refused(queue.cluster.tasks["default/p"], FIT, 0.0)
    assert queue.take(100.0) == []
    assert names(queue.happened(GONE)) == ["p"]
    assert names(queue.take(100.0)) == ["p"]


def test_a_pod_that_is_told_of_again_keeps_its_place() -> None:
    made, queue = refused_once(waiting("p"))
    queue.add(made.tasks["default/p"])
    assert queue.take(100.0) == []
    queue.happened(GONE)
    queue.take(100.0)
    queue.add(made.tasks["default/p"])
    assert queue.take(100.0) == []


@pytest.mark.parametrize(("failures", "wait_s"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (16, 10), (1000, 10)])
def test_back_off_doubles_up_to_its_limit(failures: int, wait_s: float) -> None:
    made, queue = started(waiting("p"), waiting("other"))
    task = made.tasks["default/p"]
    for _ in range(failures):
        queue.take(0.0)
        queue.refused(task, FIT, 0.0)
        queue.activate([task])
    queue.take(0.0)
    queue.refused(task, FIT, 50.0)
    queue.forget(made.tasks["default/other"])
    queue.happened(GONE)
    expected = 50.0 + min(wait_s * 2, 10.0)
    assert queue.next_due() == expected


def test_a_pod_that_backs_off_is_taken_early_only_if_nobody_else_is_ready() -> None:
    made, queue = refused_once(waiting("p"))
    queue.happened(GONE)
    made.put(*waiting("q").build())
    queue.add(made.tasks["default/q"])
    assert names(queue.take(0.1)) == ["q"]
    assert names(queue.take(0.1)) == ["p"]


def test_an_error_backs_off_and_is_never_taken_early() -> None:
    made, queue = started(waiting("p"))
    task = queue.take(0.0)[0]
    queue.failed(task, 0.0)
    assert queue.take(0.5) == []
    assert names(queue.take(1.0)) == ["p"]
    queue.failed(made.tasks["default/p"], 1.0)
    assert queue.next_due() == 3.0


def test_nobody_waits_for_ever() -> None:
    _, queue = refused_once(waiting("p"))
    assert queue.next_due() == FORGOTTEN_S
    assert queue.take(FORGOTTEN_S - 1) == []
    assert names(queue.take(FORGOTTEN_S)) == ["p"]


def test_what_happens_during_an_attempt_is_not_missed() -> None:
    _, queue = started(waiting("p"))
    task = queue.take(0.0)[0]
    queue.happened(GONE)
    queue.refused(task, FIT, 0.0)
    assert names(queue.take(1.0)) == ["p"]


def test_a_pod_that_is_gone_is_forgotten_wherever_it_is() -> None:
    made, queue = refused_once(waiting("p"))
    queue.forget(made.tasks["default/p"])
    queue.happened(GONE)
    assert not queue.knows(made.tasks["default/p"])
    assert (queue.take(1e9), queue.next_due()) == ([], None)


TAINT = frozenset(["TaintToleration"])
AFFINITY = frozenset(["NodeAffinity"])
NEAR = frozenset(["InterPodAffinity"])
PORTS = frozenset(["NodePorts"])
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
FAR = waiting("p").having("spec", "affinity", "podAntiAffinity", REQUIRED, value=[TERM])
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
EVEN = waiting("p").having("spec", "topologySpreadConstraints", value=[SPREAD])
BY_KEY = waiting("p").having("spec", "topologySpreadConstraints", value=[SPREAD | {"matchLabelKeys": ["app"]}])
SPREAD_BY = frozenset(["PodTopologySpread"])
PORT = [{"containerPort": 1, "hostPort": 80}]


@pytest.mark.parametrize(
    ("by", "pod", "event", "woken"),
    [
        (FIT, waiting("p", 1), ClusterEvent(EventKind.NODE_ADDED, "big"), True),
        (FIT, waiting("p", 9), ClusterEvent(EventKind.NODE_ADDED, "big"), False),
        (FIT, waiting("p", 1), ClusterEvent(EventKind.NODE_ADDED, "nowhere"), False),
        (FIT, waiting("p", 1), ClusterEvent(EventKind.NODE_ALLOCATABLE, "big", before=np.zeros(WIDTH)), True),
        (FIT, waiting("p", 1), ClusterEvent(EventKind.NODE_ALLOCATABLE, "big", before=np.full(WIDTH, 1e15)), False),
        (FIT, waiting("p", 1), ClusterEvent(EventKind.NODE_LABELS, "big"), False),
        (FIT, waiting("p", 1), ClusterEvent(EventKind.POD_SHRUNK), True),
        (TAINT, waiting("p"), ClusterEvent(EventKind.NODE_TAINTS, "big"), True),
        (TAINT, waiting("p"), ClusterEvent(EventKind.NODE_TAINTS, "tainted"), False),
        (TAINT, waiting("p"), ClusterEvent(EventKind.NODE_TAINTS, "cordoned"), True),  # which is another rule's business
        (TAINT, waiting("p"), ClusterEvent(EventKind.NODE_TAINTS, "nowhere"), False),
        (TAINT, waiting("p"), GONE, False),
        (frozenset(["NodeUnschedulable"]), waiting("p"), ClusterEvent(EventKind.NODE_TAINTS, "cordoned"), False),
        (frozenset(["NodeUnschedulable"]), waiting("p"), ClusterEvent(EventKind.NODE_TAINTS, "big"), True),
        (AFFINITY, waiting("p").selector("kubernetes.io/hostname", "big"), ClusterEvent(EventKind.NODE_LABELS, "big"), True),
        (AFFINITY, waiting("p").selector("kubernetes.io/hostname", "else"), ClusterEvent(EventKind.NODE_LABELS, "big"), False),
        (AFFINITY, waiting("p").selector("kubernetes.io/hostname", "big"), ClusterEvent(EventKind.NODE_LABELS, "nowhere"), False),
        (AFFINITY, waiting("p"), ClusterEvent(EventKind.NODE_LABELS, "big"), True),  # refused by what the profile adds
        (NEAR, FAR, GONE, True),
        (NEAR, FAR, ClusterEvent(EventKind.POD_GONE, pod="x"), True),  # type: ignore[arg-type]
        (NEAR, FAR, ClusterEvent(EventKind.POD_GONE, pod="y"), False),  # type: ignore[arg-type]
        (NEAR, FAR, ClusterEvent(EventKind.NODE_REMOVED, "big"), True),
        (NEAR, FAR, ClusterEvent(EventKind.POD_LABELS), True),
        (NEAR, FAR, ClusterEvent(EventKind.POD_LABELS, pod="x", labels=Pairs({"app": 0}, ("y",))), True),  # type: ignore[arg-type]
        (NEAR, FAR, ClusterEvent(EventKind.POD_LABELS, pod="y", labels=Pairs({"app": 0}, ("x",))), True),  # type: ignore[arg-type]
        (NEAR, FAR, ClusterEvent(EventKind.POD_LABELS, pod="y", labels=Pairs({"app": 0}, ("z",))), False),  # type: ignore[arg-type]
        (NEAR, FAR, ClusterEvent(EventKind.POD_LABELS, pod="z", labels=Pairs({"app": 0}, ("z",))), True),  # type: ignore[arg-type]
        (PORTS, waiting("p").having("spec", "containers", 0, "ports", value=PORT), GONE, True),
        (PORTS, waiting("p").having("spec", "containers", 0, "ports", value=PORT), ClusterEvent(EventKind.POD_GONE, pod="x"), True),  # type: ignore[arg-type]
        (PORTS, waiting("p").having("spec", "containers", 0, "ports", value=PORT), ClusterEvent(EventKind.POD_GONE, pod="y"), False),  # type: ignore[arg-type]
        (frozenset(["PodTopologySpread"]), waiting("p"), ClusterEvent(EventKind.POD_PLACED, pod="x"), True),  # type: ignore[arg-type]
        (frozenset(["VolumeBinding"]), waiting("p"), GONE, True),
        (frozenset(["VolumeRestrictions"]), waiting("p"), GONE, True),
        (frozenset(["VolumeBinding"]), waiting("p"), ClusterEvent(EventKind.POD_GONE, pod="x"), False),  # type: ignore[arg-type]
        (frozenset(["extender/e"]), waiting("p"), ClusterEvent(EventKind.NODE_LABELS, "big"), True),
        (frozenset(["SchedulingGates"]), waiting("p"), GONE, False),
        (TAINT, waiting("p"), ClusterEvent(EventKind.OWN_TOLERATIONS, pod="p"), True),  # type: ignore[arg-type]
        (TAINT, waiting("p"), ClusterEvent(EventKind.OWN_TOLERATIONS, pod="x"), False),  # type: ignore[arg-type]
        (TAINT, waiting("p"), ClusterEvent(EventKind.OWN_LABELS, pod="p"), False),  # type: ignore[arg-type]
        (FIT, waiting("p"), ClusterEvent(EventKind.OWN_TOLERATIONS, pod="p"), False),  # type: ignore[arg-type]
        (FIT, waiting("p"), ClusterEvent(EventKind.OWN_RENEWAL, pod="p"), True),  # type: ignore[arg-type]
        (FIT, waiting("p"), ClusterEvent(EventKind.OWN_UPDATE, pod="p"), False),  # type: ignore[arg-type]
        (frozenset(["extender/e"]), waiting("p"), ClusterEvent(EventKind.OWN_UPDATE, pod="p"), True),  # type: ignore[arg-type]
        (frozenset(["NodeUnschedulable"]), waiting("p"), ClusterEvent(EventKind.OWN_TOLERATIONS, pod="p"), False),  # type: ignore[arg-type]
        (SPREAD_BY, EVEN, ClusterEvent(EventKind.OWN_TOLERATIONS, pod="p"), False),  # type: ignore[arg-type]
        (SPREAD_BY, EVEN, ClusterEvent(EventKind.OWN_LABELS, pod="p", labels=Pairs({"app": 0}, ("y",))), False),  # type: ignore[arg-type]
        (SPREAD_BY, BY_KEY, ClusterEvent(EventKind.OWN_LABELS, pod="p", labels=Pairs({"app": 0}, ("y",))), True),  # type: ignore[arg-type]
        (SPREAD_BY, waiting("p"), ClusterEvent(EventKind.OWN_LABELS, pod="p"), True),  # type: ignore[arg-type]
        (TAINT, waiting("p"), ClusterEvent(EventKind.ANYTHING), True),
        (FIT, waiting("p"), ClusterEvent(EventKind.POD_GONE, pod="p"), False),  # type: ignore[arg-type]
        (frozenset(["PodTopologySpread"]), waiting("p"), ClusterEvent(EventKind.POD_LEAVING, pod="x"), True),  # type: ignore[arg-type]
        (frozenset(["PodTopologySpread"]), waiting("p"), ClusterEvent(EventKind.SELECTORS), True),
        (frozenset(["PodTopologySpread"]), EVEN, ClusterEvent(EventKind.SELECTORS), False),
    ],
)
def test_only_what_could_help_wakes(by: frozenset[str], pod: object, event: ClusterEvent, woken: bool) -> None:
    x = existing("x", "big").label("app", "x").having("spec", "containers", 0, "ports", value=PORT)
    nodes = (machine("big", 4), machine("tainted").taint("t"), machine("cordoned").cordoned())
    z = existing("z", "big").having("spec", "affinity", "podAntiAffinity", REQUIRED, value=[TERM])
    made, queue = refused_once(*nodes, x, existing("y", "big"), z, pod, by=by)
    if isinstance(event.pod, str):
        event = replace(event, pod=made.tasks[f"default/{event.pod}"])
    assert bool(queue.happened(event)) == woken


def test_a_pod_that_shrinks_helps_who_asks_for_the_same() -> None:
    made, queue = refused_once(machine("big"), existing("x", "big"), waiting("p"))
    other = made.tasks["default/x"]
    assert not queue.happened(ClusterEvent(EventKind.POD_SHRUNK, pod=other, before=other.template.request))
    assert queue.happened(ClusterEvent(EventKind.POD_SHRUNK, pod=other, before=other.template.request * 2))


VOLUME_RULES = ("VolumeRestrictions", "VolumeZone", "NodeVolumeLimits", "VolumeBinding")
MOUNTS = [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "e", "ephemeral": {}}]


def volume_claim(name: str, volume: str = "") -> Any:
    return manifest("PersistentVolumeClaim", name, spec={"volumeName": volume} if volume else {}).build()[1]


@pytest.mark.parametrize(
    ("before", "after", "woken"),
    [
        (None, volume_claim("c"), VOLUME_RULES),
        (volume_claim("c"), volume_claim("c", "v"), VOLUME_RULES[1:]),
        (None, volume_claim("p-e"), VOLUME_RULES),
        (None, volume_claim("of-another", "v"), ()),
        (volume_claim("of-another", "v"), volume_claim("of-another", "v"), ()),
        # what was assumed for it, or counted for it, may be free
        (volume_claim("of-another"), volume_claim("of-another", "v"), VOLUME_RULES[2:]),
        (volume_claim("of-another", "v"), None, VOLUME_RULES[2:]),
    ],
)
def test_a_volume_claim_wakes_the_pods_that_use_it_or_its_room(before: Any, after: Any, woken: tuple[str, ...]) -> None:
    pod = waiting("p").having("spec", "volumes", value=MOUNTS)
    for by in VOLUME_RULES:
        _, queue = refused_once(pod, by=frozenset([by]))
        assert bool(queue.happened(ClusterEvent(EventKind.VOLUME_CLAIM, old=before, new=after))) == (by in woken)


def test_a_volume_claim_of_the_same_name_elsewhere_wakes_nobody() -> None:
    _, queue = refused_once(waiting("p").having("spec", "volumes", value=MOUNTS), by=frozenset(VOLUME_RULES))
    elsewhere = manifest("PersistentVolumeClaim", "c", "elsewhere").build()[1]
    assert not queue.happened(ClusterEvent(EventKind.VOLUME_CLAIM, new=elsewhere))


def storage(**published: str) -> Any:
    return manifest("CSIStorageCapacity", "s", storageClassName="late", **published).build()[1]


@pytest.mark.parametrize(
    ("before", "after", "woken"),
    [
        (None, storage(capacity="1Gi"), True),
        (storage(), storage(capacity="1Gi"), True),
        (storage(capacity="1Gi"), storage(capacity="2Gi"), True),
        (storage(capacity="2Gi"), storage(capacity="1Gi"), False),
        (storage(maximumVolumeSize="1Gi", capacity="1Gi"), storage(maximumVolumeSize="1Gi", capacity="2Gi"), False),
        (storage(capacity="1Gi"), storage(), False),
        (storage(capacity="1Gi"), None, False),
    ],
)
def test_storage_that_takes_larger_volumes_wakes(before: Any, after: Any, woken: bool) -> None:
    for by in VOLUME_RULES:
        _, queue = refused_once(waiting("p"), by=frozenset([by]))
        assert bool(queue.happened(ClusterEvent(EventKind.CAPACITY, old=before, new=after))) == (woken and by == "VolumeBinding")


def made(kind: str, **content: Any) -> Any:
    return manifest(kind, "x", **content).build()[1]


def volume_in(zone: str) -> Any:
    return manifest("PersistentVolume", "x").label("topology.kubernetes.io/zone", zone).build()[1]


def class_of(*zones: str, mode: str = "WaitForFirstConsumer") -> Any:
    terms = [{"matchLabelExpressions": [{"key": "zone", "values": list(zones)}]}]
    return made("StorageClass", provisioner="csi", volumeBindingMode=mode, allowedTopologies=terms)


def csi_node(**limits: int | None) -> Any:
    drivers = [{"name": name, "allocatable": {"count": count}} if count is not None else {"name": name} for name, count in limits.items()]
    return made("CSINode", spec={"drivers": drivers})


PUBLISHES, SILENT = (made("CSIDriver", spec={"storageCapacity": yes}) for yes in (True, False))
ATTACHED = made("VolumeAttachment", spec={"nodeName": "n", "attacher": "csi", "source": {}})
SLICE = made("ResourceSlice", spec={"driver": "d", "pool": {"name": "x"}, "devices": []})
DEVICES = made("DeviceClass", spec={})
PLAIN_CLAIM = made("PersistentVolumeClaim")


@pytest.mark.parametrize(
    ("by", "what", "before", "after", "woken"),
    [
        ("VolumeBinding", EventKind.VOLUME, None, volume_in("a"), True),
        ("VolumeBinding", EventKind.VOLUME, volume_in("a"), volume_in("a"), True),
        ("VolumeBinding", EventKind.VOLUME, volume_in("a"), None, False),
        ("VolumeBinding", EventKind.STORAGE_CLASS, None, class_of("a"), True),
        ("VolumeBinding", EventKind.STORAGE_CLASS, class_of("a"), class_of("a", "b"), True),
        ("VolumeBinding", EventKind.STORAGE_CLASS, class_of("a"), class_of("a"), False),
        ("VolumeBinding", EventKind.STORAGE_CLASS, class_of("a"), None, False),
        ("VolumeBinding", EventKind.CSI_DRIVER, PUBLISHES, SILENT, True),
        ("VolumeBinding", EventKind.CSI_DRIVER, PUBLISHES, None, True),
        ("VolumeBinding", EventKind.CSI_DRIVER, PUBLISHES, PUBLISHES, False),
        ("VolumeBinding", EventKind.CSI_DRIVER, SILENT, PUBLISHES, False),
        ("VolumeBinding", EventKind.CSI_DRIVER, None, SILENT, False),
        ("VolumeBinding", EventKind.CSI_NODE, None, csi_node(csi=1), True),
        ("VolumeBinding", EventKind.CSI_NODE, csi_node(csi=1), csi_node(csi=2), False),
        ("VolumeZone", EventKind.VOLUME, None, volume_in("a"), True),
        ("VolumeZone", EventKind.VOLUME, volume_in("a"), volume_in("b"), True),
        ("VolumeZone", EventKind.VOLUME, volume_in("a"), volume_in("a"), False),
        ("VolumeZone", EventKind.VOLUME, volume_in("a"), None, False),
        ("VolumeZone", EventKind.STORAGE_CLASS, None, class_of("a"), True),
        ("VolumeZone", EventKind.STORAGE_CLASS, None, class_of("a", mode="Immediate"), False),
        ("VolumeZone", EventKind.STORAGE_CLASS, class_of("a"), class_of("b"), False),
        ("NodeVolumeLimits", EventKind.CSI_NODE, None, csi_node(csi=1), True),
        ("NodeVolumeLimits", EventKind.CSI_NODE, csi_node(csi=1), csi_node(csi=2), True),
        ("NodeVolumeLimits", EventKind.CSI_NODE, csi_node(csi=1), csi_node(csi=None), True),
        ("NodeVolumeLimits", EventKind.CSI_NODE, csi_node(csi=1), csi_node(csi=1, other=0), True),
        ("NodeVolumeLimits", EventKind.CSI_NODE, csi_node(csi=2, other=1), csi_node(csi=1), False),
        ("NodeVolumeLimits", EventKind.CSI_NODE, csi_node(csi=1), None, False),
        ("NodeVolumeLimits", EventKind.ATTACHMENT, ATTACHED, None, True),
        ("NodeVolumeLimits", EventKind.ATTACHMENT, None, ATTACHED, False),
        ("NodeVolumeLimits", EventKind.VOLUME, None, volume_in("a"), False),
        ("DynamicResources", EventKind.SLICE, None, SLICE, True),
        ("DynamicResources", EventKind.SLICE, SLICE, None, False),
        ("DynamicResources", EventKind.DEVICE_CLASS, DEVICES, DEVICES, True),
        ("DynamicResources", EventKind.DEVICE_CLASS, DEVICES, None, False),
    ],
)
def test_what_storage_and_devices_come_to_wakes_whom_it_may_help(by: str, what: EventKind, before: Any, after: Any, woken: bool) -> None:
    _, queue = refused_once(waiting("p"), by=frozenset([by]))
    assert bool(queue.happened(ClusterEvent(what, old=before, new=after))) == woken


def test_events_have_the_names_that_upstream_gives_them_in_metrics() -> None:
    def name(before: Any, after: Any) -> str:
        return ClusterEvent(EventKind.VOLUME_CLAIM, old=before, new=after).name

    changes = [(None, PLAIN_CLAIM), (PLAIN_CLAIM, PLAIN_CLAIM), (PLAIN_CLAIM, None)]
    assert [name(*change) for change in changes] == [f"PersistentVolumeClaim{what}" for what in ("Add", "Update", "Delete")]
    assert GONE.name == "AssignedPodDelete"


MOUNTED = [
    {"name": "d", "gcePersistentDisk": {"pdName": "disk", "readOnly": True}},
    {"name": "e", "persistentVolumeClaim": {"claimName": "c"}},
]


@pytest.mark.parametrize(
    ("volumes", "namespace", "woken"),
    [
        ([], "default", ()),
        (MOUNTED[:1], "default", ("NodeVolumeLimits",)),  # all may read it
        ([{"name": "d", "gcePersistentDisk": {"pdName": "disk"}}], "default", ("VolumeRestrictions", "NodeVolumeLimits")),
        ([{"name": "d", "gcePersistentDisk": {"pdName": "other"}}], "default", ("NodeVolumeLimits",)),
        ([{"name": "d", "iscsi": {"iqn": "other"}}], "default", ()),
        (MOUNTED[1:], "default", ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding")),
        (MOUNTED[1:], "elsewhere", ("NodeVolumeLimits", "VolumeBinding")),
        ([{"name": "e", "persistentVolumeClaim": {"claimName": "other"}}], "default", ("NodeVolumeLimits", "VolumeBinding")),
    ],
)
def test_a_pod_that_goes_helps_whom_its_volumes_were_in_the_way(volumes: Any, namespace: str, woken: tuple[str, ...]) -> None:
    other = existing("x", "big").having("metadata", "namespace", value=namespace).having("spec", "volumes", value=volumes)
    for by in ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding"):
        made, queue = refused_once(machine("big"), other, waiting("p").having("spec", "volumes", value=MOUNTED), by=frozenset([by]))
        assert bool(queue.happened(ClusterEvent(EventKind.POD_GONE, pod=made.tasks[f"{namespace}/x"]))) == (by in woken)


def serving(name: str, resource: str = "") -> Any:
    return manifest("DeviceClass", name, spec={"extendedResourceName": resource} if resource else {}).build()[1]


@pytest.mark.parametrize(
    ("before", "after", "woken"),
    [
        (None, serving("a", "example.com/gpu"), True),
        (None, serving("a", "example.com/tpu"), False),
        (serving("a"), serving("a", "example.com/gpu"), True),
        (serving("a", "example.com/gpu"), serving("a", "example.com/gpu"), False),
        (None, serving("gpu"), True),
        (serving("gpu"), serving("gpu"), False),
        (None, serving("a"), False),
        (serving("a", "example.com/gpu"), None, False),
    ],
)
def test_a_class_of_devices_helps_who_requests_its_resource(before: Any, after: Any, woken: bool) -> None:
    wanted = {"example.com/gpu": "1", "deviceclass.resource.kubernetes.io/gpu": "1"}
    pod = waiting("p").having("spec", "containers", 0, "resources", value={"requests": wanted, "limits": wanted})
    _, queue = refused_once(pod)
    assert bool(queue.happened(ClusterEvent(EventKind.DEVICE_CLASS, old=before, new=after))) == woken


#: by plugin: the events of which upstream's 1.37.2 registers hints, as far as they concern single pods
UPSTREAM = {
    "NodeUnschedulable": "NODE_ADDED NODE_TAINTS OWN_TOLERATIONS",
    "TaintToleration": "NODE_ADDED NODE_TAINTS OWN_TOLERATIONS",
    "NodeAffinity": "NODE_ADDED NODE_LABELS",
    "NodePorts": "POD_GONE NODE_ADDED",
    "NodeResourcesFit": "POD_GONE POD_SHRUNK OWN_SHRUNK NODE_ADDED NODE_ALLOCATABLE DEVICE_CLASS",
    "VolumeRestrictions": "POD_GONE NODE_ADDED VOLUME_CLAIM",
    "NodeVolumeLimits": "POD_GONE CSI_NODE VOLUME_CLAIM ATTACHMENT",
    "VolumeBinding": "STORAGE_CLASS VOLUME_CLAIM VOLUME NODE_ADDED NODE_LABELS CSI_NODE CSI_DRIVER CAPACITY",
    "VolumeZone": "STORAGE_CLASS NODE_ADDED NODE_LABELS VOLUME_CLAIM VOLUME",
    "PodTopologySpread": "POD_PLACED POD_LABELS POD_GONE OWN_TOLERATIONS OWN_LABELS NODE_ADDED NODE_REMOVED NODE_LABELS NODE_TAINTS",
    "InterPodAffinity": "POD_PLACED POD_LABELS POD_GONE OWN_LABELS NODE_ADDED NODE_LABELS",
    "DynamicResources": "NODE_ADDED NODE_LABELS NODE_ALLOCATABLE DEVICE_CLAIM OWN_CLAIMS DEVICE_CLASS SLICE",
    "NodeDeclaredFeatures": "NODE_ADDED NODE_FEATURES",
    "SchedulingGates": "",
}
#: what wakes here besides: what was assumed is free again, and rules that upstream's informers turn into another event
BESIDES = {
    "VolumeRestrictions": "NODE_REMOVED",
    "NodeVolumeLimits": "NODE_ADDED",
    "VolumeBinding": "POD_GONE NODE_REMOVED",
    "PodTopologySpread": "POD_LEAVING SELECTORS",
    "InterPodAffinity": "NODE_REMOVED NAMESPACE",
    "DynamicResources": "POD_GONE NODE_REMOVED DEVICE_TAINTS",
}


def test_hints_are_those_of_upstream() -> None:
    registered = {by: {what.name for what in hints} for by, hints in HINTS.items()}
    assert {by: what for by, what in registered.items() if what} == {
        by: {*what.split(), *BESIDES.get(by, "").split()} for by, what in UPSTREAM.items() if what
    }


FREE, TAKEN, OTHER_DEVICE = claim("x").build()[1], claim("x", **held("a0")).build()[1], claim("x", **held("a1")).build()[1]


@pytest.mark.parametrize(
    ("before", "after", "waits_for", "there", "woken"),
    [
        (None, FREE, "x", "x", True),  # the claim that the pod waits for was made
        (FREE, TAKEN, "x", "x", True),
        (None, FREE, "c", "c", False),  # of others
        (FREE, TAKEN, "c", "c", False),
        (TAKEN, TAKEN, "c", "c", False),
        (FREE, None, "c", "c", False),
        (TAKEN, FREE, "c", "c", True),  # its devices are free
        (TAKEN, OTHER_DEVICE, "c", "c", True),
        (TAKEN, None, "c", "c", True),
        (TAKEN, FREE, "c", "x", False),  # the pod's own claim is not there yet
        (FREE, None, "x", "c", False),
    ],
)
def test_a_device_claim_wakes_the_pods_that_use_it_or_its_devices(before: Any, after: Any, waits_for: str, there: str, woken: bool) -> None:
    pod = waiting("p").having("spec", "resourceClaims", value=[{"name": "g", "resourceClaimName": waits_for}])
    _, queue = refused_once(pod, claim(there), by=frozenset(["DynamicResources"]))
    assert bool(queue.happened(ClusterEvent(EventKind.DEVICE_CLAIM, old=before, new=after))) == woken


def test_a_node_tells_what_changed_and_its_heartbeat_nothing() -> None:
    made = cluster(policy(), machine("a"))
    before = machine("a").build()[1]

    def told(after: object) -> list[EventKind]:
        return [event.what for event in of_node(made, before, after)]  # type: ignore[arg-type]

    assert told(machine("a").build()[1]) == []
    declaring = machine("a").having("status", "declaredFeatures", value=["F"])
    assert told(declaring.build()[1]) == [EventKind.NODE_FEATURES]
    assert told(machine("a", 8).label("x", "y").taint("t").build()[1]) == [
        EventKind.NODE_ALLOCATABLE,
        EventKind.NODE_LABELS,
        EventKind.NODE_TAINTS,
    ]
    assert [event.what for event in of_node(made, None, before)] == [EventKind.NODE_ADDED]  # type: ignore[arg-type]
    assert [event.what for event in of_node(made, before, None)] == [EventKind.NODE_REMOVED]  # type: ignore[arg-type]
    assert of_node(made, None, None) == []


def test_a_pod_tells_what_changed_in_it() -> None:
    before = cluster(policy(), waiting("p", 2)).tasks["default/p"]

    def told(after: PodBuilder) -> list[EventKind]:
        task = cluster(policy(), after).tasks["default/p"]
        return [event.what for event in of_own(task, before.labels, before.template, before.claims)]

    toleration, claim = [{"operator": "Exists"}], [{"name": "c", "resourceClaimName": "c"}]
    assert told(waiting("p", 2).annotation("x", "y")) == told(waiting("p", 3)) == [EventKind.OWN_UPDATE]
    assert told(waiting("p", 1).label("x", "y")) == [EventKind.OWN_LABELS, EventKind.OWN_SHRUNK]
    assert told(waiting("p", 2).having("spec", "tolerations", value=toleration)) == [EventKind.OWN_TOLERATIONS]
    assert told(waiting("p", 2).selector("x", "y")) == [EventKind.OWN_RENEWAL]
    assert EventKind.OWN_CLAIMS in told(waiting("p", 2).having("spec", "resourceClaims", value=claim))


def test_who_was_refused_for_the_length_of_a_session_only_backs_off() -> None:
    _, queue = refused_once(waiting("p"), by=frozenset(["NodeResourcesFit", "PromisedRoom"]))
    assert queue.next_due() == 1.0
    assert names(queue.take(1.0)) == ["p"]


def test_binds_that_fail_again_and_again_back_off_longer_and_longer() -> None:
    made, queue = started(waiting("p"))
    task, now, waits = made.tasks["default/p"], 0.0, []
    for _ in range(3):
        assert names(queue.take(now)) == ["p"]
        queue.placed(task)
        assert queue.next_due() is None
        queue.failed(task, now)
        due = queue.next_due()
        assert due is not None
        waits.append(due - now)
        now = due
    assert waits == [1.0, 2.0, 4.0]
    queue.take(now)
    queue.placed(task)
    queue.add(task)
    assert names(queue.take(now)) == ["p"], "it waits again, for whatever reason"


def test_one_unrelated_event_asks_for_nobody() -> None:
    _, queue = refused_once(machine("a", 1), *waiting("p", 2).times(200))
    assert queue.happened(ClusterEvent(EventKind.NODE_TAINTS, "a")) == []


def test_a_loop_with_a_queue_tries_who_is_due() -> None:
    chosen = policy()
    made = cluster(chosen, machine("a", 1), waiting("fits"), waiting("big", 8))
    queue = SchedulingQueue(made)
    for task in made.without_job.values():
        queue.add(task)
    assert names(bind.task for bind in cycle(made, chosen, NOW, queue=queue).binds) == ["fits"]
    assert cycle(made, chosen, NOW + 1, queue=queue).waiting == []
    made.put(*machine("b", 9).build())
    queue.happened(ClusterEvent(EventKind.NODE_ADDED, "b"))
    assert names(bind.task for bind in cycle(made, chosen, NOW + 2, queue=queue).binds) == ["big"]
    assert queue.next_due() is None


def test_an_attempt_that_fails_backs_off_in_the_loop() -> None:
    chosen = policy(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nextenders: [{urlPrefix: u, filterVerb: f}]\n"
    )
    made = cluster(chosen, machine("a", 1), waiting("p"))
    queue = SchedulingQueue(made)
    queue.add(made.tasks["default/p"])
    cycle(made, chosen, NOW, queue=queue)
    assert queue.next_due() == NOW + 1


def test_a_pod_that_gets_another_node_than_its_nominated_one_leaves_that_to_who_waits() -> None:
    chosen = policy()
    nominee = waiting("nominee", 2, priority=2).having("status", "nominatedNodeName", value="a")
    made = cluster(chosen, machine("a", 2), existing("low", "a", 1), nominee, waiting("p"))
    queue = SchedulingQueue(made)
    assert cycle(made, chosen, NOW, queue=queue).binds == []
    made.put(*machine("b", 2).build())
    queue.activate([made.tasks["default/nominee"]])
    assert [(bind.task.name, bind.node) for bind in cycle(made, chosen, NOW + 2, queue=queue).binds] == [("nominee", "b")]
    assert [(bind.task.name, bind.node) for bind in cycle(made, chosen, NOW + 4, queue=queue).binds] == [("p", "a")]


def test_a_victim_that_stays_sends_who_waits_for_its_room_to_try_again() -> None:
    _, queue = started(waiting("nominee").having("status", "nominatedNodeName", value="a"), waiting("other"))
    for task in queue.take(0.0):
        queue.refused(task, FIT, 0.0)
    queue.eviction_failed("b")
    assert queue.take(0.0) == []
    queue.eviction_failed("a")
    assert names(queue.take(0.0)) == ["nominee"]


def test_a_pod_that_gets_its_nominated_node_leaves_nothing() -> None:
    chosen = policy()
    nominee = waiting("nominee", 2, priority=2).having("status", "nominatedNodeName", value="a")
    made = cluster(chosen, machine("a", 2), nominee, waiting("p"))
    queue = SchedulingQueue(made)
    queue.add(made.tasks["default/p"])
    queue.take(NOW)
    queue.refused(made.tasks["default/p"], FIT, NOW)
    assert [(bind.task.name, bind.node) for bind in cycle(made, chosen, NOW, queue=queue).binds] == [("nominee", "a")]
    assert names(entry.task for entry in queue.waiting.values()) == ["p"]


def test_a_node_without_what_the_profile_ignores_may_help() -> None:
    chosen = policy(profile("{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [example.com/disk]}}]}"))
    asking = (waiting(name, 2).request(f"example.com/{what}", 1) for name, what in (("p", "disk"), ("q", "gpu")))
    made = cluster(chosen, machine("a", 1), *asking)
    queue = SchedulingQueue(made)
    cycle(made, chosen, NOW, queue=queue)
    made.put(*machine("b", 2).build())
    assert names(queue.happened(ClusterEvent(EventKind.NODE_ADDED, "b"))) == ["p"]


def test_many_pods_take_several_cycles_the_most_important_first() -> None:
    chosen = policy()
    pods = [waiting(f"p{number}", 1, priority=number) for number in range(7)]
    made = cluster(chosen, machine("a", 7), *pods)
    queue = SchedulingQueue(made, at_once=3)
    found = []
    for _ in range(3):
        found.append(sorted(bind.task.name for bind in cycle(made, chosen, NOW, queue=queue).binds))
        assert queue.next_due() == (0.0 if len(found) < 3 else None)
    assert found == [["p4", "p5", "p6"], ["p1", "p2", "p3"], ["p0"]]


def test_of_very_many_pods_a_small_part_is_tried_in_a_cycle() -> None:
    made, _ = started(*waiting("p").times(64))
    ready = list(made.without_job.values())
    assert SchedulingQueue(made, at_once=1).due(ready, 0.0) == ready[:2]
