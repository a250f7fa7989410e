"""VolumeZone: a bound volume that names its zone or region is used only there; nodes without such labels take any."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from pumice.api.annotations import OLD_REGION_LABEL, OLD_ZONE_LABEL, REGION_LABEL, ZONE_LABEL
from pumice.api.selectors import Requirement
from pumice.api.storage import PersistentVolume, PersistentVolumeClaim
from pumice.scheduler.engine import Filter, Reach, Reason, Refused, Rejected, View
from pumice.scheduler.framework.cluster_events import ClusterEvent, EventKind, always
from pumice.scheduler.model import ABSENT, Cluster, Task
from pumice.scheduler.plugins.kube import ClusterRule, KubePlugin
from pumice.scheduler.plugins.kube.volume_matching import (
    claim_of,
    class_name,
    class_of,
    has_claims,
    missing,
    named_uses,
    pod_key,
    uses_claim,
    volume_of,
    waits_for_pod,
)

REFUSAL = Reason("node(s) had no available volume zone", final=True)
CURRENT = {OLD_ZONE_LABEL: ZONE_LABEL, OLD_REGION_LABEL: REGION_LABEL}  #: from each old label key to the key that replaced it
ZONE_KEYS = (*CURRENT, *CURRENT.values())


class VolumeZone(ClusterRule, Filter):
    name = "VolumeZone"
    reach = Reach.STATIC
    reads_amounts = False

    key, tells_apart = staticmethod(pod_key), staticmethod(has_claims)

    def prepare(self, task: Task) -> Any:
        wanted: list[Requirement] = []
        for use in named_uses(task):
            claim = claim_of(self.cluster, use)
            if claim is None:
                return Rejected(missing(self.cluster, use))
            if claim.spec.volume_name:
                volume = volume_of(self.cluster, claim)
                if volume is None:
                    return Rejected(Reason(self._no_volume(claim), final=True))
                wanted += _zones(volume)
            elif not waits_for_pod(self.cluster, claim):
                return Rejected(Reason(self._why_unbound(claim), final=True))
        return wanted or None

    def _no_volume(self, claim: PersistentVolumeClaim) -> str:
        return self.cluster.absent("PersistentVolume", f'persistentvolume "{claim.spec.volume_name}" not found')

    def _why_unbound(self, claim: PersistentVolumeClaim) -> str:
        if not class_name(claim):
            return "PersistentVolumeClaim had no pv name and storageClass name"
        if class_of(self.cluster, claim) is None:
            return self.cluster.absent("StorageClass", f'storageclass.storage.k8s.io "{class_name(claim)}" not found')
        return "PersistentVolume had no name"

    def refuse(self, wanted: Any, nodes: View) -> Sequence[Refused]:
        table = nodes.table
        labelled, elsewhere = np.zeros(len(table), bool), np.zeros(len(table), bool)
        for key in ZONE_KEYS:
            labelled |= table.codes(key)[0] != ABSENT
        for requirement in wanted:
            newer = replace(requirement, key=CURRENT.get(requirement.key, requirement.key))
            own = table.codes(requirement.key)[0] != ABSENT
            elsewhere |= ~np.where(own, table.satisfying(requirement), table.satisfying(newer))
        return [Refused(nodes.of(labelled & elsewhere), REFUSAL)]  # type: ignore[arg-type]


def _zones(volume: PersistentVolume) -> list[Requirement]:
    """The requirements that a volume's labels make of a node's labels. A value may be several zones, joined by "__"; a value with an empty
    zone is ignored."""
    labels = volume.metadata.labels or {}
    named = {key: tuple(labels[key].split("__")) for key in ZONE_KEYS if key in labels}
    return [Requirement(key, "In", zones) for key, zones in named.items() if all(zone.strip() for zone in zones)]


def _zones_changed(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    return event.new is not None and (event.old is None or _zones(event.old) != _zones(event.new))


def _class_that_waits(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """Whether a class came whose volumes wait for their pod. The mode of a class cannot be changed."""
    return event.old is None and event.new.volume_binding_mode == "WaitForFirstConsumer"


PLUGIN = KubePlugin(
    "VolumeZone",
    "preFilter filter",
    filters=lambda args, cluster: [VolumeZone(cluster)],
    hints={
        EventKind.NODE_LABELS: always,
        EventKind.NODE_ADDED: always,
        EventKind.VOLUME_CLAIM: uses_claim,
        EventKind.VOLUME: _zones_changed,
        EventKind.STORAGE_CLASS: _class_that_waits,
    },
)
