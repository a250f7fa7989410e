"""Events have two forms over one store: core/v1, as kept, and events.k8s.io/v1, as newer clients write and read them."""

from __future__ import annotations

from pumice.apiserver.shapes import Object

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
    names = {core: new for new, core in _RENAMED}
    return {names.get(key, key): value for key, value in event.items()} | {"apiVersion": "events.k8s.io/v1"}
