"""Which disks the pods on nodes mount, per row, and how many pods use each claim."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pumice.api.pod import Volume
from pumice.scheduler.model import Cluster, Index, Mask, Task
from pumice.scheduler.plugins.kube.indexes.pod_counts import PodCounts
from pumice.scheduler.plugins.kube.volume_matching import named_uses


class ExclusiveDisk(NamedTuple):
    """A disk that several pods may not mount together, unless it is `shareable`: all of them mount it read-only."""

    identity: tuple[str, ...]
    shareable: bool


def disks_of(volume: Volume) -> Iterable[ExclusiveDisk]:
    """The disks behind a volume. A disk that is reached through several servers counts once for each server."""
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
        """The rows where a pod has mounted the disk in a way that excludes this mount."""
        mask = self._disks.get(disk._replace(shareable=False), PodCounts()).present(rows)
        if not disk.shareable:
            mask |= self._disks.get(disk._replace(shareable=True), PodCounts()).present(rows)
        return mask
