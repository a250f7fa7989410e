"""What a pod gets when its maker leaves it out, as far as users and schedulers see it."""

from __future__ import annotations

from typing import Any

from pumice.api.quantity import quantity
from pumice.cluster.apiserver.schema import Object

_COMPUTE = ("cpu", "memory")
_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def begin(pod: Object) -> None:
    pod["status"] = {"phase": "Pending", "qosClass": ""}
    if (pod.get("spec") or {}).get("schedulingGates"):
        pod["status"]["conditions"] = [dict(_GATED)]


def default_pod(pod: Object) -> None:
    spec = pod.setdefault("spec", {})
    default_spec(spec)
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        _requests_from_limits(container)
    status = pod.setdefault("status", {})
    if not status.get("qosClass"):
        status["qosClass"] = qos_class(spec)


def default_spec(spec: Object) -> None:
    """A pod's spec, also within the templates of other kinds."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("enableServiceLinks", True)
    if spec.get("serviceAccountName"):
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    elif spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ()), *spec.get("ephemeralContainers", ())):
        _default_container(container, bool(spec.get("hostNetwork")))
    for volume in spec.get("volumes", ()):
        _default_volume(volume)
    for constraint in spec.get("topologySpreadConstraints", ()):
        constraint.setdefault("nodeAffinityPolicy", "Honor")
        constraint.setdefault("nodeTaintsPolicy", "Ignore")


def _default_container(container: Object, host_network: bool) -> None:
    image = container.get("image", "")
    if "imagePullPolicy" not in container:
        tag = image.rpartition("/")[2]
        latest = "@" not in tag and (":" not in tag or tag.endswith(":latest"))
        container["imagePullPolicy"] = "Always" if latest else "IfNotPresent"
    container.setdefault("resources", {})
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
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
    for field, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        probe.setdefault(field, value)
    if "httpGet" in probe:
        probe["httpGet"].setdefault("path", "/")
        probe["httpGet"].setdefault("scheme", "HTTP")


def _default_volume(volume: Object) -> None:
    if not set(volume) - {"name"}:
        volume["emptyDir"] = {}
    for source in ("configMap", "secret", "projected", "downwardAPI"):
        if isinstance(volume.get(source), dict):
            volume[source].setdefault("defaultMode", 420)
    if isinstance(volume.get("hostPath"), dict):
        volume["hostPath"].setdefault("type", "")


def _requests_from_limits(container: Object) -> None:
    """A limit without a request is a request too."""
    resources = container["resources"]
    limits = resources.get("limits")
    if limits:
        requests = resources.setdefault("requests", {})
        for name, amount in limits.items():
            requests.setdefault(name, amount)


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
