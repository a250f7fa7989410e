"""The reasons for which the API server refuses a pod's spec, as far as they concern scheduling and running."""

import re
from collections.abc import Callable
from typing import Any

from pumice.api import Object
from pumice.api.quantity import QuantityError, quantity
from pumice.cluster.apiserver.pod_defaults import COMPUTE
from pumice.cluster.apiserver.scheme.builtin_shapes import shape_of
from pumice.cluster.apiserver.validation.declared_rules import causes, internal
from pumice.cluster.apiserver.validation.field_rules import (
    Causes,
    choice_causes,
    compact,
    duplicates,
    forbidden,
    invalid,
    missing,
    outside,
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
_CHOICES = {"restartPolicy": ("Always", "OnFailure", "Never"), "dnsPolicy": ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")}
_OF_CONTAINERS = {"imagePullPolicy": ("Always", "IfNotPresent", "Never"), "terminationMessagePolicy": ("File", "FallbackToLogsOnError")}
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def spec_causes(spec: Object, path: str) -> Causes:
    """The causes for refusing the spec of a new pod, or of a pod template."""
    found = [*choice_causes(path, spec, _CHOICES), *missing(path, spec, "containers")]
    names: set[str] = set()
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field, ())):
            place = f"{path}.{field}[{index}]"
            found += _container_causes(container, place, names, bool(spec.get("hostNetwork")))
            if field == "initContainers" and container.get("restartPolicy") != "Always":
                rule = "Forbidden: may not be set for init containers without restartPolicy=Always"
                found += [(f"{place}.{each}", rule) for each in ("lifecycle", *_PROBES) if each in container]
    found += _toleration_causes(spec, path) + _spread_causes(spec, path) + _volume_causes(spec, path)
    sysctls = [sysctl.get("name") or "" for sysctl in (spec.get("securityContext") or {}).get("sysctls") or ()]
    found += duplicates(sysctls, f"{path}.securityContext.sysctls", ".name")
    for index, name in enumerate(sysctls):
        if len(name) > 253 or not _SYSCTL.match(name):
            text = f'Invalid value: "{name}": must have at most 253 characters and match regex {_SYSCTL.pattern[:-2]}'
            found.append((f"{path}.securityContext.sysctls[{index}].name", text))
        for sharing, prefixes in _SHARED_SYSCTLS.items():
            if spec.get(sharing) and name.startswith(prefixes):
                found.append(
                    invalid(f"{path}.securityContext.sysctls[{index}].name", name, f"may not be specified when '{sharing}' is true")
                )
    found += _host_causes(spec, path) + _claim_causes(spec, path)
    if spec.get("resources"):
        found += resource_causes(spec["resources"], f"{path}.resources", pod_resource_causes)
    found += outside(f"{path}.activeDeadlineSeconds", spec.get("activeDeadlineSeconds", 1))
    if "schedulingGroup" in spec:
        name, place = (spec["schedulingGroup"] or {}).get("podGroupName"), f"{path}.schedulingGroup.podGroupName"
        found += [(place, "Invalid value: null: must specify one of: `podGroupName`")] if name is None else []
        found += named_object("long", name, place) if name is not None else []
        if spec.get("evictionResponders"):
            found.append(forbidden(f"{path}.schedulingGroup", "may not be set when evictionResponders is set"))
    if spec.get("schedulingGates") and spec.get("nodeName"):
        found.append(forbidden(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared"))
    if "evictionResponders" in spec:
        found += causes(shape_of("core.v1.PodSpec"), spec, None, path, frozenset(), "evictionResponders")
    return found


def _host_causes(spec: Object, path: str) -> Causes:
    """The causes for refusing what a pod shares with its host, or has of a kind that it may not have."""
    found: Causes = []
    if spec["dnsPolicy"] == "None" and not spec.get("dnsConfig"):
        found.append(required(f"{path}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None"))
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled"
        found.append((f"{path}.securityContext.shareProcessNamespace", text))
    if spec.get("os"):
        found += unsupported(f"{path}.os", spec["os"].get("name", ""), ("linux", "windows"))
    if spec.get("ephemeralContainers"):
        text = "cannot be set on create" if path == "spec" else "ephemeral containers not allowed in pod template"
        found.append(forbidden(f"{path}.ephemeralContainers", text))
    gates = [each.get("name") or "" for each in spec.get("schedulingGates") or ()]
    for index, gate in enumerate(gates):
        found += named("label", gate, f"{path}.schedulingGates[{index}]")
    return found + duplicates(gates, f"{path}.schedulingGates")


def _claim_causes(spec: Object, path: str) -> Causes:
    """The causes for refusing containers whose claims the pod has not."""
    names = dict.fromkeys(claim.get("name") for claim in spec.get("resourceClaims") or ())
    listed = f"one of: {', '.join(map(str, names))}" if names else "which is empty"
    found: Causes = []
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            claims, place = (container.get("resources") or {}).get("claims"), f"{path}.{field}[{index}].resources.claims"
            if not claims:
                continue
            again = {*repeated((claim.get("name"), claim.get("request")) for claim in claims)}
            for number, name in enumerate(claim.get("name") or "" for claim in claims):
                at = f"{place}[{number}]"
                found += [(at, f"Duplicate value: {compact(name)}")] if number in again else []
                if not name:
                    found.append(required(at))
                elif name not in names:
                    found.append((at, f"Not found: {compact(name)}: must be one of the names in pod.spec.resourceClaims {listed}"))
    return found


def _container_causes(container: Object, path: str, names: set[str], on_host: bool) -> Causes:
    found: Causes = []
    name = container.get("name")
    if not name:
        found.append(required(f"{path}.name"))
    elif faults := named_object("short", name, f"{path}.name"):
        found += faults
    elif name in names:
        found.append((f"{path}.name", f'Duplicate value: "{name}"'))
    names.add(name or "")
    found += missing(path, container, "image") + choice_causes(path, container, _OF_CONTAINERS)
    ports = container.get("ports", ())
    taken, called = set[tuple[str, str, int]](), set[str]()
    for index, port in enumerate(ports):
        place = f"{path}.ports[{index}]"
        found += outside(f"{place}.containerPort", port.get("containerPort", 0), 65535)
        found += outside(f"{place}.hostPort", port.get("hostPort") or 1, 65535)
        found += choice_causes(place, port, {"protocol": _PROTOCOLS})
        if port.get("name"):
            found += [(f"{place}.name", f"Duplicate value: {compact(port['name'])}")] if port["name"] in called else []
            called.add(port["name"])
        if port.get("hostPort"):
            use = port.get("protocol") or "TCP", port.get("hostIP") or "", port["hostPort"]
            found += [(f"{place}.hostPort", f'Duplicate value: "{"/".join(map(str, use))}"')] if use in taken else []
            taken.add(use)
            if on_host and port["hostPort"] != port.get("containerPort"):
                found.append(invalid(f"{place}.hostPort", port["hostPort"], "must match `containerPort` when `hostNetwork` is true"))
    found += _variable_causes(container, path) + _handler_causes(container, path)
    context = container.get("securityContext") or {}
    if context.get("privileged") and context.get("allowPrivilegeEscalation") is False:
        shown = internal(shape_of("core.v1.SecurityContext"), context)
        found.append(invalid(f"{path}.securityContext", shown, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"))
    return found + resource_causes(container.get("resources") or {}, f"{path}.resources")


def _variable_causes(container: Object, path: str) -> Causes:
    found: Causes = []
    for index, variable in enumerate(container.get("env", ())):
        place, source = f"{path}.env[{index}]", variable.get("valueFrom") or {}
        found += missing(place, variable, "name")
        if variable.get("value") and "valueFrom" in variable:
            found.append((f"{place}.valueFrom", 'Invalid value: "": may not be specified when `value` is not empty'))
        field = (source.get("fieldRef") or {}).get("fieldPath")
        if field and not _FIELDS_OF_PODS.match(field):
            found.append(
                invalid(f"{place}.valueFrom.fieldRef.fieldPath", field, f"error converting fieldPath: field label not supported: {field}")
            )
    for index, source in enumerate(container.get("envFrom", ())):
        sources = [name for name in ("configMapRef", "secretRef") if name in source]
        if not sources:
            found.append((f"{path}.envFrom", 'Invalid value: "": must specify one of: `configMapRef` or `secretRef`'))
        for name in sources:
            found += named_object("long", source[name].get("name") or "", f"{path}.envFrom[{index}].{name}.name")
    return found


def _handler_causes(container: Object, path: str) -> Causes:
    """The causes for refusing probes and hooks: each does one thing."""
    found: Causes = []
    hooks = container.get("lifecycle") or {}
    asked = {name: container[name] for name in _PROBES if name in container}
    asked |= {f"lifecycle.{name}": hooks[name] for name in ("postStart", "preStop") if name in hooks}
    for name, each in asked.items():
        handlers = [handler for handler in _HANDLERS if handler in (each or {})]
        if not handlers:
            found.append(required(f"{path}.{name}", "must specify a handler type"))
        found += [forbidden(f"{path}.{name}.{handler}", "may not specify more than 1 handler type") for handler in handlers[1:]]
        if name in ("livenessProbe", "startupProbe") and (each or {}).get("successThreshold", 1) > 1:
            found.append(invalid(f"{path}.{name}.successThreshold", each["successThreshold"], "must be 1"))
        port = ((each or {}).get("tcpSocket") or (each or {}).get("httpGet") or {}).get("port")
        if isinstance(port, int) and handlers:
            found += outside(f"{path}.{name}.{handlers[0]}.port", port, 65535)
    return found


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


def _toleration_causes(spec: Object, path: str) -> Causes:
    found: Causes = []
    for index, toleration in enumerate(spec.get("tolerations", ())):
        place = f"{path}.tolerations[{index}]"
        operator = toleration.get("operator") or "Equal"
        if operator not in ("Equal", "Exists", "Lt", "Gt"):
            found += unsupported(f"{place}.operator", operator, ("Equal", "Exists"))
        if not toleration.get("key") and operator != "Exists":
            rule = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            found.append(invalid(f"{place}.operator", operator, rule))
        if operator == "Exists" and toleration.get("value"):
            found.append((f"{place}.operator", "Invalid value: \"Exists\": value must be empty when `operator` is 'Exists'"))
        if "tolerationSeconds" in toleration and toleration.get("effect") not in (None, "", "NoExecute"):
            found.append(invalid(f"{place}.effect", toleration["effect"], "effect must be 'NoExecute' when `tolerationSeconds` is set"))
        if toleration.get("effect"):
            found += unsupported(f"{place}.effect", toleration["effect"], _EFFECTS)
    return found


def _spread_causes(spec: Object, path: str) -> Causes:
    found: Causes = []
    pairs: dict[tuple[Any, Any], int] = {}
    for index, constraint in enumerate(spec.get("topologySpreadConstraints", ())):
        place = f"{path}.topologySpreadConstraints[{index}]"
        if constraint.get("maxSkew", 0) <= 0:
            found.append((f"{place}.maxSkew", f"Invalid value: {constraint.get('maxSkew', 0)}: must be greater than zero"))
        found += missing(place, constraint, "topologyKey", rule="can not be empty")
        found += unsupported(f"{place}.whenUnsatisfiable", constraint.get("whenUnsatisfiable"), ("DoNotSchedule", "ScheduleAnyway"))
        if "minDomains" in constraint and constraint.get("whenUnsatisfiable") == "ScheduleAnyway":
            rule = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
            found.append(invalid(f"{place}.minDomains", constraint["minDomains"], rule))
        pair = constraint.get("topologyKey"), constraint.get("whenUnsatisfiable")
        if pair in pairs:
            place = f"{path}.topologySpreadConstraints[{pairs[pair]}].{{topologyKey, whenUnsatisfiable}}"
            found.append((place, f'Duplicate value: "{{{pair[0]}, {pair[1]}}}"'))
        pairs.setdefault(pair, index)
    return found


def _volume_causes(spec: Object, path: str) -> Causes:
    found: Causes = []
    names: set[str] = set()
    for index, volume in enumerate(spec.get("volumes", ())):
        name = volume.get("name")
        if not name or name in names:
            found.append((f"{path}.volumes[{index}].name", f'Duplicate value: "{name}"' if name else "Required value"))
        names.add(name)
        sources = [source for source in volume if source != "name"]
        rule = "Forbidden: may not specify more than 1 volume type"
        found += [(f"{path}.volumes[{index}].{source}", rule) for source in sources[1:]]
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field, ())):
            found += _mount_causes(container, names, f"{path}.{field}[{index}].volumeMounts")
    return found


def _mount_causes(container: Object, names: set[str], path: str) -> Causes:
    found: Causes = []
    paths: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts", ())):
        where = mount.get("mountPath")
        if ".." in (mount.get("subPath") or "").split("/"):
            found.append(invalid(f"{path}.subPath", mount["subPath"], "must not contain '..'"))
        if mount.get("name") not in names:
            found.append((f"{path}[{index}].name", f'Not found: "{mount.get("name")}"'))
        if not where or where in paths:
            found.append((f"{path}[{index}].mountPath", f'Invalid value: "{where}": must be unique' if where else "Required value"))
        paths.add(where)
    return found
