"""Volumes: claims, volumes, classes, attachments, CSI drivers and what they have left."""

from typing import Literal

from msgspec import UNSET, UnsetType, field

from pumice.api.core import ObjectReference
from pumice.api.meta import Int, LabelSelector, Metadata, Wire
from pumice.api.pod import Disk, NodeSelector, ResourceList, ResourceRequirements
from pumice.api.quantity import Quantity


class PersistentVolumeClaimSpec(Wire, frozen=True):
    access_modes: list[str] | None = None
    volume_name: str | None = None
    storage_class_name: str | UnsetType | None = UNSET
    resources: ResourceRequirements | None = None
    selector: LabelSelector | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class Phase(Wire, frozen=True):
    phase: str | None = None


class PersistentVolumeClaim(Wire, frozen=True):
    metadata: Metadata
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: Phase = Phase()


class CSISource(Wire, frozen=True):
    driver: str = ""
    volume_handle: str | None = None


class VolumeNodeAffinity(Wire, frozen=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Wire, frozen=True):
    capacity: ResourceList | None = None
    access_modes: list[str] | None = None
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    storage_class_name: str | None = None
    csi: CSISource | None = None
    aws_elastic_block_store: Disk | None = None
    gce_persistent_disk: Disk | None = None
    azure_disk: Disk | None = None
    cinder: Disk | None = None
    portworx_volume: Disk | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolume(Wire, frozen=True):
    metadata: Metadata
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: Phase = Phase()


class TopologySelectorTerm(Wire, frozen=True):
    key: str
    values: list[str]


class TopologyTerms(Wire, frozen=True):
    match_label_expressions: list[TopologySelectorTerm] | None = None


class StorageClass(Wire, frozen=True):
    metadata: Metadata
    provisioner: str = ""
    volume_binding_mode: Literal["Immediate", "WaitForFirstConsumer"] | None = None
    allowed_topologies: list[TopologyTerms] | None = None


class VolumeNodeResources(Wire, frozen=True):
    count: Int | None = None


class CSINodeDriver(Wire, frozen=True):
    name: str
    node_id: str | None = field(name="nodeID", default=None)
    topology_keys: list[str] | None = None
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Wire, frozen=True):
    drivers: list[CSINodeDriver] | None = None


class CSINode(Wire, frozen=True):
    metadata: Metadata
    spec: CSINodeSpec = CSINodeSpec()


class AttachedSource(Wire, frozen=True):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Wire, frozen=True):
    source: AttachedSource
    node_name: str = ""


class VolumeAttachment(Wire, frozen=True):
    metadata: Metadata
    spec: VolumeAttachmentSpec


class CSIDriverSpec(Wire, frozen=True):
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(Wire, frozen=True):
    metadata: Metadata
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Wire, frozen=True):
    metadata: Metadata
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None

    @property
    def largest(self) -> int:
        """The size in bytes of the largest volume that can be provisioned; -1 if it is not published."""
        limit = self.maximum_volume_size or self.capacity
        return limit.whole if limit is not None else -1
