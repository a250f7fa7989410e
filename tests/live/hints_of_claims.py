"""For rules about volumes and devices: a story for each happening that may help."""

from __future__ import annotations

from pumice.api.kinds import DEVICE_CLASSES, RESOURCE_SLICES, VOLUME_CLAIMS
from pumice.scheduler.framework.cluster_events import EventKind
from tests.live.crowds import (
    ZONE,
    Spec,
    capacity,
    claim,
    claiming,
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
LIMITED = (*whole("c0"), *whole("c1"), act(limit, "a", 1), stands(1, "a", spec=THEIRS), waits(MINE))

# ---- devices

MY_DEVICE = {"resourceClaims": [{"name": "g", "resourceClaimName": "c0"}]}
ASKED = (act(device_claim, "c0", 1), act(device_claim, "c1", 1))


def device_class(api: MemoryServer) -> None:
    api.put(DEVICE_CLASSES, "gpu", spec={})


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
    Story("NodeVolumeLimits", EventKind.VOLUMES, (A, *LIMITED), act(limit, "a", 2)),
    Story("NodeVolumeLimits", EventKind.NODE_ADDED, (A, *LIMITED), B),
    Story("NodeVolumeLimits", EventKind.VOLUME_CLAIM, (A, *LIMITED), act(no_claim, "c1")),
    Story("VolumeBinding", EventKind.NODE_LABELS, (A, *whole("c0", "y", "affinity"), waits(MINE)), A_TO_Y),
    Story("VolumeBinding", EventKind.NODE_ADDED, (A, *whole("c0", "y", "affinity"), waits(MINE)), B_IN_Y),
    Story("VolumeBinding", EventKind.VOLUMES, (A, late("c0"), waits(MINE)), act(storage_class, "x", "csi.test")),
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
    Story("VolumeZone", EventKind.VOLUMES, (A, *whole("c0", "y", "labels"), waits(MINE)), act(volume, "c0", "x", "labels", "")),
    Story("DynamicResources", EventKind.DEVICE_CLAIM, (A, act(devices, "a", 1), waits(MY_DEVICE)), ASKED[0]),
    Story("DynamicResources", EventKind.DEVICES, (A, device_class, *ASKED, waits(MY_DEVICE)), act(devices, "a", 1)),
    Story("DynamicResources", EventKind.NODE_LABELS, (A, device_class, *ASKED, act(in_reach, IN_Y), waits(MY_DEVICE)), A_TO_Y),
    Story("DynamicResources", EventKind.NODE_ADDED, (A, act(devices, "b", 1), *ASKED, waits(MY_DEVICE)), B),
    # what a pod had on a node that is no more is free again
    Story("VolumeRestrictions", EventKind.NODE_REMOVED, (A, B, *EXCLUSIVE, stands(1, "b", spec=MINE), waits(MINE)), act(without, "b")),
]

IN_VAIN = [
    Story("VolumeBinding", EventKind.CAPACITY, (A, *PUBLISHED, waits(MINE)), act(capacity, "x", "10Mi"), how="less-storage"),
    Story("VolumeRestrictions", EventKind.VOLUME_CLAIM, (A, *EXCLUSIVE[:1], waits(MINE)), late("c1"), how="a-volume-claim-of-others"),
    Story(
        "DynamicResources", EventKind.DEVICE_CLAIM, (A, act(devices, "a", 1), waits(MY_DEVICE)), ASKED[1], how="a-device-claim-of-others"
    ),
]

#: What a pod that we have placed holds before its claims are bound or allocated. Pods that came with their node hold nothing of the
#: kind, so no story of one happening shows these; the property of hints does.
HELD_IN_BETWEEN = {(by, what) for by in ("VolumeBinding", "DynamicResources") for what in (EventKind.POD_GONE, EventKind.NODE_REMOVED)}
#: what upstream's plugins ask to be told, where the rules that are on by default need more than that one event
HELD_IN_BETWEEN |= {("DynamicResources", what) for what in (EventKind.NODE_ALLOCATABLE, EventKind.OWN_CLAIMS)}
HELD_IN_BETWEEN.add(("PodTopologySpread", EventKind.OWN_TOLERATIONS))
