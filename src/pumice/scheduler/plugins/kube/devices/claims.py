"""A pod's device claims as they stand: usable or not, allocated already, or to be allocated with its node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from pumice.api.annotations import EXTENDED_CLAIM
from pumice.api.devices import ResourceClaim
from pumice.api.meta import LabelSelectorRequirement
from pumice.api.pod import NodeSelector, NodeSelectorTerm
from pumice.scheduler.engine.rules import Reason
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.lacking import absent
from pumice.scheduler.model.task import Task
from pumice.scheduler.plugins.kube.devices.allocation import Pick
from pumice.scheduler.plugins.kube.devices.extended_resources import SPECIAL
from pumice.scheduler.plugins.kube.devices.pools import Offered

MOST_USERS = 256
IN_USE = Reason("resourceclaim in use", final=True)


class ClaimsOfPod(Struct, frozen=True):
    """Claims by "namespace/name"."""

    allocated: dict[str, ResourceClaim]
    waiting: dict[str, ResourceClaim]
    shareable: frozenset[str]  #: those of `waiting` that other pods may name, too


NONE = ClaimsOfPod({}, {}, frozenset())


def claims_of(cluster: Cluster, task: Task) -> ClaimsOfPod | Reason:
    """The claims of a pod; a reason if one of them is in the way of any node."""
    if not task.claims:
        return NONE
    found = ClaimsOfPod({}, {}, shareable_claims(task))
    for name_in_pod, name in task.claims:
        if not name:
            return Reason(f'waiting for the resourceclaim of "{name_in_pod}" to be created', final=True)
        key = f"{task.namespace}/{name}"
        claim = cluster.of("ResourceClaim").get(key)
        if claim is None:
            return Reason(absent(cluster, "ResourceClaim", f'resourceclaim "{name}" not found'), final=True)
        reason = _unusable(claim, task, made_for_pod=key not in found.shareable)
        if reason is not None:
            return reason
        (found.waiting if claim.status.allocation is None else found.allocated)[key] = claim
    return found


def shareable_claims(task: Task) -> frozenset[str]:
    """Claims that the pod names, rather than has made for it."""
    named = {ref.name for ref in task.template.spec.resource_claims or () if ref.resource_claim_name}
    return frozenset(f"{task.namespace}/{name}" for name_in_pod, name in task.claims if name_in_pod in named)


def special_key(task: Task) -> str:
    """Of the claim that serves the pod's extended resources, which has no name before it is written."""
    return f"{SPECIAL}/{task.uid}"


def written_specials(claims: Mapping[str, ResourceClaim]) -> dict[str, str]:
    """Such claims that are allocated: by `special_key`, their keys."""
    allocated = [(key, claim.metadata) for key, claim in claims.items() if claim.status.allocation is not None]
    made = [(key, meta) for key, meta in allocated if (meta.annotations or {}).get(EXTENDED_CLAIM) == "true"]
    return {f"{SPECIAL}/{meta.controller.uid}": key for key, meta in made if meta.controller is not None}


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


# Where pods can use the devices that a claim got: on one node, on those that reach all of the devices, or everywhere.


def reach(picks: Sequence[Pick], node: str) -> NodeSelector | None:
    """None for everywhere. `node`: where the pod went for which they were chosen."""
    expressions: list[LabelSelectorRequirement] = []
    fields: list[LabelSelectorRequirement] = []
    for pick in picks:
        name, selector = _told(pick.offered)
        if name is not None or pick.offered.device.binds_to_node:
            return NodeSelector([NodeSelectorTerm(match_fields=[LabelSelectorRequirement("metadata.name", "In", [node])])])
        for term in (selector.node_selector_terms if selector is not None else None) or ():
            expressions += [each for each in term.match_expressions or () if each not in expressions]
            fields += [each for each in term.match_fields or () if each not in fields]
    if not expressions and not fields:
        return None
    return NodeSelector([NodeSelectorTerm(expressions or None, fields or None)])


def _told(offered: Offered) -> tuple[str | None, NodeSelector | None]:
    """By the device itself, or by its slice for all of its devices."""
    told = offered.device if offered.piece.spec.per_device_node_selection else offered.piece.spec
    return told.node_name, told.node_selector
