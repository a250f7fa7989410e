"""VolumeRestrictions: disks that only one pod of a node may mount, and claims that only one pod at all may use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from pumice.scheduler.engine import Filter, Reach, Reason, Refused, Rejected, View
from pumice.scheduler.framework.cluster_events import ClusterEvent, EventKind, always
from pumice.scheduler.model import Cluster, Task
from pumice.scheduler.plugins.kube import ClusterRule, KubePlugin
from pumice.scheduler.plugins.kube.indexes.volume_uses import ExclusiveDisk, VolumeUses, disks_of
from pumice.scheduler.plugins.kube.volume_matching import claim_of, has_claims, missing, named_uses, pod_key, uses_claim

CONFLICT = Reason("node(s) had no available disk")
IN_USE = Reason("node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod")


class _Wanted(Struct, frozen=True):
    disks: list[ExclusiveDisk]
    exclusive: list[str]  #: keys of claims with the access mode ReadWriteOncePod


class VolumeRestrictions(ClusterRule, Filter):
    name = "VolumeRestrictions"
    reach = Reach.CLUSTER
    reads_amounts = False

    key, tells_apart = staticmethod(pod_key), staticmethod(has_claims)

    def prepare(self, task: Task) -> Any:
        exclusive = []
        for use in named_uses(task):
            claim = claim_of(self.cluster, use)
            if claim is None:
                return Rejected(missing(self.cluster, use))
            if "ReadWriteOncePod" in (claim.spec.access_modes or ()):
                exclusive.append(use.key)
        disks = sorted({disk for volume in task.template.spec.volumes or () for disk in disks_of(volume)})
        return _Wanted(disks, exclusive) if disks or exclusive else None

    def is_silent(self, wanted: Any) -> bool:
        """Whether the filter refuses no node: the pod mounts no such disk, and no other pod uses its exclusive claims."""
        known = self.cluster.index(VolumeUses)
        return not wanted.disks and not any(key in known.claims for key in wanted.exclusive)

    def refuse(self, wanted: Any, nodes: View) -> Sequence[Refused]:
        known, rows = self.cluster.index(VolumeUses), len(nodes.table)
        conflict = np.zeros(rows, bool)
        for disk in wanted.disks:
            conflict |= known.in_the_way(disk, rows)
        in_use = np.full(rows, any(key in known.claims for key in wanted.exclusive)) & ~conflict
        return [Refused(nodes.of(conflict), CONFLICT), Refused(nodes.of(in_use), IN_USE)]  # type: ignore[arg-type]


def _claim_came(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    return event.old is None and uses_claim(cluster, task, event)


def _frees_volume(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """Whether the other pod mounted a disk that excluded a mount of this one, or used a claim that this one uses."""
    other = event.pod
    if other is None:
        return True
    if other.namespace != task.namespace:
        return False
    own, theirs = ({disk for volume in each.template.spec.volumes or () for disk in disks_of(volume)} for each in (task, other))
    excluded = any(mine.identity == disk.identity and not (mine.shareable and disk.shareable) for mine in own for disk in theirs)
    return excluded or not {use.key for use in named_uses(task)}.isdisjoint(use.key for use in named_uses(other))


#: An exclusive claim that a pod used on a node is free again when the node is gone.
PLUGIN = KubePlugin(
    "VolumeRestrictions",
    "preFilter filter",
    filters=lambda args, cluster: [VolumeRestrictions(cluster)],
    hints={
        EventKind.POD_GONE: _frees_volume,
        EventKind.NODE_REMOVED: always,
        EventKind.VOLUME_CLAIM: _claim_came,
        EventKind.NODE_ADDED: always,
    },
)
