"""The defaults of a pod and of the spec of a pod template, and what the server says of a new pod: gates that hold it, its QoS class."""

from typing import Any

from pumice.api import Object
from pumice.api.quantity import quantity
from pumice.api.resource_quota import pod_totals, written

COMPUTE = ("cpu", "memory")

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
    spec, status = pod["spec"], pod["status"]
    default_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        _requests_from_limits(container)
        for port in container.get("ports", ()) if spec.get("hostNetwork") else ():
            port.setdefault("hostPort", port.get("containerPort"))
    _requests_of_the_whole(spec)
    if not status.get("qosClass"):
        status["qosClass"] = qos_class(spec)


def default_spec(spec: Object) -> None:
    """Fill in what the spec of a pod or pod template lacks and no table declares, as it follows from other fields."""
    if spec.get("serviceAccountName"):
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    elif spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ()), *spec.get("ephemeralContainers", ())):
        if "imagePullPolicy" not in container:
            tag = container.get("image", "").rpartition("/")[2]
            latest = "@" not in tag and (":" not in tag or tag.endswith(":latest"))
            container["imagePullPolicy"] = "Always" if latest else "IfNotPresent"
    for volume in spec.get("volumes", ()):
        if not volume.keys() - {"name"}:
            volume["emptyDir"] = {}


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
    limits = {name: amount for name, amount in (resources.get("limits") or {}).items() if name in COMPUTE or name.startswith("hugepages-")}
    if limits:
        asked, _ = pod_totals({each: spec.get(each) for each in ("containers", "initContainers")})
        resources["requests"] = (
            limits | written({name: asked[name] for name in COMPUTE if name in asked}) | (resources.get("requests") or {})
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
        set(_positive(resources.get("limits") or {})) == set(COMPUTE)
        and all(
            quantity(resources["limits"][name]).milli
            == quantity((resources.get("requests") or resources["limits"]).get(name, resources["limits"][name])).milli
            for name in COMPUTE
        )
        for resources in asked
    )
    return "Guaranteed" if guaranteed else "Burstable"


def _positive(amounts: dict[str, Any]) -> dict[str, Any]:
    return {name: amount for name, amount in amounts.items() if name in COMPUTE and quantity(amount).milli > 0}
