"""NodeVolumeLimits: no more volumes of a CSI driver on a node than its CSINode allows.

Volumes of plugins that Kubernetes once had itself count as volumes of the drivers that have replaced these plugins. With the gate
VolumeLimitScaling, on from 1.37, a node without a driver takes none of its volumes, if the CSIDriver asks for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pumice.api.pod import Volume
from pumice.api.storage import CSINode, PersistentVolume, PersistentVolumeSpec, VolumeAttachment
from pumice.scheduler.engine import Filter, Reach, Reason, Refused, Scores, View
from pumice.scheduler.framework.cluster_events import ClusterEvent, EventKind, always
from pumice.scheduler.model import Cluster, Index, Nodes, Task
from pumice.scheduler.plugins.kube import KubePlugin
from pumice.scheduler.plugins.kube.indexes.pod_counts import PodCounts
from pumice.scheduler.plugins.kube.volume_matching import (
    claim_of,
    class_name,
    class_of,
    has_claims,
    pod_key,
    uses,
    uses_claim_or_room,
    volume_of,
)

REFUSAL = Reason("node(s) exceed max volume count")


class NodeVolumeLimits(Filter):
    name = "NodeVolumeLimits"
    reach = Reach.NODE
    reads_amounts = False

    def __init__(self, cluster: Cluster, of_release: bool = False) -> None:
        """`of_release`: it follows the gates of kube-scheduler's release; Volcano's `predicates` does not."""
        self.cluster = cluster
        self._of_release = of_release

    key, tells_apart = staticmethod(pod_key), staticmethod(has_claims)

    def prepare(self, task: Task) -> Any:
        """Two lists of drivers: those with limits, each with its limits by row and the volumes that the pod needs attached; and those that
        must be installed, each with where it is. None if both are empty."""
        by_driver: dict[str, list[AttachedVolumes]] = {}
        for attached in sorted(attached_by(self.cluster, task)):
            by_driver.setdefault(attached.driver, []).append(attached)
        limits = {driver: _limits(self.cluster, driver) for driver in by_driver}
        limited = [(driver, limits[driver], wanted) for driver, wanted in by_driver.items() if np.isfinite(limits[driver]).any()]
        needed = [(driver, _installed(self.cluster, driver)) for driver in by_driver if self._must_be_installed(driver)]
        return (limited, needed) if limited or needed else None

    def _must_be_installed(self, driver: str) -> bool:
        csi_driver = self.cluster.of("CSIDriver").get(driver) if self._of_release and self.cluster.needs_drivers else None
        return csi_driver is not None and bool(csi_driver.spec.prevent_pod_scheduling_if_missing)

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        limited, needed = state
        known, table = self.cluster.index(Attachments), nodes.table
        full, absent, found = np.zeros(len(table), bool), np.zeros(len(table), bool), list[Refused]()
        for driver, installed in needed:
            reason = Reason(f"{driver} CSI driver is not installed on the node")
            found.append(Refused(nodes.of(~installed & ~absent), reason))  # type: ignore[arg-type]
            absent |= ~installed
        for driver, limit, wanted in limited:
            full |= _would_have(known, driver, wanted, table) > limit
        return [*found, Refused(nodes.of(full & ~absent), REFUSAL)]  # type: ignore[arg-type]


def _would_have(known: Attachments, driver: str, wanted: Sequence[AttachedVolumes], table: Nodes) -> Scores:
    """For each row the number of the driver's volumes with the pod; 0 where the pod adds no new volume."""
    added = np.zeros(len(table))
    for attached in wanted:
        added += ~known.mounts(attached).present(len(table))
    present = known.per_driver.get(driver, PodCounts()).array(len(table))
    return np.where(added > 0, present + added, 0.0)


