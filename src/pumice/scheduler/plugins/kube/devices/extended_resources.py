"""Extended resources that a node does not have itself, but has as devices of a class that serves them, become a claim.

A class serves the resource that it names, and the resource that is named after the class. The scheduler makes such a claim, one for each
pod, and writes it when the pod is bound.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from pumice.api.annotations import EXTENDED_CLAIM
from pumice.api.devices import DeviceRequest, DeviceRequests, ExactRequest, ResourceClaim, ResourceClaimSpec
from pumice.api.meta import Metadata
from pumice.api.pod import Container, PodSpec
from pumice.scheduler.model import Cluster, Task

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


def special_key(task: Task) -> str:
    """The key of the claim that serves the pod's extended resources, which has no name before it is written."""
    return f"{SPECIAL}/{task.uid}"


def written_specials(claims: Mapping[str, ResourceClaim]) -> dict[str, str]:
    """The allocated claims for extended resources: from `special_key` to the claim's key."""
    allocated = [(key, claim.metadata) for key, claim in claims.items() if claim.status.allocation is not None]
    made = [(key, meta) for key, meta in allocated if (meta.annotations or {}).get(EXTENDED_CLAIM) == "true"]
    return {f"{SPECIAL}/{meta.controller.uid}": key for key, meta in made if meta.controller is not None}
