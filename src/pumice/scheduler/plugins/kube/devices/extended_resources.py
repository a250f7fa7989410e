"""Extended resources that device classes serve: what a pod asks for on a node that does not have them itself becomes a claim of devices.

A class serves the resource that it names, and one that is named after it. The claim is of the scheduler's making, one for each pod; it is
written when the pod is bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from pumice.api.devices import DeviceRequest, DeviceRequests, ExactRequest, ResourceClaim, ResourceClaimSpec
from pumice.api.meta import Metadata
from pumice.api.pod import Container, PodSpec
from pumice.scheduler.model.cluster import Cluster

AFTER_CLASS = "deviceclass.resource.kubernetes.io/"
SPECIAL = "<extended-resources>"  #: no name that a claim could have


class Mapped(Struct, frozen=True):
    """Which request of the claim serves a resource of a container."""

    container: str
    resource: str
    request: str


class Served(Struct, frozen=True):
    claim: ResourceClaim
    mappings: tuple[Mapped, ...]


def classes_by_resource(cluster: Cluster) -> dict[str, str]:
    """Resource to the class that serves it: of several the youngest, of equally old ones the first by name."""
    found: dict[str, str] = {}
    by_name = sorted(cluster.of("DeviceClass").items(), reverse=True)
    for name, made in sorted(by_name, key=lambda pair: pair[1].metadata.created):
        if made.spec.extended_resource_name:
            found[made.spec.extended_resource_name] = name
        found[AFTER_CLASS + name] = name
    return found


def claim_for(namespace: str, spec: PodSpec, classes: Mapping[str, str]) -> Served:
    """The claim of a pod's containers on these resources: `classes` by resource."""
    requests: list[DeviceRequest] = []
    mappings: list[Mapped] = []
    for resource in sorted(classes):
        more, mapped = _requests(spec, resource, classes[resource])
        requests += more
        mappings += mapped
    devices = DeviceRequests(requests=sorted(requests, key=lambda request: request.name))
    return Served(ResourceClaim(Metadata(name=SPECIAL, namespace=namespace), ResourceClaimSpec(devices)), tuple(mappings))


def _requests(spec: PodSpec, resource: str, device_class: str) -> tuple[list[DeviceRequest], list[Mapped]]:
    """One for each container that runs on; what initialises before them uses theirs, and one for what that leaves."""
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
    made = [DeviceRequest(name, exactly=ExactRequest(device_class, "ExactCount", count)) for name, count in requests]
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
    """By the container's place, and the resource's among all that it asks for."""
    requests = (container.resources.requests if container.resources else None) or {}
    return f"container-{number}-request-{sorted(requests).index(resource)}"
