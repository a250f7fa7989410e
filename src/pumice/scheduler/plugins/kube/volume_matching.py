"""Which volumes a waiting claim could get, and on which rows; or on which rows one could be provisioned for it.

A claim gets the smallest matching volume that is not taken. Of a pod's waiting claims the one with the smallest request chooses first. The
choice is made for all rows at once.
"""

from collections.abc import Hashable, Sequence

import numpy as np
from msgspec import UNSET, Struct
from msgspec.structs import replace

from pumice.api.annotations import BIND_COMPLETED, OLD_STORAGE_CLASS, SELECTED_NODE
from pumice.api.pod import NodeSelector
from pumice.api.selectors import Requirement, matches
from pumice.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.scheduler.engine import Reason
from pumice.scheduler.framework.cluster_events import ClusterEvent
from pumice.scheduler.model import Cluster, Mask, NDArray, Nodes, Rows, Task, Template
from pumice.scheduler.plugins.kube.node_affinity import selector_matches


class ClaimUse(Struct, frozen=True):
    """A claim that a pod uses."""

    key: str  #: "namespace/name"
    name: str
    made_for_pod: bool = False  #: the claim belongs to a generic ephemeral volume


def has_claims(template: Template) -> bool:
    return any(volume.persistent_volume_claim or volume.ephemeral is not None for volume in template.spec.volumes or ())


