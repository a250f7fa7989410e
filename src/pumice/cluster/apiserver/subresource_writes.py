"""What a write through a subresource may change: its part of the object, and nothing else.

`kept` makes the object to be written: that part comes from the new state, all else from the stored object, which must not be changed. A
write to the status shares the stored fields, but for the metadata; the others copy them. A write to the object itself changes everything
except the status; of a namespace, it does not change the finalizers in the spec either.
"""

from msgspec.json import encode

from pumice.api import Object, rfc3339
from pumice.api.json_objects import clone
from pumice.cluster.apiserver.scheme.kinds import ServedKind

_PHASE_SINCE = "lastPhaseTransitionTime"
_RESIZED = ("resources", "resizePolicy")


def kept(kind: ServedKind, obj: Object, old: Object, subresource: str, now: float) -> Object:
    """The object to write, made from the new state `obj` and the stored object `old`. `obj` may be changed."""
    match subresource:
        case "status":
            return _with_status(kind, obj, old, now)
        case "approval":
            conditions = (obj.get("status") or {}).get("conditions")
            obj["status"] = clone(old.get("status") or {}) | ({"conditions": conditions} if conditions else {})
            return _with_status(kind, obj, old, now)
        case "" | "scale":
            if kind.has_status:
                _keep_field(obj, old, "status")
            if kind.resource == "services":
                _keep_addresses(obj.setdefault("spec", {}), old["spec"])
            if kind.resource == "namespaces":
                _keep_field(obj.setdefault("spec", {}), old.get("spec") or {}, "finalizers")
            return obj
    changed: Object = clone(old)
    spec, wanted = changed.setdefault("spec", {}), obj.get("spec") or {}
    match subresource:
        case "finalize":
            _keep_field(spec, wanted, "finalizers")
        case "ephemeralcontainers":
            _keep_field(spec, wanted, "ephemeralContainers")
        case "resize":
            _keep_field(spec, wanted, "resources")
            for field in ("containers", "initContainers"):
                named = {container.get("name"): container for container in wanted.get(field) or ()}
                for container in spec.get(field) or ():
                    for part in _RESIZED:
                        _keep_field(container, named.get(container["name"], container), part)
    if "managedFields" in obj["metadata"]:
        changed["metadata"]["managedFields"] = obj["metadata"]["managedFields"]
    return changed


def _with_status(kind: ServedKind, obj: Object, old: Object, now: float) -> Object:
    """The object for a write to the status: only its status is new; of built-in kinds labels, annotations and finalizers, too."""
    obj = old | {"metadata": obj["metadata"], "status": obj.get("status")}
    if obj["status"] is None:
        del obj["status"]
    if kind.custom:
        managed = obj["metadata"].get("managedFields")
        obj["metadata"] = old["metadata"] | ({} if managed is None else {"managedFields": managed})
    else:
        kept = ("ownerReferences", "labels") if kind.resource == "deployments.apps" else ("ownerReferences",)
        for field in kept:
            _keep_field(obj["metadata"], old["metadata"], field)
    if kind.resource == "pods" and (quality := (old.get("status") or {}).get("qosClass")):
        obj.setdefault("status", {}).setdefault("qosClass", quality)
    if kind.resource == "persistentvolumes":
        _note_phase(obj.setdefault("status", {}), old.get("status") or {}, now)
    return obj


def _note_phase(status: Object, before: Object, now: float) -> None:
    """Note since when a volume is in its phase, unless the write states another time."""
    since = before.get(_PHASE_SINCE)
    if status.get(_PHASE_SINCE, since) == since:
        found = since if status.get("phase") == before.get("phase") else rfc3339(now)
        status |= {_PHASE_SINCE: found} if found else {}


def own(obj: Object, kept: Object, old: Object) -> Object:
    """A copy of the object for a write to the status. It shares those fields that are the same in `kept`: nobody changes them before they
    are replaced."""
    own = {key: value if value is kept.get(key) or key == "metadata" else clone(value) for key, value in obj.items()}
    return own | {"metadata": own_metadata(obj["metadata"], old)}


def own_metadata(metadata: Object, old: Object | None) -> Object:
    """A copy of the metadata for a write to the status, which sets some of their fields and changes none inside them."""
    return dict(old["metadata"]) if old is not None and metadata == old["metadata"] else clone(metadata)


def untouched(kind: ServedKind, old: Object | None, obj: Object, subresource: str) -> Object:
    """The stored fields that need no check where the written object has equal ones: for a write to the status, all other fields; of a
    custom object those that are written letter by letter as they were (1 is equal to true, and stored objects suit the schema)."""
    if old is None:
        return {}
    if kind.custom:
        is_same_version = obj.get("apiVersion") == old["apiVersion"]
        return {key: old[key] for key in old.keys() & obj if is_same_version and encode(old[key]) == encode(obj[key])}
    return {key: old[key] for key in old if key != "status"} if subresource == "status" else {}


def _keep_addresses(spec: Object, before: Object) -> None:
    """A Service keeps the addresses that a change of it does not state. Of two statements, `clusterIP` counts."""
    if not before.get("clusterIP") or spec.get("type") == "ExternalName":
        return
    stated = spec.get("clusterIP") or before["clusterIP"]
    if not spec.get("clusterIPs") or (stated != before["clusterIP"] and spec["clusterIPs"] == before["clusterIPs"]):
        spec["clusterIPs"] = [stated, *before["clusterIPs"][1:]]
    spec["clusterIP"] = stated


def _keep_field(obj: Object, old: Object, field: str) -> None:
    if field in old:
        obj[field] = clone(old[field])
    else:
        obj.pop(field, None)
