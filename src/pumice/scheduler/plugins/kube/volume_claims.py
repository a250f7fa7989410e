"""What a pod's volume claims are and how they stand: bound, to be bound when the pod gets its node, or in the way of any node."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from msgspec import UNSET

from pumice.api.annotations import BIND_COMPLETED, OLD_STORAGE_CLASS, SELECTED_NODE
from pumice.api.core import PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.scheduler.engine.rules import Reason
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.lacking import absent
from pumice.scheduler.model.task import Task
from pumice.scheduler.model.template import Template


class Use(NamedTuple):
    """A claim as a pod names it."""

    key: str  #: "namespace/name"
    name: str
    made_for_pod: bool = False  #: of a generic ephemeral volume


def has_claims(template: Template) -> bool:
    return any(volume.persistent_volume_claim or volume.ephemeral is not None for volume in template.spec.volumes or ())


def uses(task: Task) -> list[Use]:
    """The claims of a pod, in the order of its volumes."""
    found = []
    for volume in task.template.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
            found.append(Use(f"{task.namespace}/{name}", name))
        elif volume.ephemeral is not None:
            name = f"{task.name}-{volume.name}"
            found.append(Use(f"{task.namespace}/{name}", name, made_for_pod=True))
    return found


def pod_key(task: Task) -> Hashable:
    """Pods with claims of their own are not alike, though their templates are."""
    return task.name if any(volume.ephemeral is not None for volume in task.template.spec.volumes or ()) else None


def claim_of(cluster: Cluster, use: Use) -> PersistentVolumeClaim | None:
    found: PersistentVolumeClaim | None = cluster.of("PersistentVolumeClaim").get(use.key)
    return found


def volume_of(cluster: Cluster, claim: PersistentVolumeClaim) -> PersistentVolume | None:
    found: PersistentVolume | None = cluster.of("PersistentVolume").get(claim.spec.volume_name or "")
    return found


def named_uses(task: Task) -> list[Use]:
    """Those that the pod names, without those made for it."""
    return [use for use in uses(task) if not use.made_for_pod]


def selected_node(claim: PersistentVolumeClaim) -> str | None:
    return (claim.metadata.annotations or {}).get(SELECTED_NODE)


def class_name(claim: PersistentVolumeClaim) -> str:
    """The old annotation has the word where it is there, even if it is empty."""
    named = claim.spec.storage_class_name
    return (claim.metadata.annotations or {}).get(OLD_STORAGE_CLASS, "" if named is UNSET or named is None else named)


def class_of(cluster: Cluster, claim: PersistentVolumeClaim) -> StorageClass | None:
    found: StorageClass | None = cluster.of("StorageClass").get(class_name(claim))
    return found


def is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in (claim.metadata.annotations or {})


def waits_for_pod(cluster: Cluster, claim: PersistentVolumeClaim) -> bool:
    """Whether it is bound only once a pod that uses it has its node."""
    found = class_of(cluster, claim)
    return not claim.spec.volume_name and found is not None and found.volume_binding_mode == "WaitForFirstConsumer"


def missing(cluster: Cluster, use: Use) -> Reason:
    if use.made_for_pod:
        return Reason(f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"', final=True)
    return Reason(absent(cluster, "PersistentVolumeClaim", f'persistentvolumeclaim "{use.name}" not found'), final=True)