def had_claims(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """Whether the other pod may give back a volume: one that was attached, or assumed and not yet bound."""
    return event.pod is None or has_claims(event.pod.template)


def uses(task: Task) -> list[ClaimUse]:
    """The claims that a pod uses, in the order of its volumes."""
    found = []
    for volume in task.template.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
            found.append(ClaimUse(f"{task.namespace}/{name}", name))
        elif volume.ephemeral is not None:
            name = f"{task.name}-{volume.name}"
            found.append(ClaimUse(f"{task.namespace}/{name}", name, made_for_pod=True))
    return found


def pod_key(task: Task) -> Hashable:
    """The pod's name if claims are made for it, else None: such pods differ though their templates are equal."""
    return task.name if any(volume.ephemeral is not None for volume in task.template.spec.volumes or ()) else None


def uses_claim(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """The queueing hint of rules that read the pod's own claims."""
    return event.new is not None and any(use.key == event.key for use in uses(task))


def uses_claim_or_room(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """The queueing hint of rules that also read what the claims of others take: that is free if a claim is gone, or gets another volume
    than the one that was assumed for it."""
    frees = event.old is not None and (event.new is None or event.new.spec.volume_name != event.old.spec.volume_name)
    return frees or uses_claim(cluster, task, event)


def claim_of(cluster: Cluster, use: ClaimUse) -> PersistentVolumeClaim | None:
    found: PersistentVolumeClaim | None = cluster.of("PersistentVolumeClaim").get(use.key)
    return found


def volume_of(cluster: Cluster, claim: PersistentVolumeClaim) -> PersistentVolume | None:
    found: PersistentVolume | None = cluster.of("PersistentVolume").get(claim.spec.volume_name or "")
    return found


def named_uses(task: Task) -> list[ClaimUse]:
    """The claims that the pod names, without the claims that are made for it."""
    return [use for use in uses(task) if not use.made_for_pod]


def selected_node(claim: PersistentVolumeClaim) -> str | None:
    return (claim.metadata.annotations or {}).get(SELECTED_NODE)


def class_name(claim: PersistentVolumeClaim) -> str:
    """The name of the claim's StorageClass. The old annotation wins if it is there, even if it is empty."""
    named = claim.spec.storage_class_name
    return (claim.metadata.annotations or {}).get(OLD_STORAGE_CLASS, "" if named is UNSET or named is None else named)


def class_of(cluster: Cluster, claim: PersistentVolumeClaim) -> StorageClass | None:
    found: StorageClass | None = cluster.of("StorageClass").get(class_name(claim))
    return found


def is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in (claim.metadata.annotations or {})


def waits_for_pod(cluster: Cluster, claim: PersistentVolumeClaim) -> bool:
    """Whether the claim is bound only when a pod that uses it has a node (WaitForFirstConsumer)."""
    found = class_of(cluster, claim)
    return not claim.spec.volume_name and found is not None and found.volume_binding_mode == "WaitForFirstConsumer"


def missing(cluster: Cluster, use: ClaimUse) -> Reason:
    if use.made_for_pod:
        return Reason(f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"', final=True)
    return Reason(cluster.absent("PersistentVolumeClaim", f'persistentvolumeclaim "{use.name}" not found'), final=True)


NO_PROVISIONER = "kubernetes.io/no-provisioner"
NONE = -1

Ids = NDArray[np.intp]


def reachable(volume: PersistentVolume, table: Nodes) -> Mask:
    """The rows that a volume's node affinity admits. Only labels count, not fields."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return table.alive
    terms = affinity.required.node_selector_terms or ()
    if any(term.match_fields and not term.match_expressions for term in terms):
        return table.alive
    return selector_matches(NodeSelector([replace(term, match_fields=None) for term in terms]), table)


def size_of(claim: PersistentVolumeClaim) -> int:
    requests = (claim.spec.resources.requests if claim.spec.resources else None) or {}
    return requests["storage"].whole if "storage" in requests else 0


def capacity_of(volume: PersistentVolume) -> int:
    capacity = volume.spec.capacity or {}
    return capacity["storage"].whole if "storage" in capacity else 0


class Matching(Struct, frozen=True):
    """Pairs of a volume and a row that can reach it, the smallest volume first. A volume's number is its position in the cluster's list."""

    volumes: Ids
    rows: Rows

    def choice(self, taken: Mask, earlier: Sequence[Ids], rows: int) -> Ids:
        """For each row the number of the chosen volume, or NONE. Volumes that are taken, or that an earlier claim chose on that row, are
        excluded."""
        free = ~taken[self.volumes]
        for chosen in earlier:
            free &= chosen[self.rows] != self.volumes
        choice = np.full(rows, NONE)
        reached, first = np.unique(self.rows[free], return_index=True)
        choice[reached] = self.volumes[free][first]
        return choice


def signature(claim: PersistentVolumeClaim) -> Hashable:
    """The fields of a claim that decide which volumes match it, unless a volume is reserved for it."""
    selector = claim.spec.selector.requirements if claim.spec.selector else ()
    spec = claim.spec
    modes = tuple(spec.access_modes or ()), spec.volume_mode, spec.volume_attributes_class_name
    return class_name(claim), size_of(claim), selector, modes


def matching(cluster: Cluster, claim: PersistentVolumeClaim) -> Matching:
    """The volumes that match the claim, with the rows that reach them."""
    volumes = enumerate(cluster.of("PersistentVolume").values())
    suitable = [(number, volume) for number, volume in volumes if _suits(claim, volume)]
    return _pairs(sorted(suitable, key=lambda pair: capacity_of(pair[1])), cluster.nodes)


def reserved(cluster: Cluster, number: int, volume: PersistentVolume) -> Matching:
    """The pairs of a volume that is reserved for the claim: it is the only one that the claim can get."""
    return _pairs([(number, volume)], cluster.nodes)


def is_reserved(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume that names this claim is reserved for it, not for an earlier claim of the same name, and can be used for it."""
    reference = volume.spec.claim_ref
    means = reference is not None and (not reference.uid or reference.uid == claim.metadata.identity)
    return means and class_of_volume(volume) == class_name(claim) and _would_do(claim, volume)


def class_of_volume(volume: PersistentVolume) -> str:
    return (volume.metadata.annotations or {}).get(OLD_STORAGE_CLASS, volume.spec.storage_class_name or "")


def _pairs(volumes: Sequence[tuple[int, PersistentVolume]], table: Nodes) -> Matching:
    rows = [np.flatnonzero(reachable(volume, table)) for _, volume in volumes]
    numbers = np.repeat(np.array([number for number, _ in volumes], np.intp), [len(part) for part in rows])
    return Matching(numbers, np.concatenate(rows) if rows else np.zeros(0, np.intp))


def _suits(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    spec = volume.spec
    selector = claim.spec.selector.requirements if claim.spec.selector else ()
    return (
        spec.claim_ref is None
        and volume.status.phase == "Available"
        and _would_do(claim, volume)
        and class_of_volume(volume) == class_name(claim)
        and matches(selector, volume.metadata.labels or {})
        and set(claim.spec.access_modes or ()) <= set(spec.access_modes or ())
    )


def _would_do(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Whether the volume is large enough, has the claim's volume mode and attributes class, and is not being deleted."""
    offered, asked = volume.spec, claim.spec
    same_mode = (offered.volume_mode or "Filesystem") == (asked.volume_mode or "Filesystem")
    same_attributes = (offered.volume_attributes_class_name or "") == (asked.volume_attributes_class_name or "")
    return same_mode and same_attributes and not volume.metadata.deletion_timestamp and capacity_of(volume) >= size_of(claim)


def provisionable(cluster: Cluster, claim: PersistentVolumeClaim) -> Mask:
    """The rows where a volume could be provisioned for the claim."""
    storage = class_of(cluster, claim)
    table = cluster.nodes
    if storage is None or storage.provisioner in ("", NO_PROVISIONER):
        return np.zeros(len(table), bool)
    return _allowed(storage, table)


def _allowed(storage: StorageClass, table: Nodes) -> Mask:
    if not storage.allowed_topologies:
        return table.alive
    mask = np.zeros(len(table), bool)
    for terms in storage.allowed_topologies:
        if terms.match_label_expressions:
            mask |= table.matching(tuple(Requirement(t.key, "In", tuple(t.values)) for t in terms.match_label_expressions))
    return mask
