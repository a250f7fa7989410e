"""Which disks standing pods mount, per row, and how many of them use each claim."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pumice.api.pod import Volume
from pumice.model.cluster import Cluster
from pumice.model.index import Index
from pumice.model.resources import Mask
from pumice.model.task import Task
from pumice.plugins.kube.claims import named_uses
from pumice.plugins.kube.standing.row_counts import RowCounts


class Disk(NamedTuple):
    """A disk that not all may mount together. `shareable`: those that only read may."""

    identity: tuple[str, ...]
    shareable: bool


def disks_of(volume: Volume) -> Iterable[Disk]:
    """The disks behind a volume; one that is reached by several servers is a disk for each."""
    if (disk := volume.gce_persistent_disk) is not None:
        yield Disk(("gce", disk.pd_name or ""), bool(disk.read_only))
    if (disk := volume.aws_elastic_block_store) is not None:
        yield Disk(("ebs", disk.volume_id or ""), False)
    if (disk := volume.iscsi) is not None:
        yield Disk(("iscsi", disk.iqn or ""), bool(disk.read_only))
    if (disk := volume.rbd) is not None:
        for monitor in disk.monitors or ():
            yield Disk(("rbd", monitor, disk.pool or "rbd", disk.image or ""), bool(disk.read_only))


class VolumeUses(Index):
    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._disks: dict[Disk, RowCounts] = {}
        self.claims: dict[str, int] = {}  #: by "namespace/name", never 0

    def change(self, row: int, task: Task, sign: int) -> None:
        volumes = task.template.spec.volumes
        if not volumes:
            return
        for disk in {disk for volume in volumes for disk in disks_of(volume)}:
            counts = self._disks.setdefault(disk, RowCounts())
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

    def in_the_way(self, disk: Disk, rows: int) -> Mask:
        """Rows where the disk is mounted in a manner that excludes it."""
        mask = self._disks.get(disk._replace(shareable=False), RowCounts()).present(rows)
        if not disk.shareable:
            mask |= self._disks.get(disk._replace(shareable=True), RowCounts()).present(rows)
        return mask
