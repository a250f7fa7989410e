"""Kinds that are served in two forms over one store.

Events are kept as core/v1 and also read and written as events.k8s.io/v1; autoscalers are kept as v2 and also spoken to in v1, which
knows no metric but the use of processors.
"""

from __future__ import annotations

from pumice.cluster.apiserver.schema import Object

#: field in events.k8s.io/v1, field in core/v1
_RENAMED = (
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
)


def to_core_event(event: Object) -> Object:
    names = dict(_RENAMED)
    return {names.get(key, key): value for key, value in event.items()} | {"apiVersion": "v1"}


def from_core_event(event: Object) -> Object:
    """Readers of this form rely on its one instant; events of the older form have theirs elsewhere."""
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
