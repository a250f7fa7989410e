"""What is wrong with containers of a pod or pod template beside each other, and with their claims, resources and mounts."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pumice.api import Object
from pumice.api.quantity import QuantityError, quantity
from pumice.cluster.apiserver.pod_defaults import COMPUTE
from pumice.cluster.apiserver.scheme.builtin_shapes import shape_of
from pumice.cluster.apiserver.validation.declared_rules import causes
from pumice.cluster.apiserver.validation.field_rules import (
    Cause,
    Causes,
    compact,
    forbidden,
    invalid,
    repeated,
    required,
)
from pumice.cluster.apiserver.validation.resource_rules import (
    HUGE_PAGES,
    amount_causes,
    container_resource_causes,
    may_overcommit,
)

SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
#: what of a container's kernel is the host's: by the field that says so, the beginnings of names
SHARED_SYSCTLS = (("hostNetwork", ("net.",)), ("hostIPC", ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")))
FIELDS_OF_PODS = re.compile(
    r"metadata\.(name|namespace|uid|(annotations|labels)\['.*'\])|spec\.(nodeName|serviceAccountName)|status\.(hostIPs?|podIPs?)\Z"
)
HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def _containers(spec: Object) -> Iterator[tuple[str, Object]]:
    """The containers of a pod, each with its place."""
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield f"{field}[{index}]", container


def container_causes(spec: Object) -> Iterator[Cause]:
    """What is wrong with containers of a pod beside each other."""
    names = set[str]()
    for place, container in _containers(spec):
        if container.get("name") in names:
            yield f"{place}.name", f"Duplicate value: {compact(container['name'])}"
        names.add(container.get("name") or "")
        if place.startswith("init") and container.get("restartPolicy") != "Always":
            rule = "may not be set for init containers without restartPolicy=Always"
            yield from (forbidden(f"{place}.{each}", rule) for each in ("lifecycle", *_PROBES) if each in container)
        for index, port in enumerate(container.get("ports") or () if spec.get("hostNetwork") else ()):
            if port.get("hostPort") and port["hostPort"] != port.get("containerPort"):
                rule = "must match `containerPort` when `hostNetwork` is true"
                yield invalid(f"{place}.ports[{index}].hostPort", port["hostPort"], rule)


def responder_causes(spec: Object) -> Causes:
    return causes(shape_of("core.v1.PodSpec"), spec, None, "", frozenset(), "evictionResponders")


def claim_causes(spec: Object) -> Iterator[Cause]:
    """What is wrong with the claims that containers use: the pod has not got them, or they are named twice."""
    names = dict.fromkeys(claim.get("name") for claim in spec.get("resourceClaims") or ())
    listed = f"one of: {', '.join(map(str, names))}" if names else "which is empty"
    for place, container in _containers(spec):
        claims = (container.get("resources") or {}).get("claims") or ()
        again = {*repeated((claim.get("name"), claim.get("request")) for claim in claims)}
        for number, name in enumerate(claim.get("name") or "" for claim in claims):
            at = f"{place}.resources.claims[{number}]"
            if number in again:
                yield at, f"Duplicate value: {compact(name)}"
            if not name:
                yield required(at)
            elif name not in names:
                yield at, f"Not found: {compact(name)}: must be one of the names in pod.spec.resourceClaims {listed}"


def resource_causes(resources: Object, path: str, names: Callable[[str, str], Causes] = container_resource_causes) -> Causes:
    """The causes for refusing requests and limits. `names` has those for refusing the name of a resource."""
    found: Causes = []
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for field, stated in (("limits", limits), ("requests", requests)):
        for name, amount in stated.items():
            place = f"{path}.{field}[{name}]"
            found += names(name, place) + amount_causes(name, amount, place)
            if name.startswith(HUGE_PAGES) and _is_broken(amount, name.removeprefix(HUGE_PAGES)):
                found.append(invalid(place, str(amount), f"{amount} is not positive integer multiple of {name}"))
    for name, amount in requests.items():
        limit = limits.get(name)
        if limit is None:
            if not may_overcommit(name):
                found.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
            continue
        above = quantity(amount).milli - quantity(limit).milli
        if above > 0 or (above and not may_overcommit(name)):
            relation = "less than or equal to" if may_overcommit(name) else "equal to"
            found.append(invalid(f"{path}.requests", str(amount), f"must be {relation} {name} limit of {limit}"))
    asked = {*requests, *limits}
    if any(name.startswith(HUGE_PAGES) for name in asked) and not asked & {*COMPUTE}:
        found.append(forbidden(path, "HugePages require cpu or memory"))
    return found


def _is_broken(amount: Any, page: str) -> bool:
    """Whether an amount is none of whole pages."""
    try:
        return quantity(amount).milli % quantity(page).milli != 0
    except (QuantityError, ZeroDivisionError):
        return True


def mount_causes(spec: Object, place: str, claims: Iterable[str | None] = ()) -> Causes:
    """The causes for refusing the mounts of a pod's containers: a volume that neither the pod nor one of the `claims` of its set brings, no
    path, or one that another mount has."""
    names = {*claims, *(volume.get("name") for volume in spec.get("volumes") or ())}
    found: Causes = []
    for where, container in _containers(spec):
        paths = set[str]()
        for index, mount in enumerate(container.get("volumeMounts") or ()):
            at, path = f"{place}.{where}.volumeMounts[{index}]", mount.get("mountPath") or ""
            if mount.get("name") not in names:
                found.append((f"{at}.name", f"Not found: {compact(mount.get('name'))}"))
            if not path:
                found.append(required(f"{at}.mountPath"))
            elif path in paths:
                found.append(invalid(f"{at}.mountPath", path, "must be unique"))
            paths.add(path)
    return found
