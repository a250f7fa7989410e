"""A pod's spec: its defaults, and the reasons for which the API server refuses it, as far as they concern scheduling and running."""

import re
from typing import Any

from pumice.api import Object
from pumice.api.quantity import quantity
from pumice.api.quota import pod_totals, written
from pumice.cluster.apiserver.builtin_shapes import shape_of
from pumice.cluster.apiserver.declared_rules import causes, compact, misnamed_object
from pumice.cluster.apiserver.field_rules import Causes, fill, missing, negative, outside, unsupported

_COMPUTE = ("cpu", "memory")
_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}

_DEFAULTS = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "enableServiceLinks": True,
}
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?\Z")
_CHOICES = {"restartPolicy": ("Always", "OnFailure", "Never"), "dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")}
_OF_CONTAINERS = {"imagePullPolicy": ("Always", "IfNotPresent", "Never"), "terminationMessagePolicy": ("FallbackToLogsOnError", "File")}
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def begin(pod: Object) -> None:
    pod["status"] = {"phase": "Pending", "qosClass": ""}
    if (pod.get("spec") or {}).get("schedulingGates"):
        pod["status"]["conditions"] = [dict(_GATED)]


def default_pod(pod: Object) -> None:
    spec = pod.setdefault("spec", {})
    default_spec(spec)
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        _requests_from_limits(container)
    _requests_of_the_whole(spec)
    status = pod.setdefault("status", {})
    if not status.get("qosClass"):
        status["qosClass"] = qos_class(spec)


def default_spec(spec: Object) -> None:
    """Fill in the defaults of a pod's spec, which may be that of a pod template."""
    fill(spec, _DEFAULTS)
    if spec.get("serviceAccountName"):
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    elif spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ()), *spec.get("ephemeralContainers", ())):
        _default_container(container, bool(spec.get("hostNetwork")))
    for volume in spec.get("volumes", ()):
        _default_volume(volume)
    for constraint in spec.get("topologySpreadConstraints", ()):
        fill(constraint, {"nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore"})


def _default_container(container: Object, host_network: bool) -> None:
    image = container.get("image", "")
    if "imagePullPolicy" not in container:
        tag = image.rpartition("/")[2]
        latest = "@" not in tag and (":" not in tag or tag.endswith(":latest"))
        container["imagePullPolicy"] = "Always" if latest else "IfNotPresent"
    fill(container, {"resources": {}, "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"})
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")
        if host_network:
            port.setdefault("hostPort", port.get("containerPort"))
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            _default_probe(container[name])
    for variable in container.get("env", ()):
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference:
            reference.setdefault("apiVersion", "v1")


def _default_probe(probe: Object) -> None:
    fill(probe, {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3})
    if "httpGet" in probe:
        fill(probe["httpGet"], {"path": "/", "scheme": "HTTP"})


def _default_volume(volume: Object) -> None:
    if not set(volume) - {"name"}:
        volume["emptyDir"] = {}
    for source in ("configMap", "secret", "projected", "downwardAPI"):
        if isinstance(volume.get(source), dict):
            volume[source].setdefault("defaultMode", 420)
    if isinstance(volume.get("hostPath"), dict):
        volume["hostPath"].setdefault("type", "")


def _requests_from_limits(container: Object) -> None:
    """Set the requests that are left out to the limits."""
    resources = container["resources"]
    limits = resources.get("limits")
    if limits:
        requests = resources.setdefault("requests", {})
        for name, amount in limits.items():
            requests.setdefault(name, amount)


def _requests_of_the_whole(spec: Object) -> None:
    """Set the pod-level requests that are left out, if there are pod-level limits: to what its containers request, else to the limits."""
    resources = spec.get("resources")
    if not resources:
        return
    limits = {name: amount for name, amount in (resources.get("limits") or {}).items() if name in _COMPUTE or name.startswith("hugepages-")}
    if limits:
        asked, _ = pod_totals({each: spec.get(each) for each in ("containers", "initContainers")})
        resources["requests"] = (
            limits | written({name: asked[name] for name in _COMPUTE if name in asked}) | (resources.get("requests") or {})
        )