def _installed(cluster: Cluster, driver: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    found = np.zeros(len(cluster.nodes), bool)
    for name, node in cluster.of("CSINode").items():
        if name in cluster.nodes.rows and driver in _limits_of(node):
            found[cluster.nodes.rows[name]] = True
    return found


def _limits(cluster: Cluster, driver: str) -> Scores:
    limits = np.full(len(cluster.nodes), np.inf)
    for name, node in cluster.of("CSINode").items():
        limit = _limits_of(node).get(driver)
        if limit is not None and name in cluster.nodes.rows:
            limits[cluster.nodes.rows[name]] = limit
    return limits


def _limits_of(node: CSINode | None) -> dict[str, float]:
    """By driver of a node; infinite where it has no limit."""
    limits: dict[str, float] = {}
    for driver in (node.spec.drivers or ()) if node is not None else ():
        count = driver.allocatable.count if driver.allocatable is not None else None
        limits[driver.name] = np.inf if count is None else count
    return limits


#: by plugin: the driver that has replaced it, and the field of a volume with its disk
REPLACED = {
    "kubernetes.io/aws-ebs": ("ebs.csi.aws.com", "aws_elastic_block_store"),
    "kubernetes.io/gce-pd": ("pd.csi.storage.gke.io", "gce_persistent_disk"),
    "kubernetes.io/azure-disk": ("disk.csi.azure.com", "azure_disk"),
    "kubernetes.io/cinder": ("cinder.csi.openstack.org", "cinder"),
    "kubernetes.io/portworx-volume": ("pxd.portworx.com", "portworx_volume"),
}


class AttachedVolumes(NamedTuple):
    driver: str
    handle: str


def attached_by(cluster: Cluster, task: Task) -> set[AttachedVolumes]:
    """The volumes that the pod needs attached. A claim without a volume counts as a volume of its StorageClass's driver."""
    found = set()
    for use in uses(task):
        claim = claim_of(cluster, use)
        if claim is None:
            continue
        volume = volume_of(cluster, claim)
        if volume is not None:
            found |= _by_driver(volume)
        elif (storage := class_of(cluster, claim)) is not None:
            driver, _ = REPLACED.get(storage.provisioner, (storage.provisioner, ""))
            found.add(AttachedVolumes(driver, f"{class_name(claim)}-{use.key}"))
    for mounted in task.template.spec.volumes or ():
        found |= _replaced(mounted)
    return found


def _by_driver(volume: PersistentVolume) -> set[AttachedVolumes]:
    csi = volume.spec.csi
    return {AttachedVolumes(csi.driver, csi.volume_handle)} if csi is not None and csi.volume_handle else _replaced(volume.spec)


def _replaced(source: Volume | PersistentVolumeSpec) -> set[AttachedVolumes]:
    """The volume of a plugin that a driver has replaced."""
    for driver, field in REPLACED.values():
        if (disk := getattr(source, field)) is not None:
            volume_id = (disk.volume_id or "").rpartition("/")[2]  # of aws://us-east-1a/vol-1 the last part
            return {AttachedVolumes(driver, disk.pd_name or disk.disk_uri or volume_id)}
    return set()


class Attachments(Index):
    """How many volumes of each CSI driver are attached per row: each volume once, however many pods mount it.

    Volumes count that pods on the node mount or that VolumeAttachments name: the latter stay attached for a while after their pods are
    gone. They are counted at the first question, and again when volumes, claims or attachments have changed since.
    """

    kinds = ("PersistentVolume", "PersistentVolumeClaim", "StorageClass", "VolumeAttachment")

    def refresh(self) -> None:
        if self._versions != self.versions():
            self.recount()

    def begin(self) -> None:
        self._versions = self.versions()
        self._needs: dict[str, set[AttachedVolumes]] = {}  #: by pod uid, what was counted for the pod
        self._mounts: dict[AttachedVolumes, PodCounts] = {}
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
        if not task.template.spec.volumes:
            return
        needs = attached_by(self.cluster, task) if sign > 0 else self._needs.pop(task.uid, set())
        if sign > 0 and needs:
            self._needs[task.uid] = needs
        for attached in needs:
            self._mount(row, attached, sign)

    def _mount(self, row: int, attached: AttachedVolumes, sign: int) -> None:
        mounts = self._mounts.setdefault(attached, PodCounts())
        before = row in mounts.by_row
        mounts.add(row, sign)
        if before != (row in mounts.by_row):
            self.per_driver.setdefault(attached.driver, PodCounts()).add(row, sign)
        if not mounts:
            del self._mounts[attached]

    def agrees(self, recount: Attachments) -> bool:
        return self._mounts == recount._mounts

    def mounts(self, attached: AttachedVolumes) -> PodCounts:
        return self._mounts.get(attached) or PodCounts()


def _takes_more(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """Whether a node has another driver, or a driver that attaches more volumes than before."""
    before, after = (_limits_of(each) for each in (event.old, event.new))
    return any(limit > before.get(name, -1) for name, limit in after.items())


def _had_attached(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """Whether the other pod may have been the last one on its node with a volume."""
    gone = event.pod
    return gone is None or has_claims(gone.template) or any(map(_replaced, gone.template.spec.volumes or ()))


def _counts_less(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """Whether a volume is no longer attached to a node, or one of the pod's own is now, so that the pod adds none there."""
    if event.new is None:
        return True
    volume = cluster.of("PersistentVolume").get(event.new.spec.source.persistent_volume_name or "")
    return volume is not None and not attached_by(cluster, task).isdisjoint(_by_driver(volume))


PLUGIN = KubePlugin(
    "NodeVolumeLimits",
    "preFilter filter",
    filters=lambda args, cluster: [NodeVolumeLimits(cluster, of_release=True)],
    hints={
        EventKind.POD_GONE: _had_attached,
        EventKind.VOLUME_CLAIM: uses_claim_or_room,
        EventKind.CSI_NODE: _takes_more,
        EventKind.ATTACHMENT: _counts_less,
        EventKind.NODE_ADDED: always,
    },
)
