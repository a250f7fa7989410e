"""Rules between fields of the spec of a pod or pod template. Rules of single fields are in the tables of types."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pumice.api import Object
from pumice.api.quantity import QuantityError, quantity
from pumice.cluster.apiserver.pod_defaults import COMPUTE
from pumice.cluster.apiserver.scheme.builtin_shapes import shape_of
from pumice.cluster.apiserver.validation.declared_rules import causes, internal
from pumice.cluster.apiserver.validation.field_rules import (
    Cause,
    Causes,
    compact,
    duplicates,
    forbidden,
    invalid,
    repeated,
    required,
    unsupported,
)
from pumice.cluster.apiserver.validation.name_rules import named, named_object
from pumice.cluster.apiserver.validation.resource_rules import (
    HUGE_PAGES,
    amount_causes,
    container_resource_causes,
    may_overcommit,
    pod_resource_causes,
)

_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?\Z")
#: what of a container's kernel is the host's: by the field that says so, the beginnings of names
_SHARED_SYSCTLS = {"hostNetwork": ("net.",), "hostIPC": ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")}
_FIELDS_OF_PODS = re.compile(
    r"metadata\.(name|namespace|uid|(annotations|labels)\['.*'\])|spec\.(nodeName|serviceAccountName)|status\.(hostIPs?|podIPs?)\Z"
)
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def _containers(spec: Object) -> Iterator[tuple[str, Object]]:
    """The containers of a pod, each with its place."""
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield f"{field}[{index}]", container


def _pod(spec: Object) -> Iterator[Cause]:
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
    yield from _spread(spec.get("topologySpreadConstraints") or ())
    yield from duplicates([volume.get("name") or f"#{index}" for index, volume in enumerate(spec.get("volumes") or ())], "volumes", ".name")
    yield from _sysctls(spec)
    yield from _host(spec)
    yield from _claims(spec)
    if spec.get("resources"):
        yield from resource_causes(spec["resources"], "resources", pod_resource_causes)
    if spec.get("schedulingGroup") and spec.get("evictionResponders"):
        yield forbidden("schedulingGroup", "may not be set when evictionResponders is set")
    if spec.get("schedulingGates") and spec.get("nodeName"):
        yield forbidden("nodeName", "cannot be set until all schedulingGates have been cleared")
    if "evictionResponders" in spec:
        yield from causes(shape_of("core.v1.PodSpec"), spec, None, "", frozenset(), "evictionResponders")


def _spread(constraints: Iterable[Object]) -> Iterator[Cause]:
    pairs: dict[tuple[Any, Any], int] = {}
    for index, constraint in enumerate(constraints):
        pair = constraint.get("topologyKey"), constraint.get("whenUnsatisfiable")
        if pair in pairs:
            place = f"topologySpreadConstraints[{pairs[pair]}].{{topologyKey, whenUnsatisfiable}}"
            yield place, f'Duplicate value: "{{{pair[0]}, {pair[1]}}}"'
        pairs.setdefault(pair, index)


def _sysctls(spec: Object) -> Iterator[Cause]:
    names = [sysctl.get("name") or "" for sysctl in (spec.get("securityContext") or {}).get("sysctls") or ()]
    yield from duplicates(names, "securityContext.sysctls", ".name")
    for index, name in enumerate(names):
        for sharing, prefixes in _SHARED_SYSCTLS.items():
            if spec.get(sharing) and name.startswith(prefixes):
                yield invalid(f"securityContext.sysctls[{index}].name", name, f"may not be specified when '{sharing}' is true")


def _host(spec: Object) -> Iterator[Cause]:
    if spec.get("dnsPolicy") == "None" and not spec.get("dnsConfig"):
        yield required("dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        yield invalid("securityContext.shareProcessNamespace", True, "ShareProcessNamespace and HostPID cannot both be enabled")
    yield from duplicates([each.get("name") or "" for each in spec.get("schedulingGates") or ()], "schedulingGates")


def _claims(spec: Object) -> Iterator[Cause]:
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


def _container(container: Object) -> Iterator[Cause]:
    ports = container.get("ports") or ()
    yield from duplicates([port.get("name") or f"#{index}" for index, port in enumerate(ports)], "ports", ".name")
    uses = [(port.get("protocol") or "TCP", port.get("hostIP") or "", port.get("hostPort") or f"#{at}") for at, port in enumerate(ports)]
    yield from duplicates(["/".join(map(str, use)) for use in uses], "ports", ".hostPort")
    for source in container.get("envFrom") or ():
        if "configMapRef" not in source and "secretRef" not in source:
            yield invalid("envFrom", "", "must specify one of: `configMapRef` or `secretRef`")
    for name in ("livenessProbe", "startupProbe"):
        if (most := (container.get(name) or {}).get("successThreshold", 1)) > 1:
            yield invalid(f"{name}.successThreshold", most, "must be 1")
    for mount in container.get("volumeMounts") or ():
        if ".." in (mount.get("subPath") or "").split("/"):
            yield invalid("volumeMounts.subPath", mount["subPath"], "must not contain '..'")
    yield from resource_causes(container.get("resources") or {}, "resources")


def _handler(handler: Object) -> Iterator[Cause]:
    """A probe or a hook does one thing."""
    stated = [name for name in _HANDLERS if name in handler]
    if not stated:
        yield required("", "must specify a handler type")
    yield from (forbidden(name, "may not specify more than 1 handler type") for name in stated[1:])


def _variable(variable: Object) -> Iterator[Cause]:
    if variable.get("value") and "valueFrom" in variable:
        yield invalid("valueFrom", "", "may not be specified when `value` is not empty")
    field = ((variable.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath")
    if field and not _FIELDS_OF_PODS.match(field):
        yield invalid("valueFrom.fieldRef.fieldPath", field, f"error converting fieldPath: field label not supported: {field}")


def _variables(source: Object) -> Iterator[Cause]:
    for name in ("configMapRef", "secretRef"):
        if name in source:
            yield from named_object("long", source[name].get("name") or "", f"{name}.name")


def _context(context: Object) -> Iterator[Cause]:
    if context.get("privileged") and context.get("allowPrivilegeEscalation") is False:
        shown = internal(shape_of("core.v1.SecurityContext"), context)
        yield invalid("", shown, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")


def _toleration(toleration: Object) -> Iterator[Cause]:
    operator, effect = toleration.get("operator") or "Equal", toleration.get("effect")
    if operator not in ("Equal", "Exists", "Lt", "Gt"):
        yield from unsupported("operator", operator, ("Equal", "Exists"))
    if not toleration.get("key") and operator != "Exists":
        yield invalid("operator", operator, 'operator must be Exists when `key` is empty, which means "match all values and all keys"')
    if operator == "Exists" and toleration.get("value"):
        yield invalid("operator", operator, "value must be empty when `operator` is 'Exists'")
    if "tolerationSeconds" in toleration and effect not in (None, "", "NoExecute"):
        yield invalid("effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if effect:
        yield from unsupported("effect", effect, _EFFECTS)


def _constraint(constraint: Object) -> Iterator[Cause]:
    skew, otherwise = constraint.get("maxSkew", 0), constraint.get("whenUnsatisfiable")
    if skew <= 0:
        yield invalid("maxSkew", skew, "must be greater than zero")
    yield from unsupported("whenUnsatisfiable", otherwise, ("DoNotSchedule", "ScheduleAnyway"))
    if "minDomains" in constraint and otherwise == "ScheduleAnyway":
        rule = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
        yield invalid("minDomains", constraint["minDomains"], rule)


def _volume(volume: Object) -> Iterator[Cause]:
    for source in [source for source in volume if source != "name"][1:]:
        yield forbidden(source, "may not specify more than 1 volume type")


def _sysctl(sysctl: Object) -> Iterator[Cause]:
    name = sysctl.get("name") or ""
    if len(name) > 253 or not _SYSCTL.match(name):
        yield invalid("name", name, f"must have at most 253 characters and match regex {_SYSCTL.pattern[:-2]}")


def _group(group: Object) -> Iterator[Cause]:
    if group.get("podGroupName") is None:
        yield invalid("podGroupName", None, "must specify one of: `podGroupName`")


def _term(term: Object) -> Iterator[Cause]:
    for index, requirement in enumerate(term.get("matchFields") or ()):
        if requirement.get("key") != "metadata.name":
            yield invalid(f"matchFields[{index}].key", requirement.get("key", ""), "not a valid field selector key")


def _template(template: Object) -> Iterator[Cause]:
    if template.get("spec", {}).get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


CHECKS: dict[str, Callable[[Object], Iterator[Cause]]] = {
    "Container": _container,
    "EnvFromSource": _variables,
    "EnvVar": _variable,
    "LifecycleHandler": _handler,
    "NodeSelectorTerm": _term,
    "PodOS": lambda os: iter(unsupported("", os.get("name", ""), ("linux", "windows"))),
    "PodSchedulingGate": lambda gate: iter(named("label", gate.get("name") or "", "")),
    "PodSchedulingGroup": _group,
    "PodSpec": _pod,
    "PodTemplateSpec": _template,
    "Probe": _handler,
    "SecurityContext": _context,
    "Sysctl": _sysctl,
    "Taint": lambda taint: iter(unsupported("effect", taint.get("effect", ""), _EFFECTS)),
    "Toleration": _toleration,
    "TopologySpreadConstraint": _constraint,
    "Volume": _volume,
}


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
