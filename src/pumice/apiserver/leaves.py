"""An object as a map from paths to values, in the terms of server-side apply.

A path is a tuple of steps as `fieldsV1` writes them: `f:spec`, `k:{"name":"web"}` for an item of a keyed list, `v:"x"` for one of a set.
A keyed item has a path of its own besides those of its fields: that it exists. Values that merge as one, and empty objects, are leaves.
"""

from __future__ import annotations

import json
from collections.abc import Set
from typing import Any

import msgspec

from pumice.apiserver.shapes import Object, Shape

_ENCODER = msgspec.json.Encoder(order="sorted")
Path = tuple[str, ...]
Leaves = dict[Path, Any]

PRESENT = "."  #: the value of an item's own path
_KEY_DEFAULTS = {"protocol": "TCP"}
_NOT_OWNED = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
)


def leaves(shape: Shape | None, obj: Object) -> Leaves:
    """Of a whole object, without what nobody owns: its type, identity and version."""
    owned = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
    owned["metadata"] = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _NOT_OWNED}
    if not owned["metadata"]:
        del owned["metadata"]
    found: Leaves = {}
    _collect(shape, owned, (), found)
    found.pop((), None)
    return found


def _collect(shape: Shape | None, value: Any, path: Path, found: Leaves) -> None:
    if isinstance(value, dict) and value and not (shape is not None and (shape.atomic or shape.kind == "any")):
        for key, item in value.items():
            _collect(shape.child(key) if shape is not None else None, item, (*path, f"f:{key}"), found)
    elif isinstance(value, list) and shape is not None and (shape.keys or shape.is_set) and not shape.atomic:
        for item in value:
            step = item_step(shape, item)
            found[(*path, step)] = PRESENT
            if isinstance(item, dict) and not shape.is_set:
                for key, inner in item.items():
                    element = shape.element
                    _collect(element.child(key) if element is not None else None, inner, (*path, step, f"f:{key}"), found)
    else:
        found[path] = value


def item_step(shape: Shape, item: Any) -> str:
    """How an item of a keyed list or a set is called in a path."""
    if shape.is_set or not isinstance(item, dict):
        return f"v:{_as_text(item)}"
    keys = {key: item.get(key, _KEY_DEFAULTS.get(key)) for key in shape.keys}
    return f"k:{_as_text({key: value for key, value in keys.items() if value is not None})}"


def _as_text(value: Any) -> str:
    return _ENCODER.encode(value).decode()


def to_fields(paths: Set[Path]) -> Object:
    """Paths as `fieldsV1`."""
    tree: Object = {}
    for path in sorted(paths):
        place = tree
        for step in path:
            place = place.setdefault(step, {})
        if path[-1][:2] == "k:":
            place.setdefault(".", {})
    return tree


def from_fields(fields: Any) -> set[Path]:
    """The paths that a `fieldsV1` names."""
    paths: set[Path] = set()

    def walk(place: Any, path: Path) -> None:
        children = place if isinstance(place, dict) else {}
        if path and (not children or "." in children):
            paths.add(path)
        for step, inner in children.items():
            if step != ".":
                walk(inner, (*path, step))

    walk(fields, ())
    return paths


def shown(path: Path) -> str:
    """`.spec.containers[name="web"].image`, as conflicts are reported."""
    text = ""
    for step in path:
        mark, rest = step[:2], step[2:]
        if mark == "f:":
            text += f".{rest}"
        elif mark == "k:":
            text += "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in json.loads(rest).items()) + "]"
        else:
            text += f"[={rest}]"
    return text