def qos_class(spec: Object) -> str:
    containers = [*spec.get("containers", ()), *spec.get("initContainers", ())]
    asked = [container.get("resources", {}) for container in containers]
    if not any(asked):
        return "BestEffort"
    amounts = [_positive(resources.get(kind) or {}) for resources in asked for kind in ("requests", "limits")]
    if not any(amounts):
        return "BestEffort"
    guaranteed = all(
        set(_positive(resources.get("limits") or {})) == set(_COMPUTE)
        and all(
            quantity(resources["limits"][name]).milli
            == quantity((resources.get("requests") or resources["limits"]).get(name, resources["limits"][name])).milli
            for name in _COMPUTE
        )
        for resources in asked
    )
    return "Guaranteed" if guaranteed else "Burstable"


def _positive(amounts: dict[str, Any]) -> dict[str, Any]:
    return {name: amount for name, amount in amounts.items() if name in _COMPUTE and quantity(amount).milli > 0}


def spec_causes(spec: Object, path: str) -> Causes:
    """The causes for refusing the spec of a new pod, or of a pod template."""
    found = [*_choice_causes(spec, _CHOICES, path), *missing(path, spec, "containers")]
    names: set[str] = set()
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field, ())):
            found += _container_causes(container, f"{path}.{field}[{index}]", names)
    found += _toleration_causes(spec, path) + _spread_causes(spec, path) + _volume_causes(spec, path)
    for index, sysctl in enumerate((spec.get("securityContext") or {}).get("sysctls") or ()):
        name = sysctl.get("name") or ""
        if len(name) > 253 or not _SYSCTL.match(name):
            text = f'Invalid value: "{name}": must have at most 253 characters and match regex {_SYSCTL.pattern[:-2]}'
            found.append((f"{path}.securityContext.sysctls[{index}].name", text))
    found += negative(path, spec, "terminationGracePeriodSeconds")
    found += outside(f"{path}.activeDeadlineSeconds", spec.get("activeDeadlineSeconds", 1))
    if "schedulingGroup" in spec:
        name, place = (spec["schedulingGroup"] or {}).get("podGroupName"), f"{path}.schedulingGroup.podGroupName"
        found += [(place, "Invalid value: null: must specify one of: `podGroupName`")] if name is None else []
        found += [(place, f"Invalid value: {compact(name)}: {text}") for text in (misnamed_object(name) if name is not None else ())]
        if spec.get("evictionResponders"):
            found.append((f"{path}.schedulingGroup", "Forbidden: may not be set when evictionResponders is set"))
    if spec.get("schedulingGates") and spec.get("nodeName"):
        found.append((f"{path}.nodeName", "Forbidden: cannot be set until all schedulingGates have been cleared"))
    if "evictionResponders" in spec:
        found += causes(shape_of("core.v1.PodSpec"), spec, None, path, frozenset(), "evictionResponders")
    return found


def _choice_causes(obj: Object, choices: dict[str, tuple[str, ...]], path: str) -> Causes:
    return [cause for field, each in choices.items() for cause in unsupported(f"{path}.{field}", obj.get(field), each)]


def _container_causes(container: Object, path: str, names: set[str]) -> Causes:
    found: Causes = []
    name = container.get("name")
    if not name:
        found.append((f"{path}.name", "Required value"))
    elif not _LABEL.match(name):
        rule = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', at most 63"
        found.append((f"{path}.name", f'Invalid value: "{name}": {rule}'))
    elif name in names:
        found.append((f"{path}.name", f'Duplicate value: "{name}"'))
    names.add(name or "")
    found += missing(path, container, "image") + _choice_causes(container, _OF_CONTAINERS, path)
    for index, port in enumerate(container.get("ports", ())):
        place = f"{path}.ports[{index}]"
        found += outside(f"{place}.containerPort", port.get("containerPort", 0), 65535)
        found += outside(f"{place}.hostPort", port.get("hostPort") or 1, 65535)
        found += _choice_causes(port, {"protocol": _PROTOCOLS}, place)
    for index, variable in enumerate(container.get("env", ())):
        found += missing(f"{path}.env[{index}]", variable, "name")
    return found + resource_causes(container.get("resources") or {}, f"{path}.resources")


