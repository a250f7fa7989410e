"""The scale subresource: a small object that shows the replica fields of another object."""

from typing import Any

from pumice.api import Object
from pumice.api.json_objects import clone
from pumice.api.selectors import selector_text
from pumice.cluster.apiserver import status
from pumice.cluster.apiserver.admission.attributes import WriteOptions
from pumice.cluster.apiserver.metadata import check_version
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.store import Store


def _at_path(obj: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        obj = obj.get(key) if isinstance(obj, dict) else None
    return obj


def scale_of(kind: ServedKind, obj: Object) -> Object:
    if kind.scale is None:
        raise status.no_such_path()
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    scale: Object = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: obj["metadata"][key] for key in kept if key in obj["metadata"]},
        "spec": {"replicas": _at_path(obj, kind.scale.spec_replicas) or 0},
        "status": {"replicas": _at_path(obj, kind.scale.status_replicas) or 0},
    }
    selector = _at_path(obj, kind.scale.selector) if kind.scale.selector else None
    if selector:
        scale["status"]["selector"] = selector if isinstance(selector, str) else selector_text(selector)
    return scale


def rescale(store: Store, kind: ServedKind, old: Object, scale: Object, options: WriteOptions) -> Object:
    """Write the replicas of a Scale to the object that it stands for. Returns the new Scale. Raises StatusError."""
    assert kind.scale is not None
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if type(replicas) is not int or replicas < 0:
        raise kind.invalid(old["metadata"]["name"], [("spec.replicas", f"Invalid value: {replicas}: must be greater than or equal to 0")])
    check_version(kind, old["metadata"]["name"], scale.get("metadata") or {}, old)
    obj = clone(old)
    *parents, last = kind.scale.spec_replicas
    place = obj
    for step in parents:
        place = place.setdefault(step, {})
    place[last] = replicas
    metadata = old["metadata"]
    key = (metadata.get("namespace", ""), metadata["name"])
    return scale_of(kind, store.replace(kind, key, old, obj, "scale", options))
