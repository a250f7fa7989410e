"""Kinds that are served in two versions and stored in one of them.

Events are stored as core/v1, and also read and written as events.k8s.io/v1. HorizontalPodAutoscalers are stored as v2, and also read and
written as v1, which has no metric except CPU utilization.
"""

from pumice.api import Object

#: the name of a field in events.k8s.io/v1, and its name in core/v1
_RENAMED = (
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
)


def core_event_path(path: tuple[str, ...]) -> tuple[str, ...]:
    """Where a field of an Event of events.k8s.io/v1 is stored."""
    return (dict(_RENAMED).get(path[0], path[0]), *path[1:])


def to_core_event(event: Object) -> Object:
    names = dict(_RENAMED)
    return {names.get(key, key): value for key, value in event.items()} | {"apiVersion": "v1"}


def from_core_event(event: Object) -> Object:
    """An Event as events.k8s.io/v1. Its readers rely on `eventTime`; an Event that has only older timestamps gets it from these."""
    names = {core: new for new, core in _RENAMED}
    when = event.get("lastTimestamp") or event.get("firstTimestamp") or event["metadata"].get("creationTimestamp")
    instant = {} if when is None or event.get("eventTime") else {"eventTime": f"{when.removesuffix('Z')}.000000Z"}
    return {names.get(key, key): value for key, value in event.items()} | instant | {"apiVersion": "events.k8s.io/v1"}


def to_autoscaler_v2(autoscaler: Object) -> Object:
    spec = dict(autoscaler.get("spec") or {})
    percent = spec.pop("targetCPUUtilizationPercentage", None)
    if percent is not None:
        target = {"type": "Utilization", "averageUtilization": percent}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    status = dict(autoscaler.get("status") or {})
    status.pop("currentCPUUtilizationPercentage", None)
    return autoscaler | {"apiVersion": "autoscaling/v2", "spec": spec, "status": status}


def from_autoscaler_v2(autoscaler: Object) -> Object:
    spec = dict(autoscaler.get("spec") or {})
    for metric in spec.pop("metrics", ()):
        resource = metric.get("resource") or {}
        if resource.get("name") == "cpu" and "averageUtilization" in resource.get("target", {}):
            spec["targetCPUUtilizationPercentage"] = resource["target"]["averageUtilization"]
    return autoscaler | {"apiVersion": "autoscaling/v1", "spec": spec}
