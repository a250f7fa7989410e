"""For rules about volumes and devices: a story for each happening that may help."""

from __future__ import annotations

from pumice.api.kinds import CSI_DRIVERS, DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES, STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES, Kind
from pumice.scheduler.framework.cluster_events import EventKind
from tests.live.crowds import (
    ZONE,
    Spec,
    attached,
    capacity,
    claim,
    claiming,
    detached,
    device_claim,
    devices,
    gone,
    labelled,
    limit,
    no_claim,
    node,
    storage_class,
    volume,
    without,
)
from tests.live.memory import MemoryServer
from tests.live.situations import KUBE
from tests.live.wakes import Act, Story, act, stands, waits

A, B = act(node, "a", 4), act(node, "b", 4)
B_IN_Y = act(node, "b", 4, zone="y")
A_TO_Y = act(labelled, "a", ZONE, "y")
DISK = {"volumes": [{"name": "d", "gcePersistentDisk": {"pdName": "disk"}}]}
MINE, THEIRS = claiming("c0"), claiming("c1")


def whole(name: str, zone: str = "x", where: str = "", mode: str = "ReadWriteOnce") -> tuple[Act, Act]:
    """A volume and its claim, bound."""
    return act(volume, name, zone, where, ""), act(claim, name, "", mode, True)


def late(name: str) -> Act:
    return act(claim, name, "late", "ReadWriteOnce", False)


def bound_to(api: MemoryServer, volume_of: str) -> None:
    """The claim c0, which gets this volume."""
    done = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    spec = {"storageClassName": "", "accessModes": ["ReadWriteOnce"], "volumeName": f"v-{volume_of}"}
    api.put(VOLUME_CLAIMS, "c0", metadata=done, spec=spec, status={"phase": "Bound"})


#: storage for smaller volumes than the claim's
PUBLISHED = (act(storage_class, "x", "csi.test"), act(capacity, "x", "100Mi"), late("c0"))
EXCLUSIVE = whole("c0", mode="ReadWriteOncePod")
ATTACHED = (*whole("c0"), *whole("c1"), act(limit, "a", 1), act(attached, "c1", "a"))
LIMITED = (*whole("c0"), *whole("c1"), act(limit, "a", 1), stands(1, "a", spec=THEIRS), waits(MINE))

IN_Y_ONLY = act(storage_class, "y", "csi.test")
ZONES_ALONE = KUBE + "profiles: [{plugins: {multiPoint: {disabled: [{name: VolumeBinding}]}}}]\n"
WITHOUT_ZONES = KUBE + "profiles: [{plugins: {multiPoint: {disabled: [{name: VolumeZone}]}}}]\n"


def annotated(api: MemoryServer, kind: Kind, name: str) -> None:
    """Something about it that no rule reads."""
    found = api.found(kind, name)
    api.put(
        kind, name, **{**found, "metadata": {**found["metadata"], "annotations": {**found["metadata"].get("annotations", {}), "note": "x"}}}
    )


def at_once_class(api: MemoryServer, name: str) -> None:
    api.put(STORAGE_CLASSES, name, provisioner="csi.test", volumeBindingMode="Immediate")


def no_volume(api: MemoryServer, name: str) -> None:
    api.remove(VOLUMES, f"v-{name}")


def driver(api: MemoryServer, *, publishes: bool) -> None:
    api.put(CSI_DRIVERS, "csi.test", spec={"storageCapacity": publishes})


# ---- devices

MY_DEVICE = {"resourceClaims": [{"name": "g", "resourceClaimName": "c0"}]}
ONE = {"example.com/gpu": "1"}
MY_RESOURCE = {"containers": [{"name": "c", "image": "x", "resources": {"requests": ONE, "limits": ONE}}]}
ASKED = (act(device_claim, "c0", 1), act(device_claim, "c1", 1))


def device_class(api: MemoryServer) -> None:
    api.put(DEVICE_CLASSES, "gpu", spec={})


def serving_class(api: MemoryServer) -> None:
    api.put(DEVICE_CLASSES, "gpu", spec={"extendedResourceName": "example.com/gpu"})


def no_class(api: MemoryServer) -> None:
    api.remove(DEVICE_CLASSES, "gpu")


def other_class(api: MemoryServer) -> None:
    api.put(DEVICE_CLASSES, "other", spec={})


def no_other_class(api: MemoryServer) -> None:
    api.remove(DEVICE_CLASSES, "other")


def no_slice(api: MemoryServer, name: str) -> None:
    api.remove(RESOURCE_SLICES, name)


def in_reach(api: MemoryServer, where: Spec) -> None:
    """A device, not of one node."""
    pool = {"name": "net", "resourceSliceCount": 1}
    api.put(RESOURCE_SLICES, "net", spec={"driver": "d", "pool": pool, "devices": [{"name": "gpu"}], **where})


