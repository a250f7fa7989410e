"""A pod's device claims and their states: unusable, allocated, or to be allocated when the pod gets its node.

Extended resources that a node does not have itself, but has as devices of a class that serves them, become a claim as well. A class serves
the resource that it names, and the resource that is named after the class. The scheduler makes such a claim, one for each pod, and writes
it when the pod is bound.

A claim that a pod and its native PodGroup have in the same words serves the whole group: it is reserved for the group, once.

Where pods can use the devices of a claim: on one node, on the nodes that reach all of the devices, or everywhere.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from pumice.api.annotations import EXTENDED_CLAIM
from pumice.api.devices import DeviceRequest, DeviceRequests, ExactRequest, ResourceClaim, ResourceClaimSpec
from pumice.api.groups import NativePodGroup
from pumice.api.kinds import NATIVE_POD_GROUP
from pumice.api.meta import LabelSelectorRequirement, Metadata
from pumice.api.pod import Container, NodeSelector, NodeSelectorTerm, PodSpec
from pumice.scheduler.engine import Reason
from pumice.scheduler.model import Cluster, Task
from pumice.scheduler.plugins.kube.devices.allocation import Pick
from pumice.scheduler.plugins.kube.devices.pools import Offered

AFTER_CLASS = "deviceclass.resource.kubernetes.io/"
SPECIAL = "<extended-resources>"  #: not a valid name of a claim


class Mapped(Struct, frozen=True):
    """The request of the claim that serves a resource of a container."""

    container: str
    resource: str
    request: str


class Served(Struct, frozen=True):
    claim: ResourceClaim
    mappings: tuple[Mapped, ...]


def classes_by_resource(cluster: Cluster) -> dict[str, str]:
    """From extended resource to the class that serves it: of several classes the youngest, of equally old ones the first by name."""
    found: dict[str, str] = {}
    by_name = sorted(cluster.of("DeviceClass").items(), reverse=True)
    for name, made in sorted(by_name, key=lambda pair: pair[1].metadata.created):
        if made.spec.extended_resource_name:
            found[made.spec.extended_resource_name] = name
        found[AFTER_CLASS + name] = name
    return found


def claim_for(namespace: str, spec: PodSpec, classes: Mapping[str, str]) -> Served:
    """The claim for the resources of a pod's containers. `classes` has the device class of each resource."""
    requests: list[DeviceRequest] = []
    mappings: list[Mapped] = []
    for resource in sorted(classes):
        more, mapped = _requests(spec, resource, classes[resource])
        requests += more
        mappings += mapped
    devices = DeviceRequests(requests=sorted(requests, key=lambda request: request.name))
    return Served(ResourceClaim(Metadata(name=SPECIAL, namespace=namespace), ResourceClaimSpec(devices)), tuple(mappings))


def _requests(spec: PodSpec, resource: str, device_class: str) -> tuple[list[DeviceRequest], list[Mapped]]:
    """One request for each app container and sidecar. Init containers use those requests; one more serves what they need beyond them."""
    containers = [*(spec.init_containers or ()), *(spec.containers or ())]
    first_app = len(spec.init_containers or ())
    lasting: dict[int, tuple[str, int]] = {}
    mappings: list[Mapped] = []
    brief: list[tuple[int, Container, int]] = []
    for number, container in enumerate(containers):
        count = _count(container, resource)
        if not count:
            continue
        if number >= first_app or container.restart_policy == "Always":
            lasting[number] = (_name(number, container, resource), count)
            mappings.append(Mapped(container.name, resource, lasting[number][0]))
        else:
            brief.append((number, container, count))
    own, more = _brief(brief, lasting, resource)
    requests = [*own, *lasting.values()]
    made = [DeviceRequest(name, exactly=ExactRequest(device_class, allocation_mode="ExactCount", count=count)) for name, count in requests]
    return made, mappings + more


def _brief(
    brief: Sequence[tuple[int, Container, int]], lasting: Mapping[int, tuple[str, int]], resource: str
) -> tuple[list[tuple[str, int]], list[Mapped]]:
    """The request that serves init containers beyond those of later containers: the largest that any of them needs, for all of them."""
    rest: list[tuple[str, int]] = []
    used: list[tuple[Container, str]] = []
    for number, container, count in brief:
        for later, (name, has) in lasting.items():
            if later > number and count > 0:
                used.append((container, name))
                count -= has
        if count > 0:
            rest.append((_name(number, container, resource), count))
            used.append((container, rest[-1][0]))
    own = max(rest, key=lambda request: request[1], default=None)
    names = {name for name, _ in rest}
    mapped = [Mapped(container.name, resource, own[0] if own is not None and name in names else name) for container, name in used]
    return [own] if own is not None else [], mapped


def _count(container: Container, resource: str) -> int:
    requests = (container.resources.requests if container.resources else None) or {}
    return requests[resource].whole if resource in requests else 0


def _name(number: int, container: Container, resource: str) -> str:
    """The name of a request: by the container's position, and the resource's position among those that the container requests."""
    requests = (container.resources.requests if container.resources else None) or {}
    return f"container-{number}-request-{sorted(requests).index(resource)}"


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


def special_key(task: Task) -> str:
    """The key of the claim that serves the pod's extended resources, which has no name before it is written."""
    return f"{SPECIAL}/{task.uid}"


def written_specials(claims: Mapping[str, ResourceClaim]) -> dict[str, str]:
    """The allocated claims for extended resources: from `special_key` to the claim's key."""
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


def reach(picks: Sequence[Pick], node: str) -> NodeSelector | None:
    """The selector of the nodes that can use the devices; None for all nodes. `node` is the node of the pod for which they were chosen."""
    expressions: list[LabelSelectorRequirement] = []
    fields: list[LabelSelectorRequirement] = []
    for pick in picks:
        name, selector = _selection(pick.offered)
        if name is not None or pick.offered.device.binds_to_node:
            return NodeSelector([NodeSelectorTerm(match_fields=[LabelSelectorRequirement("metadata.name", "In", [node])])])
        for term in (selector.node_selector_terms if selector is not None else None) or ():
            expressions += [each for each in term.match_expressions or () if each not in expressions]
            fields += [each for each in term.match_fields or () if each not in fields]
    if not expressions and not fields:
        return None
    return NodeSelector([NodeSelectorTerm(expressions or None, fields or None)])


def _selection(offered: Offered) -> tuple[str | None, NodeSelector | None]:
    """The node name and node selector of a device: its own, or its slice's for all of the slice's devices."""
    source = offered.device if offered.piece.spec.per_device_node_selection else offered.piece.spec
    return source.node_name, source.node_selector
