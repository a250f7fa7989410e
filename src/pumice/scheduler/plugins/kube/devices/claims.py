"""A pod's device claims and their states: unusable, allocated, or to be allocated when the pod gets its node.

A claim that a pod and its native PodGroup have in the same words serves the whole group: it is reserved for the group, once.
"""

from collections.abc import Sequence

from msgspec import Struct

from pumice.api.devices import ResourceClaim
from pumice.api.kinds import NATIVE_POD_GROUP
from pumice.api.kube_pod_groups import NativePodGroup
from pumice.scheduler.engine import Reason
from pumice.scheduler.model import Cluster, Task

MOST_USERS = 256
IN_USE = Reason("resourceclaim in use", final=True)


class ClaimsOfPod(Struct, frozen=True):
    """A pod's claims by "namespace/name"."""

    allocated: dict[str, ResourceClaim]
    waiting: dict[str, ResourceClaim]
    shareable: frozenset[str]  #: the waiting claims that other pods may use, too


NONE = ClaimsOfPod({}, {}, frozenset())


def claims_of(cluster: Cluster, task: Task) -> ClaimsOfPod | Reason:
    """The claims of a pod, or a reason if one of them makes the pod unschedulable on every node."""
    if not task.claims:
        return NONE
    found = ClaimsOfPod({}, {}, shareable_claims(cluster, task))
    for name_in_pod, name in named_claims(cluster, task):
        if not name:
            return Reason(f'waiting for the resourceclaim of "{name_in_pod}" to be created', final=True)
        key = f"{task.namespace}/{name}"
        claim = cluster.of("ResourceClaim").get(key)
        if claim is None:
            return Reason(cluster.absent("ResourceClaim", f'resourceclaim "{name}" not found'), final=True)
        reason = _unusable(claim, task, made_for_pod=key not in found.shareable) or _not_of_group(cluster, claim, task, name_in_pod)
        if reason is not None:
            return reason
        (found.waiting if claim.status.allocation is None else found.allocated)[key] = claim
    return found


def shareable_claims(cluster: Cluster, task: Task) -> frozenset[str]:
    """The claims that the pod names, or that its PodGroup has, without the claims that are made for it."""
    named = {ref.name for ref in task.template.spec.resource_claims or () if ref.resource_claim_name} | group_claims(cluster, task).keys()
    return frozenset(f"{task.namespace}/{name}" for name_in_pod, name in named_claims(cluster, task) if name_in_pod in named and name)


def named_claims(cluster: Cluster, task: Task) -> Sequence[tuple[str, str]]:
    """For each device claim of the pod, its name in the pod and the name of the ResourceClaim, which is "" if that is not made yet."""
    shared = group_claims(cluster, task)
    return [(ref, shared.get(ref, name)) for ref, name in task.claims] if shared else task.claims


def group_claims(cluster: Cluster, task: Task) -> dict[str, str]:
    """The claims that the pod has in common with its PodGroup: the name in the pod, and the name of the ResourceClaim."""
    if not (cluster.shares_claims and task.group and task.claims):
        return {}
    group: NativePodGroup | None = cluster.of(NATIVE_POD_GROUP).get(task.group)
    if group is None or not group.spec.resource_claims:
        return {}
    made = {status.name: status.resource_claim_name or "" for status in group.status.resource_claim_statuses or ()}
    common = [ref for ref in task.template.spec.resource_claims or () if ref in group.spec.resource_claims]
    return {ref.name: ref.resource_claim_name or made.get(ref.name, "") for ref in common}


def _not_of_group(cluster: Cluster, claim: ResourceClaim, task: Task, name_in_pod: str) -> Reason | None:
    """Why a claim that was made for the pod's group is none of its."""
    if name_in_pod not in group_claims(cluster, task):
        return None
    made = any(ref.name == name_in_pod and not ref.resource_claim_name for ref in task.template.spec.resource_claims or ())
    owner, group = claim.metadata.controller, cluster.of(NATIVE_POD_GROUP)[task.group]
    if not made or (owner is not None and owner.uid in (task.uid, group.metadata.identity)):
        return None
    owners = f"neither Pod nor PodGroup {group.metadata.name} is the owner"
    return Reason(f"ResourceClaim {task.namespace}/{claim.metadata.name} was not created for Pod {task.key} ({owners})", final=True)


def _unusable(claim: ResourceClaim, task: Task, *, made_for_pod: bool) -> Reason | None:
    meta = claim.metadata
    if meta.deletion_timestamp:
        return Reason(f'resourceclaim "{meta.name}" is being deleted', final=True)
    if made_for_pod and (meta.controller is None or meta.controller.uid != task.uid):
        return Reason(f'resourceclaim "{meta.name}" was not created for this pod', final=True)
    users = claim.status.reserved_for or ()
    if claim.status.allocation is not None and len(users) >= MOST_USERS and all(user.uid != task.uid for user in users):
        return IN_USE
    return None
