"""How many volumes of each CSI driver are attached per row: each volume once, however many pods mount it.

Volumes count that standing pods mount, and those that VolumeAttachments name: they stay on a node for a while after their pods have gone.
Counted when it is first asked for, and again when volumes, claims or attachments have changed since.
"""

from __future__ import annotations

from typing import NamedTuple

from pumice.api.core import PersistentVolume, VolumeAttachment
from pumice.model.cluster import Cluster
from pumice.model.index import Index
from pumice.model.task import Task
from pumice.plugins.kube.claims import claim_of, class_name, class_of, has_claims, uses, volume_of
from pumice.plugins.kube.standing.row_counts import RowCounts


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
        self._mounts: dict[Attached, RowCounts] = {}
        self.per_driver: dict[str, RowCounts] = {}
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
        mounts = self._mounts.setdefault(attached, RowCounts())
        before = row in mounts.by_row
        mounts.add(row, sign)
        if before != (row in mounts.by_row):
            self.per_driver.setdefault(attached.driver, RowCounts()).add(row, sign)
        if not mounts:
            del self._mounts[attached]

    def agrees(self, recount: Attachments) -> bool:
        return self._mounts == recount._mounts

    def mounts(self, attached: Attached) -> RowCounts:
        return self._mounts.get(attached) or RowCounts()
