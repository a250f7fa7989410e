"""How many volumes of each CSI driver are attached per row: each volume once, however many pods mount it.

Volumes count that standing pods mount, and those that VolumeAttachments name: they stay on a node for a while after their pods have gone.
Counted when it is first asked for, and again when volumes, claims or attachments have changed since.
"""

from __future__ import annotations

from typing import NamedTuple

from pumice.api.core import PersistentVolume, VolumeAttachment
from pumice.model.cluster import Cluster
from pumice.model.task import Task
from pumice.plugins.kube.claims import claim_of, class_name, class_of, has_claims, uses, volume_of
from pumice.plugins.kube.standing.groups import standing
from pumice.plugins.kube.standing.row_counts import RowCounts

KINDS = ("PersistentVolume", "PersistentVolumeClaim", "StorageClass", "VolumeAttachment")


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


class Attachments:
    """See the module. Use `Attachments.of(cluster)`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._count()
        cluster.watchers.append(self.change)

    @classmethod
    def of(cls, cluster: Cluster) -> Attachments:
        found: Attachments | None = cluster.memory.get("attachments")
        if found is None:
            found = cluster.memory["attachments"] = cls(cluster)
        elif found._versions != _versions(cluster):
            found._count()
        return found

    def _count(self) -> None:
        self._versions = _versions(self._cluster)
        self._needs: dict[str, set[Attached]] = {}  #: by pod uid, as they were counted
        self._mounts: dict[Attached, RowCounts] = {}
        self.per_driver: dict[str, RowCounts] = {}
        for task in standing(self._cluster):
            self.change(task.node, task, 1)
        for attachment in self._cluster.of("VolumeAttachment").values():
            self._attached(attachment)

    def _attached(self, attachment: VolumeAttachment) -> None:
        row = self._cluster.nodes.rows.get(attachment.spec.node_name)
        volume = self._cluster.of("PersistentVolume").get(attachment.spec.source.persistent_volume_name or "")
        if row is not None and volume is not None:
            for attached in _by_driver(volume):
                self._mount(row, attached, 1)

    def change(self, row: int, task: Task, sign: int) -> None:
        if not has_claims(task.template):
            return
        if sign > 0:
            needs = self._needs[task.uid] = attached_by(self._cluster, task)
        else:
            needs = self._needs.pop(task.uid)
        for attached in needs:
            self._mount(row, attached, sign)

    def _mount(self, row: int, attached: Attached, sign: int) -> None:
        mounts = self._mounts.setdefault(attached, RowCounts())
        before = row in mounts.by_row
        mounts.add(row, sign)
        if before != (row in mounts.by_row):
            self.per_driver.setdefault(attached.driver, RowCounts()).add(row, sign)
        if not mounts:
            del self._mounts[attached]

    def mounts(self, attached: Attached) -> RowCounts:
        return self._mounts.get(attached) or RowCounts()


def _versions(cluster: Cluster) -> tuple[int, ...]:
    return cluster.nodes.static_version, len(cluster.nodes), *(cluster.versions.get(kind, 0) for kind in KINDS)
