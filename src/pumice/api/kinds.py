"""The table of kinds that are read: (API group, kind) to wire struct, and what is cluster-wide.

The version of a group does not matter to scheduling; kube-batch's group is read as Volcano's.
"""

from __future__ import annotations

from pumice.api import core, devices, volcano
from pumice.api.meta import Wire
from pumice.api.pod import Pod

KINDS: dict[tuple[str, str], type[Wire]] = {
    ("", "Pod"): Pod,
    ("", "Node"): core.Node,
    ("", "Namespace"): core.Namespace,
    ("", "ResourceQuota"): core.ResourceQuota,
    ("", "PersistentVolumeClaim"): core.PersistentVolumeClaim,
    ("", "PersistentVolume"): core.PersistentVolume,
    ("", "Service"): core.Service,
    ("", "ReplicationController"): core.ReplicationController,
    ("", "ConfigMap"): core.ConfigMap,
    ("apps", "ReplicaSet"): core.Workload,
    ("apps", "StatefulSet"): core.Workload,
    ("scheduling.k8s.io", "PriorityClass"): core.PriorityClass,
    ("policy", "PodDisruptionBudget"): core.PodDisruptionBudget,
    ("storage.k8s.io", "StorageClass"): core.StorageClass,
    ("storage.k8s.io", "CSINode"): core.CSINode,
    ("storage.k8s.io", "CSIDriver"): core.CSIDriver,
    ("storage.k8s.io", "VolumeAttachment"): core.VolumeAttachment,
    ("storage.k8s.io", "CSIStorageCapacity"): core.CSIStorageCapacity,
    ("scheduling.volcano.sh", "Queue"): volcano.Queue,
    ("scheduling.volcano.sh", "PodGroup"): volcano.PodGroup,
    ("topology.volcano.sh", "HyperNode"): volcano.HyperNode,
    ("nodeinfo.volcano.sh", "Numatopology"): volcano.Numatopology,
    ("shard.volcano.sh", "NodeShard"): volcano.NodeShard,
    ("resource.k8s.io", "DeviceClass"): devices.DeviceClass,
    ("resource.k8s.io", "ResourceSlice"): devices.ResourceSlice,
    ("resource.k8s.io", "DeviceTaintRule"): devices.DeviceTaintRule,
    ("resource.k8s.io", "ResourceClaim"): devices.ResourceClaim,
}
KINDS |= {("scheduling.incubator.k8s.io", kind): KINDS["scheduling.volcano.sh", kind] for kind in ("Queue", "PodGroup")}

WORKLOADS = frozenset(
    [
        ("batch.volcano.sh", "Job"),
        ("flow.volcano.sh", "JobFlow"),
        ("flow.volcano.sh", "JobTemplate"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("apps", "DaemonSet"),
        ("batch", "Job"),
        ("", "ReplicationController"),
    ]
)  #: kinds of which controllers make pods at once

CLUSTER_WIDE = frozenset(
    [
        "Node",
        "Namespace",
        "PersistentVolume",
        "PriorityClass",
        "StorageClass",
        "CSINode",
        "CSIDriver",
        "VolumeAttachment",
        "Queue",
        "HyperNode",
        "Numatopology",
        "NodeShard",
        "DeviceClass",
        "ResourceSlice",
        "DeviceTaintRule",
    ]
)


def group_of(api_version: str) -> str:
    return api_version.rpartition("/")[0]