IN_Y = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["y"]}]}]}}


STORIES = [
    Story("VolumeRestrictions", EventKind.POD_GONE, (A, *EXCLUSIVE, stands(1, "a", spec=MINE), waits(MINE)), act(gone, 0)),
    Story("VolumeRestrictions", EventKind.VOLUME_CLAIM, (A, EXCLUSIVE[0], waits(MINE)), EXCLUSIVE[1]),
    Story("VolumeRestrictions", EventKind.NODE_ADDED, (A, stands(1, "a", spec=DISK), waits(DISK)), B),
    Story("NodeVolumeLimits", EventKind.POD_GONE, (A, *LIMITED), act(gone, 0)),
    Story("NodeVolumeLimits", EventKind.CSI_NODE, (A, *LIMITED), act(limit, "a", 2)),
    Story("NodeVolumeLimits", EventKind.ATTACHMENT, (A, *ATTACHED, waits(MINE)), act(detached, "c1", "a")),
    Story("NodeVolumeLimits", EventKind.ATTACHMENT, (A, *LIMITED), act(attached, "c0", "a"), how="its-own"),
    Story("NodeVolumeLimits", EventKind.NODE_ADDED, (A, *LIMITED), B),
    Story("NodeVolumeLimits", EventKind.VOLUME_CLAIM, (A, *LIMITED), act(no_claim, "c1")),
    Story("VolumeBinding", EventKind.NODE_LABELS, (A, *whole("c0", "y", "affinity"), waits(MINE)), A_TO_Y),
    Story("VolumeBinding", EventKind.NODE_ADDED, (A, *whole("c0", "y", "affinity"), waits(MINE)), B_IN_Y),
    Story("VolumeBinding", EventKind.VOLUME, (A, EXCLUSIVE[1], waits(MINE)), EXCLUSIVE[0], WITHOUT_ZONES),
    Story("VolumeBinding", EventKind.STORAGE_CLASS, (A, late("c0"), waits(MINE)), act(storage_class, "x", "csi.test")),
    Story(
        "VolumeBinding",
        EventKind.STORAGE_CLASS,
        (A, IN_Y_ONLY, late("c0"), waits(MINE)),
        act(storage_class, "x", "csi.test"),
        how="topologies",
    ),
    Story("VolumeBinding", EventKind.CSI_DRIVER, (A, *PUBLISHED, waits(MINE)), act(driver, publishes=False)),
    Story("VolumeBinding", EventKind.VOLUME_CLAIM, (A, EXCLUSIVE[0], late("c0"), waits(MINE)), act(bound_to, "c0")),
    Story("VolumeBinding", EventKind.CAPACITY, (A, *PUBLISHED, waits(MINE)), act(capacity, "x", "9Gi")),
    Story(
        "VolumeZone",
        EventKind.VOLUME_CLAIM,
        (A, *whole("c0", "y", "labels"), act(volume, "c1", "x", "labels", ""), waits(MINE)),
        act(bound_to, "c1"),
    ),
    Story("VolumeZone", EventKind.NODE_LABELS, (A, *whole("c0", "y", "labels"), waits(MINE)), A_TO_Y),
    Story("VolumeZone", EventKind.NODE_ADDED, (A, *whole("c0", "y", "labels"), waits(MINE)), B_IN_Y),
    Story("VolumeZone", EventKind.VOLUME, (A, *whole("c0", "y", "labels"), waits(MINE)), act(volume, "c0", "x", "labels", "")),
    Story("VolumeZone", EventKind.STORAGE_CLASS, (A, late("c0"), waits(MINE)), act(storage_class, "x", "csi.test"), ZONES_ALONE),
    Story("DynamicResources", EventKind.DEVICE_CLAIM, (A, act(devices, "a", 1), waits(MY_DEVICE)), ASKED[0]),
    Story("DynamicResources", EventKind.SLICE, (A, device_class, *ASKED, waits(MY_DEVICE)), act(devices, "a", 1)),
    Story("DynamicResources", EventKind.DEVICE_CLASS, (A, act(devices, "a", 1), no_class, *ASKED, waits(MY_DEVICE)), device_class),
    Story("DynamicResources", EventKind.NODE_LABELS, (A, device_class, *ASKED, act(in_reach, IN_Y), waits(MY_DEVICE)), A_TO_Y),
    Story("DynamicResources", EventKind.NODE_ADDED, (A, act(devices, "b", 1), *ASKED, waits(MY_DEVICE)), B),
    Story("NodeResourcesFit", EventKind.DEVICE_CLASS, (A, act(devices, "a", 1), waits(MY_RESOURCE)), serving_class),
    # what a pod had on a node that is no more is free again
    Story("VolumeRestrictions", EventKind.NODE_REMOVED, (A, B, *EXCLUSIVE, stands(1, "b", spec=MINE), waits(MINE)), act(without, "b")),
]