def resource_causes(resources: Object, path: str) -> Causes:
    found: Causes = []
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    asked, allowed = ({name: quantity(amount).milli for name, amount in amounts.items()} for amounts in (requests, limits))
    for field, stated, amounts in (("requests", requests, asked), ("limits", limits, allowed)):
        for name, amount in amounts.items():
            if amount < 0:
                found.append((f"{path}.{field}[{name}]", f'Invalid value: "{stated[name]}": must be greater than or equal to 0'))
            elif amount % 1000 and _is_extended(name):
                found.append((f"{path}.{field}[{name}]", f'Invalid value: "{stated[name]}": must be an integer'))
    for name, amount in asked.items():
        limit = allowed.get(name)
        if limit is not None and amount > limit:
            text = f'Invalid value: "{requests[name]}": must be less than or equal to {name} limit of {limits[name]}'
            found.append((f"{path}.requests", text))
        elif amount != limit and _is_extended(name):
            found.append((f"{path}.limits", f"Required value: Limit must be set for non overcommitable resources ({name})"))
    return found


def _is_extended(name: str) -> bool:
    return "/" in name and not name.startswith("kubernetes.io/") and not name.startswith("requests.")


def _toleration_causes(spec: Object, path: str) -> Causes:
    found: Causes = []
    for index, toleration in enumerate(spec.get("tolerations", ())):
        place = f"{path}.tolerations[{index}]"
        operator = toleration.get("operator") or "Equal"
        if operator not in ("Equal", "Exists", "Lt", "Gt"):
            found += unsupported(f"{place}.operator", operator, ("Equal", "Exists"))
        if not toleration.get("key") and operator != "Exists":
            found.append((f"{place}.operator", f'Invalid value: "{operator}": operator must be Exists when `key` is empty'))
        if operator == "Exists" and toleration.get("value"):
            found.append((f"{place}.operator", "Invalid value: \"Exists\": value must be empty when `operator` is 'Exists'"))
        if toleration.get("effect"):
            found += unsupported(f"{place}.effect", toleration["effect"], _EFFECTS)
    return found


def _spread_causes(spec: Object, path: str) -> Causes:
    found: Causes = []
    for index, constraint in enumerate(spec.get("topologySpreadConstraints", ())):
        place = f"{path}.topologySpreadConstraints[{index}]"
        if constraint.get("maxSkew", 0) <= 0:
            found.append((f"{place}.maxSkew", f"Invalid value: {constraint.get('maxSkew', 0)}: must be greater than zero"))
        found += missing(place, constraint, "topologyKey", rule="can not be empty")
        found += unsupported(f"{place}.whenUnsatisfiable", constraint.get("whenUnsatisfiable"), ("DoNotSchedule", "ScheduleAnyway"))
    return found


def _volume_causes(spec: Object, path: str) -> Causes:
    found: Causes = []
    names: set[str] = set()
    for index, volume in enumerate(spec.get("volumes", ())):
        name = volume.get("name")
        if not name or name in names:
            found.append((f"{path}.volumes[{index}].name", f'Duplicate value: "{name}"' if name else "Required value"))
        names.add(name)
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field, ())):
            found += _mount_causes(container, names, f"{path}.{field}[{index}].volumeMounts")
    return found


def _mount_causes(container: Object, names: set[str], path: str) -> Causes:
    found: Causes = []
    paths: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts", ())):
        where = mount.get("mountPath")
        if mount.get("name") not in names:
            found.append((f"{path}[{index}].name", f'Not found: "{mount.get("name")}"'))
        if not where or where in paths:
            found.append((f"{path}[{index}].mountPath", f'Invalid value: "{where}": must be unique' if where else "Required value"))
        paths.add(where)
    return found
