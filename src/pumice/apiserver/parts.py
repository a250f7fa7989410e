"""What a write through a subresource may change: its part of the object, and nothing else.

`kept` makes the object that is written: the part from the new state, all else from the stored one, in copies, since what is stored is
nobody's to change. `causes_of` tells what is wrong with the part. A write to the object itself changes all but the status, and of a
namespace not what holds it.
"""

from __future__ import annotations

from pumice.apiserver import pod_updates
from pumice.apiserver.behaviours import behaviour_of
from pumice.apiserver.kinds import Kind
from pumice.apiserver.metadata import clone
from pumice.apiserver.shapes import Object

Causes = list[tuple[str, str]]
_RESIZED = ("resources", "resizePolicy")
_PART_CAUSES = {"resize": pod_updates.resize_causes, "ephemeralcontainers": pod_updates.ephemeral_causes}


def kept(kind: Kind, obj: Object, old: Object, subresource: str) -> Object:
    """The object to write. `obj` is the caller's own and may be changed."""
    match subresource:
        case "status":
            return _with_status(kind, obj, old)
        case "":
            if kind.has_status:
                _keep_field(obj, old, "status")
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


def _with_status(kind: Kind, obj: Object, old: Object) -> Object:
    """The status; of built-in kinds labels, annotations and finalizers too."""
    for field in {*obj, *old} - {"status", "metadata"}:
        _keep_field(obj, old, field)
    if kind.custom:
        managed = obj["metadata"].get("managedFields")
        obj["metadata"] = clone(old["metadata"]) | ({} if managed is None else {"managedFields": managed})
    else:
        _keep_field(obj["metadata"], old["metadata"], "ownerReferences")
    return obj


def causes_of(kind: Kind, obj: Object, old: Object | None, subresource: str) -> Causes:
    causes = _PART_CAUSES.get(subresource, behaviour_of(kind).causes)
    return causes(obj, old)


def _keep_field(obj: Object, old: Object, field: str) -> None:
    if field in old:
        obj[field] = clone(old[field])
    else:
        obj.pop(field, None)
