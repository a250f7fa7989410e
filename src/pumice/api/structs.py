"""The struct for each kind that scheduling reads, with only the fields that scheduling needs.

The version of an API group does not matter to scheduling. The kinds of kube-batch's group are read as Volcano's.
"""

from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from pumice.api import core, devices, kinds, kube_pod_groups, storage, volcano
from pumice.api.kinds import Kind
from pumice.api.meta import Wire
from pumice.api.pod import Pod
from pumice.api.quantity import Quantity, quantity

STRUCTS: dict[Kind, type[Wire]] = {
    kinds.PODS: Pod,
    kinds.NODES: core.Node,
    kinds.EVENTS: core.Event,
    kinds.NAMESPACES: core.Namespace,
    kinds.RESOURCE_QUOTAS: core.ResourceQuota,
    kinds.VOLUME_CLAIMS: storage.PersistentVolumeClaim,
    kinds.VOLUMES: storage.PersistentVolume,
    kinds.SERVICES: core.Service,
    kinds.REPLICATION_CONTROLLERS: core.ReplicationController,
    kinds.CONFIG_MAPS: core.ConfigMap,
    kinds.REPLICA_SETS: core.PodOwner,
    kinds.STATEFUL_SETS: core.PodOwner,
    kinds.PRIORITY_CLASSES: core.PriorityClass,
    kinds.RUNTIME_CLASSES: core.RuntimeClass,
    kinds.LIMIT_RANGES: core.LimitRange,
    kinds.DISRUPTION_BUDGETS: core.PodDisruptionBudget,
    kinds.STORAGE_CLASSES: storage.StorageClass,
    kinds.CSI_NODES: storage.CSINode,
    kinds.CSI_DRIVERS: storage.CSIDriver,
    kinds.VOLUME_ATTACHMENTS: storage.VolumeAttachment,
    kinds.CSI_CAPACITIES: storage.CSIStorageCapacity,
    kinds.QUEUES: volcano.Queue,
    kinds.POD_GROUPS: volcano.PodGroup,
    kinds.HYPER_NODES: volcano.HyperNode,
    kinds.NUMA_TOPOLOGIES: volcano.Numatopology,
    kinds.NODE_SHARDS: volcano.NodeShard,
    kinds.DEVICE_CLASSES: devices.DeviceClass,
    kinds.RESOURCE_SLICES: devices.ResourceSlice,
    kinds.DEVICE_TAINT_RULES: devices.DeviceTaintRule,
    kinds.RESOURCE_CLAIMS: devices.ResourceClaim,
    kinds.NATIVE_POD_GROUPS: kube_pod_groups.NativePodGroup,
    kinds.COMPOSITE_POD_GROUPS: kube_pod_groups.CompositePodGroup,
}
KINDS = {(kind.group, kind.kind): struct for kind, struct in STRUCTS.items()}  #: the same structs, by API group and kind without a version
KEPT_AS = {(kind.group, kind.kind): kind.kept_as for kind in STRUCTS}
KINDS |= {("scheduling.incubator.k8s.io", kind.kind): STRUCTS[kind] for kind in (kinds.QUEUES, kinds.POD_GROUPS)}
WORKLOADS = frozenset(
    (kind.group, kind.kind)
    for kind in (
        kinds.JOBS,
        kinds.JOB_FLOWS,
        kinds.JOB_TEMPLATES,
        kinds.DEPLOYMENTS,
        kinds.REPLICA_SETS,
        kinds.STATEFUL_SETS,
        kinds.DAEMON_SETS,
        kinds.BATCH_JOBS,
        kinds.REPLICATION_CONTROLLERS,
    )
)  #: kinds from which controllers create pods at once
KEPT = {kind.kept_as: kind for kind in STRUCTS}  #: the same kinds, by the name under which they are kept

T = TypeVar("T")


def _decode(kind: type, value: Any) -> Any:
    if kind is Quantity and type(value) in (str, int, float):
        return quantity(value)
    raise TypeError(f"Expected a quantity, got `{type(value).__name__}`")


def _encode(value: Any) -> Any:
    if isinstance(value, Quantity):
        return value.text
    raise TypeError(type(value).__name__)


@lru_cache(maxsize=256)
def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """A JSON decoder for a wire struct. Its decode() raises msgspec.ValidationError, whose text ends with the path of the field."""
    return msgspec.json.Decoder(kind, dec_hook=_decode)


def convert(value: Any, kind: type[T]) -> T:
    """The struct of this kind, made from plain dicts and lists. Raises msgspec.ValidationError."""
    return msgspec.convert(value, kind, dec_hook=_decode)


def document(kept_as: str, item: Any) -> dict[str, Any]:
    """An object as plain values, with its apiVersion and kind."""
    kind = KEPT[kept_as]
    return {"apiVersion": kind.api_version, "kind": kind.kind, **msgspec.json.decode(encode(item))}


_ENCODER = msgspec.json.Encoder(enc_hook=_encode)


def encode(value: Any) -> bytes:
    return _ENCODER.encode(value)


_PACKER = msgspec.msgpack.Encoder(enc_hook=_encode)


def pack(value: Any) -> bytes:
    """The value in the least memory: as MessagePack, which `unpacker` reads."""
    return _PACKER.encode(value)


@lru_cache(maxsize=256)
def unpacker(kind: type[T]) -> msgspec.msgpack.Decoder[T]:
    return msgspec.msgpack.Decoder(kind, dec_hook=_decode)
