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
    found: Leaves = {}
    _collect(shape, _owned(obj), (), found)
    found.pop((), None)
    return found


def difference(shape: Shape | None, old: Object, new: Object) -> tuple[set[Path], set[Path]]:
    """The leaves that are new or have another value, and those that are gone. What is equal is not looked into."""
    was: Leaves = {}
    is_now: Leaves = {}
    _compare(shape, _owned(old), _owned(new), (), was, is_now)
    return {path for path, value in is_now.items() if path and (path not in was or was[path] != value)}, was.keys() - is_now.keys() - {()}


def _owned(obj: Object) -> Object:
    owned = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
    owned["metadata"] = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _NOT_OWNED}
    if not owned["metadata"]:
        del owned["metadata"]
    return owned


def has_fields(shape: Shape | None, value: Any) -> bool:
    """Whether it is an object of which each field merges by itself."""
    return isinstance(value, dict) and bool(value) and not (shape is not None and (shape.atomic or shape.kind == "any"))


def has_items(shape: Shape | None, value: Any) -> bool:
    """Whether it is a list of which each item merges by itself."""
    return isinstance(value, list) and shape is not None and bool(shape.keys or shape.is_set) and not shape.atomic


def _collect(shape: Shape | None, value: Any, path: Path, found: Leaves) -> None:
    if has_fields(shape, value):
        for key, item in value.items():
            _collect(shape.child(key) if shape is not None else None, item, (*path, f"f:{key}"), found)
    elif shape is not None and has_items(shape, value):
        for item in value:
            _collect_item(shape, item, (*path, item_step(shape, item)), found)
    else:
        found[path] = value


def _collect_item(shape: Shape, item: Any, path: Path, found: Leaves) -> None:
    found[path] = PRESENT
    if isinstance(item, dict) and not shape.is_set:
        for key, inner in item.items():
            _collect(shape.element.child(key) if shape.element is not None else None, inner, (*path, f"f:{key}"), found)


def _compare(shape: Shape | None, old: Any, new: Any, path: Path, was: Leaves, is_now: Leaves) -> None:
    if old == new:
        return
    if has_fields(shape, old) and has_fields(shape, new):
        for key in old.keys() | new.keys():
            child, inner = shape.child(key) if shape is not None else None, (*path, f"f:{key}")
            if key not in old:
                _collect(child, new[key], inner, is_now)
            elif key not in new:
                _collect(child, old[key], inner, was)
            else:
                _compare(child, old[key], new[key], inner, was, is_now)
    elif shape is not None and has_items(shape, old) and has_items(shape, new):
        _compare_items(shape, old, new, path, was, is_now)
    else:
        _collect(shape, old, path, was)
        _collect(shape, new, path, is_now)


def _compare_items(shape: Shape, old: list[Any], new: list[Any], path: Path, was: Leaves, is_now: Leaves) -> None:
    before, after = ({item_step(shape, item): item for item in items} for items in (old, new))
    for step in before.keys() | after.keys():
        if step not in before or step not in after or before[step] != after[step]:
            for items, found in ((before, was), (after, is_now)):
                if step in items:
                    _collect_item(shape, items[step], (*path, step), found)


def item_step(shape: Shape, item: Any) -> str:
    """How an item of a keyed list or a set is called in a path."""
    if shape.is_set or not isinstance(item, dict):
        return f"v:{_as_text(item)}"
    return f"k:{_as_text({key: value for key in shape.keys if (value := item.get(key, _KEY_DEFAULTS.get(key))) is not None})}"


def _as_text(value: Any) -> str:
    return _ENCODER.encode(value).decode()


def to_fields(paths: Set[Path]) -> Object:
    """Paths as `fieldsV1`."""
    tree: Object = {}
    for path in paths:
        place = tree
        for step in path:
            place = place.setdefault(step, {})
        if path[-1][:2] == "k:":
            place.setdefault(".", {})
    return _in_order(tree)


def _in_order(tree: Object) -> Object:
    return {step: _in_order(tree[step]) if tree[step] else tree[step] for step in sorted(tree)}


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