IN_VAIN = [
    Story("VolumeBinding", EventKind.CAPACITY, (A, *PUBLISHED, waits(MINE)), act(capacity, "x", "10Mi"), how="less-storage"),
    Story(
        "VolumeBinding",
        EventKind.STORAGE_CLASS,
        (A, IN_Y_ONLY, late("c0"), waits(MINE)),
        act(annotated, STORAGE_CLASSES, "late"),
        how="a-note-on-a-class",
    ),
    Story(
        "VolumeBinding",
        EventKind.CSI_DRIVER,
        (A, *PUBLISHED, waits(MINE)),
        act(annotated, CSI_DRIVERS, "csi.test"),
        how="a-note-on-a-driver",
    ),
    Story(
        "VolumeBinding",
        EventKind.VOLUME,
        (A, *whole("c0", "y", "affinity"), act(volume, "c1", "x", "", ""), waits(MINE)),
        act(no_volume, "c1"),
        how="a-volume-that-goes",
    ),
    Story(
        "VolumeBinding",
        EventKind.CSI_NODE,
        (A, act(limit, "a", 8), *PUBLISHED, waits(MINE)),
        act(limit, "a", 9),
        how="a-limit-that-is-not-read",
    ),
    Story(
        "VolumeZone",
        EventKind.VOLUME,
        (A, *whole("c0", "y", "labels"), waits(MINE)),
        act(annotated, VOLUMES, "v-c0"),
        how="a-note-on-a-volume",
    ),
    Story(
        "VolumeZone",
        EventKind.STORAGE_CLASS,
        (A, late("c0"), waits(MINE)),
        act(at_once_class, "late"),
        ZONES_ALONE,
        how="a-class-that-does-not-wait",
    ),
    Story("NodeVolumeLimits", EventKind.CSI_NODE, (A, *LIMITED), act(limit, "a", 0), how="a-lower-limit"),
    Story("NodeVolumeLimits", EventKind.ATTACHMENT, (A, *ATTACHED, waits(MINE)), act(attached, "c1", "b"), how="another-attachment"),
    Story(
        "NodeVolumeLimits", EventKind.STORAGE_CLASS, (A, *LIMITED), act(storage_class, "x", "csi.test"), how="a-class-that-limits-nothing"
    ),
    Story(
        "DynamicResources",
        EventKind.SLICE,
        (A, device_class, act(devices, "b", 1), *ASKED, waits(MY_DEVICE)),
        act(no_slice, "b"),
        how="a-slice-that-goes",
    ),
    Story(
        "DynamicResources",
        EventKind.DEVICE_CLASS,
        (A, device_class, other_class, *ASKED, waits(MY_DEVICE)),
        no_other_class,
        how="a-class-that-goes",
    ),
    Story(
        "DynamicResources",
        EventKind.DEVICE_CLAIM,
        (A, device_class, *ASKED, waits(MY_DEVICE)),
        act(annotated, RESOURCE_CLAIMS, "c0"),
        how="a-note-on-a-claim",
    ),
    Story("VolumeRestrictions", EventKind.VOLUME_CLAIM, (A, *EXCLUSIVE[:1], waits(MINE)), late("c1"), how="a-volume-claim-of-others"),
    Story(
        "VolumeRestrictions",
        EventKind.VOLUME_CLAIM,
        (A, *EXCLUSIVE, stands(1, "a", spec=MINE), waits(MINE)),
        act(annotated, VOLUME_CLAIMS, "c0"),
        how="a-note-on-a-volume-claim",
    ),
    Story(
        "DynamicResources", EventKind.DEVICE_CLAIM, (A, act(devices, "a", 1), waits(MY_DEVICE)), ASKED[1], how="a-device-claim-of-others"
    ),
]

#: What a pod that we have placed holds before its claims are bound or allocated. Pods that came with their node hold nothing of the
#: kind, so no story of one happening shows these; the property of hints does.
HELD_IN_BETWEEN = {(by, what) for by in ("VolumeBinding", "DynamicResources") for what in (EventKind.POD_GONE, EventKind.NODE_REMOVED)}
#: what upstream's plugins ask to be told, where the rules that are on by default need more than that one event
HELD_IN_BETWEEN |= {("DynamicResources", what) for what in (EventKind.NODE_ALLOCATABLE, EventKind.OWN_CLAIMS, EventKind.DEVICE_TAINTS)}
HELD_IN_BETWEEN |= {("PodTopologySpread", EventKind.OWN_TOLERATIONS), ("VolumeBinding", EventKind.CSI_NODE)}
