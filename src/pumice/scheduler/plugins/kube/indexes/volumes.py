"""How many volumes of each CSI driver are attached per row: each volume once, however many pods mount it.

Volumes count that standing pods mount, and those that VolumeAttachments name: they stay on a node for a while after their pods have gone.
Counted when it is first asked for, and again when volumes, claims or attachments have changed since.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pumice.api.core import PersistentVolume, VolumeAttachment
from pumice.api.pod import Volume
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.index import Index
from pumice.scheduler.model.resources import Mask
from pumice.scheduler.model.task import Task
from pumice.scheduler.plugins.kube.indexes.pod_counts import PodCounts
from pumice.scheduler.plugins.kube.volume_matching import claim_of, class_name, class_of, has_claims, named_uses, uses, volume_of


class Attached(NamedTuple):
    driver: str
    handle: str


def attached_by(cluster: Cluster, task: Task) -> set[Attached]:
    """The volumes that the pod needs attached; a claim yet without volume will get one of its class's driver."""
    found = set()
    for use in uses(task):
        claim = claim_of(cluster, use)
        if claim is None:
            continue
        volume = volume_of(cluster, claim)
        if volume is not None:
            found |= _by_driver(volume)
        elif (storage := class_of(cluster, claim)) is not None:
            found.add(Attached(storage.provisioner, f"{class_name(claim)}-{use.key}"))
    return found


def _by_driver(volume: PersistentVolume) -> set[Attached]:
    """The volume, if a CSI driver attaches it."""
    csi = volume.spec.csi
    return {Attached(csi.driver, csi.volume_handle)} if csi is not None and csi.volume_handle else set()


class Attachments(Index):
    kinds = ("PersistentVolume", "PersistentVolumeClaim", "StorageClass", "VolumeAttachment")

    def refresh(self) -> None:
        if self._versions != self.versions():
            self.recount()

    def begin(self) -> None:
        self._versions = self.versions()
        self._needs: dict[str, set[Attached]] = {}  #: by pod uid, as they were counted
        self._mounts: dict[Attached, PodCounts] = {}
        self.per_driver: dict[str, PodCounts] = {}
        for attachment in self.cluster.of("VolumeAttachment").values():
            self._attached(attachment)

    def _attached(self, attachment: VolumeAttachment) -> None:
        row = self.cluster.nodes.rows.get(attachment.spec.node_name)
        volume = self.cluster.of("PersistentVolume").get(attachment.spec.source.persistent_volume_name or "")
        if row is not None and volume is not None:
            for attached in _by_driver(volume):
                self._mount(row, attached, 1)

    def change(self, row: int, task: Task, sign: int) -> None:
        if not has_claims(task.template):
            return
        if sign > 0:
            needs = self._needs[task.uid] = attached_by(self.cluster, task)
        else:
            needs = self._needs.pop(task.uid)
        for attached in needs:
            self._mount(row, attached, sign)

    def _mount(self, row: int, attached: Attached, sign: int) -> None:
        mounts = self._mounts.setdefault(attached, PodCounts())
        before = row in mounts.by_row
        mounts.add(row, sign)
        if before != (row in mounts.by_row):
            self.per_driver.setdefault(attached.driver, PodCounts()).add(row, sign)
        if not mounts:
            del self._mounts[attached]

    def agrees(self, recount: Attachments) -> bool:
        return self._mounts == recount._mounts

    def mounts(self, attached: Attached) -> PodCounts:
        return self._mounts.get(attached) or PodCounts()


# Which disks standing pods mount, per row, and how many of them use each claim.


class ExclusiveDisk(NamedTuple):
    """A disk that not all may mount together. `shareable`: those that only read may."""

    identity: tuple[str, ...]
    shareable: bool


def disks_of(volume: Volume) -> Iterable[ExclusiveDisk]:
    """The disks behind a volume; one that is reached by several servers is a disk for each."""
    if (disk := volume.gce_persistent_disk) is not None:
        yield ExclusiveDisk(("gce", disk.pd_name or ""), bool(disk.read_only))
    if (disk := volume.aws_elastic_block_store) is not None:
        yield ExclusiveDisk(("ebs", disk.volume_id or ""), False)
    if (disk := volume.iscsi) is not None:
        yield ExclusiveDisk(("iscsi", disk.iqn or ""), bool(disk.read_only))
    if (disk := volume.rbd) is not None:
        for monitor in disk.monitors or ():
            yield ExclusiveDisk(("rbd", monitor, disk.pool or "rbd", disk.image or ""), bool(disk.read_only))


class VolumeUses(Index):
    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._disks: dict[ExclusiveDisk, PodCounts] = {}
        self.claims: dict[str, int] = {}  #: by "namespace/name", never 0

    def change(self, row: int, task: Task, sign: int) -> None:
        volumes = task.template.spec.volumes
        if not volumes:
            return
        for disk in {disk for volume in volumes for disk in disks_of(volume)}:
            counts = self._disks.setdefault(disk, PodCounts())
            counts.add(row, sign)
            if not counts:
                del self._disks[disk]
        for key in {use.key for use in named_uses(task)}:
            count = self.claims.get(key, 0) + sign
            if count:
                self.claims[key] = count
            else:
                del self.claims[key]

    def agrees(self, recount: VolumeUses) -> bool:
        return self._disks == recount._disks and self.claims == recount.claims

    def in_the_way(self, disk: ExclusiveDisk, rows: int) -> Mask:
        """Rows where the disk is mounted in a manner that excludes it."""
        mask = self._disks.get(disk._replace(shareable=False), PodCounts()).present(rows)
        if not disk.shareable:
            mask |= self._disks.get(disk._replace(shareable=True), PodCounts()).present(rows)
        return mask
