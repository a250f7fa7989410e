"""An object as a map from paths to values, in the terms of server-side apply.

A path is a tuple of steps as `fieldsV1` writes them: `f:spec`, `k:{"name":"web"}` for an item of a keyed list, `v:"x"` for one of a set.
An item of a keyed list has a path of its own besides the paths of its fields: it says that the item exists. A value that merges as a
whole is a leaf, and so is an empty object.
"""

import json
from collections.abc import Set
from functools import lru_cache
from typing import Any

import msgspec

from pumice.api import Object
from pumice.api.json_objects import same
from pumice.cluster.apiserver.scheme.schema import Shape

_ENCODER = msgspec.json.Encoder(order="sorted")
Path = tuple[str, ...]
Leaves = dict[Path, Any]

PRESENT = "."  #: the value of an item's own path
_KEY_DEFAULTS = {"protocol": "TCP"}
_LONGEST_KEPT = 256  #: characters of a name whose step is kept
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


def leaves(shape: Shape | None, obj: Object, doubled: list[Path] | None = None) -> Leaves:
    """The leaves of a whole object, without the fields that no manager owns: its type, identity and version. The paths of items whose key
    occurs twice are added to `doubled`."""
    found: Leaves = {}
    _collect(shape, owned_part(obj), (), found, doubled)
    found.pop((), None)
    return found


def difference(shape: Shape | None, old: Object, new: Object) -> tuple[set[Path], set[Path]]:
    """The paths of leaves that are new or have another value, and the paths of leaves that are gone. Equal parts are not walked."""
    was: Leaves = {}
    is_now: Leaves = {}
    _compare(shape, owned_part(old), owned_part(new), (), was, is_now)
    changed = {path for path, value in is_now.items() if path and (path not in was or not same(was[path], value))}
    return changed, was.keys() - is_now.keys() - {()}


def owned_part(obj: Object) -> Object:
    owned = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
    owned["metadata"] = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _NOT_OWNED}
    if not owned["metadata"]:
        del owned["metadata"]
    return owned


def has_fields(shape: Shape | None, value: Any) -> bool:
    """Whether the value is an object, not empty, each field of which merges by itself."""
    return isinstance(value, dict) and bool(value) and not (shape is not None and (shape.atomic or shape.kind == "any"))


def has_items(shape: Shape | None, value: Any) -> bool:
    """Whether the value is a list each item of which merges by itself."""
    return isinstance(value, list) and shape is not None and bool(shape.keys or shape.is_set) and not shape.atomic


def _collect(shape: Shape | None, value: Any, path: Path, found: Leaves, doubled: list[Path] | None = None) -> None:
    if has_fields(shape, value):
        for key, item in value.items():
            _collect(shape.child(key) if shape is not None else None, item, (*path, f"f:{key}"), found, doubled)
    elif shape is not None and has_items(shape, value):
        for item in value:
            place = (*path, item_step(shape, item))
            if doubled is not None and place in found:
                doubled.append(place)
            _collect_item(shape, item, place, found, doubled)
    else:
        found[path] = value


def _collect_item(shape: Shape, item: Any, path: Path, found: Leaves, doubled: list[Path] | None = None) -> None:
    if shape.is_set or not has_fields(shape.element, item):
        found[path] = item
        return
    found[path] = PRESENT
    for key, inner in item.items():
        _collect(shape.element.child(key) if shape.element is not None else None, inner, (*path, f"f:{key}"), found, doubled)


def _compare(shape: Shape | None, old: Any, new: Any, path: Path, was: Leaves, is_now: Leaves) -> None:
    if same(old, new):
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
        if step not in before or step not in after or not same(before[step], after[step]):
            for items, found in ((before, was), (after, is_now)):
                if step in items:
                    _collect_item(shape, items[step], (*path, step), found)


def item_step(shape: Shape, item: Any) -> str:
    """The step of a path that stands for an item of a keyed list or of a set."""
    if shape.is_set or not isinstance(item, dict):
        return f"v:{_as_text(item)}"
    if len(shape.keys) == 1 and type(value := item.get(shape.keys[0])) is str and len(value) <= _LONGEST_KEPT:
        return _keyed_step(shape.keys[0], value)
    keys = {key: value for key in shape.keys if (value := item.get(key, _KEY_DEFAULTS.get(key))) is not None}
    return f"k:{_as_text(keys)}"


@lru_cache(maxsize=16384)
def _keyed_step(key: str, value: str) -> str:
    return f"k:{_as_text({key: value})}"


def _as_text(value: Any) -> str:
    return _ENCODER.encode(value).decode()


def to_fields(paths: Set[Path]) -> Object:
    """The paths in the form of `fieldsV1`."""
    tree: Object = {}
    places = []
    for path in paths:
        place = tree
        for step in path:
            place = place.setdefault(step, {})
        places.append(place)
    for place in places:
        if place:
            place["."] = {}
    return _in_order(tree)


def _in_order(tree: Object) -> Object:
    return {step: _in_order(tree[step]) if tree[step] else tree[step] for step in sorted(tree)}


def from_fields(fields: Any) -> set[Path]:
    """The paths that a `fieldsV1` names."""
    paths: set[Path] = set()
    _walk(fields, (), paths)
    return paths


def _walk(place: Any, path: Path, paths: set[Path]) -> None:
    children = place if isinstance(place, dict) else {}
    if path and (not children or "." in children):
        paths.add(path)
    for step, inner in children.items():
        if step != ".":
            _walk(inner, (*path, step), paths)


def shown(path: Path) -> str:
    """The path as conflicts report it, such as `.spec.containers[name="web"].image`."""
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
