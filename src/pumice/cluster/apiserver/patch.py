"""The four types of patches, distinguished by content type.

The patched object is left alone; the result is a new object. The cost of a JSON patch (RFC 6902), a list of operations, is bounded: the
number of operations and the bytes that they copy, as in Kubernetes, and the items that they shift in long lists.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import msgspec

from pumice.api.json_objects import merged
from pumice.cluster.apiserver import status
from pumice.cluster.apiserver.admission import WriteOptions
from pumice.cluster.apiserver.decoding import refuse_undeclared, shaped
from pumice.cluster.apiserver.kinds import ServedKind
from pumice.cluster.apiserver.metadata import check_head, clone
from pumice.cluster.apiserver.schema import Object, Shape
from pumice.cluster.apiserver.server_side_apply import apply
from pumice.cluster.apiserver.watch import Key

MAX_OPERATIONS = 10_000
COPIED_BYTES = 3 * 1024 * 1024
MOVED_ITEMS = 100_000_000
MAX_DEPTH = 100  #: of the result


class PatchError(ValueError):
    """A patch that is not well-formed, or does not fit the object."""


def json_patch(value: Any, operations: Any) -> Any:
    """The value after a JSON patch (RFC 6902). Raises PatchError."""
    if not isinstance(operations, list) or not all(isinstance(operation, dict) for operation in operations):
        raise PatchError("a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise PatchError(f"a JSON patch may have at most {MAX_OPERATIONS} operations")
    result = clone(value)
    work = _Work()
    for operation in operations:
        result = _apply(result, operation, work)
    if _depth(result) > MAX_DEPTH:
        raise PatchError(f"the patch nests more than {MAX_DEPTH} levels deep")
    return result


class _Work:
    """What the operations of one patch have cost so far."""

    def __init__(self) -> None:
        self._copied = 0
        self._moved = 0

    def copy(self, value: Any) -> Any:
        """A copy of the value. Raises PatchError if all copies together are too large, or if the value nests too deep."""
        text = msgspec.json.encode(value)
        self._copied += len(text)
        if self._copied > COPIED_BYTES:
            raise PatchError(f"the operations of a JSON patch may copy at most {COPIED_BYTES} bytes")
        if text.count(b"{") + text.count(b"[") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
            raise PatchError(f"a value nests more than {MAX_DEPTH} levels deep")
        return msgspec.json.decode(text)

    def make_room(self, items: list[Any]) -> None:
        self._moved += len(items)
        if self._moved > MOVED_ITEMS:
            raise PatchError("the operations of a JSON patch change too long lists too often; replace a list as a whole")


def _depth(value: Any) -> int:
    depth, layer = 0, [value]
    while layer and depth <= MAX_DEPTH:
        layer = [item for one in layer for item in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())]
        depth += 1
    return depth


def _apply(document: Any, operation: dict[str, Any], work: _Work) -> Any:
    path = _pointer(operation, "path")
    match operation.get("op"):
        case "add":
            return _add(document, path, clone(_value(operation)), work)
        case "remove":
            return _remove(document, path, work)
        case "replace":
            _at(document, path)
            return _put(document, path, clone(_value(operation)))
        case "move":
            source = _pointer(operation, "from")
            if path[: len(source)] == source and path != source:
                raise PatchError("a value cannot be moved into itself")
            moved = _at(document, source)
            return _add(_remove(document, source, work), path, moved, work)
        case "copy":
            return _add(document, path, work.copy(_at(document, _pointer(operation, "from"))), work)
        case "test":
            if not _same(_at(document, path), _value(operation)):
                raise PatchError(f"testing value {operation['path']} failed")
            return document
        case other:
            raise PatchError(f'"{other}" is not an operation; write add, remove, replace, move, copy or test')


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise PatchError(f"operation {operation['op']} has no value")
    return operation["value"]


def _pointer(operation: dict[str, Any], field: str) -> list[str]:
    text = operation.get(field)
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise PatchError(f'"{field}" must be a JSON pointer such as "/spec/replicas"')
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _index(items: list[Any], step: str, end: int) -> int:
    if not step.isascii() or not step.isdigit() or len(step) > 9 or (len(step) > 1 and step[0] == "0") or int(step) >= end:
        raise PatchError(f'"{step}" is not an index of a list of {len(items)}')
    return int(step)


def _at(document: Any, path: list[str]) -> Any:
    for step in path:
        if isinstance(document, dict) and step in document:
            document = document[step]
        elif isinstance(document, list):
            document = document[_index(document, step, len(document))]
        else:
            raise PatchError(f'there is nothing at "/{"/".join(path)}"')
    return document


def _add(document: Any, path: list[str], value: Any, work: _Work) -> Any:
    if not path:
        return value
    parent = _at(document, path[:-1])
    if isinstance(parent, list):
        if path[-1] != "-":
            work.make_room(parent)
        parent.insert(len(parent) if path[-1] == "-" else _index(parent, path[-1], len(parent) + 1), value)
    elif isinstance(parent, dict):
        parent[path[-1]] = value
    else:
        raise PatchError(f'"/{"/".join(path[:-1])}" holds no fields')
    return document


def _put(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _at(document, path[:-1])
    parent[int(path[-1]) if isinstance(parent, list) else path[-1]] = value
    return document


def _remove(document: Any, path: list[str], work: _Work) -> Any:
    if not path:
        raise PatchError("the whole document cannot be removed")
    _at(document, path)
    parent = _at(document, path[:-1])
    if isinstance(parent, list):
        work.make_room(parent)
    del parent[int(path[-1]) if isinstance(parent, list) else path[-1]]
    return document


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) is isinstance(other, bool)


# Strategic merge: a merge patch that knows which lists it must merge.
#
# A list with a merge key is merged item by item, as if it were a map. A list of plain values that merges is treated like a set. All other
# lists are replaced. Directives: `$patch` (replace, delete, merge), `$retainKeys`, `$setElementOrder/x`, `$deleteFromPrimitiveList/x`.

_encode = msgspec.json.encode
_ORDER, _DELETE = "$setElementOrder/", "$deleteFromPrimitiveList/"


def strategic_merge(shape: Shape | None, live: Any, patch: Any) -> Object:
    """The object with the patch applied; `live` is left alone. Raises PatchError."""
    if not isinstance(patch, dict):
        raise PatchError("a strategic merge patch is an object")
    return _merge_object(shape, live if isinstance(live, dict) else {}, patch)


def _merge_object(shape: Shape | None, live: Object, patch: Object) -> Object:
    match patch.get("$patch"):
        case "replace":
            return {key: value for key, value in patch.items() if key != "$patch"}
        case "delete":
            return {}
        case "merge" | None:
            pass
        case other:
            raise PatchError(f'"{other}" is not a $patch directive; write replace, delete or merge')
    result = dict(live)
    retained = patch.get("$retainKeys")
    if isinstance(retained, list):
        result = {key: value for key, value in result.items() if key in retained}
    for key, change in patch.items():
        if key.startswith("$"):
            continue
        if change is None:
            result.pop(key, None)
        else:
            result[key] = _merge_value(_child(shape, key), result.get(key), change)
    _apply_list_directives(shape, live, patch, result)
    return result


def _child(shape: Shape | None, key: str) -> Shape | None:
    return shape.child(key) if shape is not None else None


def _merge_value(shape: Shape | None, live: Any, change: Any) -> Any:
    if isinstance(change, dict):
        return _merge_object(shape, live if isinstance(live, dict) else {}, change)
    if isinstance(change, list) and shape is not None and shape.merge:
        return _merge_list(shape, live if isinstance(live, list) else [], change)
    return change


def _merge_list(shape: Shape, live: list[Any], change: list[Any]) -> list[Any]:
    """The merged list. Items of the patch have the order of the patch; the other items of `live` stay before those that they preceded.

    If all items of the patch are new, they come before all items of `live`.
    """
    if not shape.merge_key:
        both = {_identity(shape, item): item for item in (*live, *change)}
        return _ordered(shape, list(both.values()), live, change)
    key = shape.merge_key
    if not all(isinstance(item, dict) for item in (*live, *change)):
        raise PatchError(f"items of a list that merges by {key} must be objects")
    if any(item.get("$patch") == "replace" for item in change):
        return [{name: value for name, value in item.items() if name != "$patch"} for item in change if set(item) != {"$patch"}]
    for item in change:
        if key not in item:
            raise PatchError(f"map: {item} does not contain declared merge key: {key}")
    gone = {_identity(shape, item) for item in change if item.get("$patch") == "delete"}
    result = [item for item in live if _identity(shape, item) not in gone]
    places = _places(shape, result)
    stated = [item for item in change if item.get("$patch") != "delete"]
    for item in stated:
        place = places.setdefault(_identity(shape, item), len(result))
        if place < len(result):
            result[place] = _merge_object(shape.element, result[place], item)
        else:
            result.append(_merge_object(shape.element, {}, item))
    return _ordered(shape, result, live, stated)


def _identity(shape: Shape, item: Any) -> str | bytes:
    """The identity of an item in a list that merges: the value of its merge key, or the item itself in a list of plain values."""
    value = item.get(shape.merge_key) if shape.merge_key and isinstance(item, dict) else item
    return value if isinstance(value, str) else _encode(value)


def _places(shape: Shape, items: list[Any]) -> dict[str | bytes, int]:
    places: dict[str | bytes, int] = {}
    for place, item in enumerate(items):
        places.setdefault(_identity(shape, item), place)
    return places


def _apply_list_directives(shape: Shape | None, live: Object, patch: Object, result: Object) -> None:
    for directive, values in patch.items():
        if directive.startswith(_DELETE):
            field = directive.removeprefix(_DELETE)
            if isinstance(result.get(field), list) and isinstance(values, list):
                gone = {_encode(value) for value in values}
                result[field] = [item for item in result[field] if _encode(item) not in gone]
        elif directive.startswith(_ORDER):
            field = directive.removeprefix(_ORDER)
            child = _child(shape, field)
            if isinstance(result.get(field), list) and isinstance(values, list) and child is not None and child.merge:
                result[field] = _ordered(child, result[field], live.get(field) or [], values)


def _ordered(shape: Shape, items: list[Any], live: list[Any], order: list[Any]) -> list[Any]:
    """The items that `order` lists, in its order; each of the other items stays before the listed items that it preceded in `live`."""
    places, wanted = _places(shape, live), _places(shape, order)
    listed = sorted((item for item in items if _identity(shape, item) in wanted), key=lambda item: wanted[_identity(shape, item)])
    others = deque(item for item in items if _identity(shape, item) not in wanted)
    result = []
    for item in listed:
        place = places.get(_identity(shape, item), -1)
        while others and places.get(_identity(shape, others[0]), len(places)) < place:
            result.append(others.popleft())
        result.append(item)
    return [*result, *others]


CONTENT_TYPES = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
    "application/apply-patch+json": "apply",
}


class PatchRequest(NamedTuple):
    """A patch. `type` is one of json, merge, strategic, apply."""

    type: str
    body: Any


def patched(
    kind: ServedKind, live: Object | None, patch: PatchRequest, key: Key, options: WriteOptions, now: float, subresource: str = ""
) -> Object:
    """The object after the patch. It may share parts with `live`. Raises StatusError."""
    if patch.type == "apply":
        return _applied(kind, live, patch.body, key, options, now, subresource)
    assert live is not None
    return changed(kind, live, patch)


def changed(kind: ServedKind, live: Object, patch: PatchRequest) -> Object:
    """The object after a patch of one of the three types that do not depend on managedFields. Raises StatusError."""
    try:
        if patch.type == "json":
            result = json_patch(live, patch.body)
        elif patch.type == "merge":
            if not isinstance(patch.body, dict):
                raise PatchError("a merge patch is an object")
            result = merged(live, patch.body)
        elif kind.custom:
            raise status.unsupported_media("application/strategic-merge-patch+json")
        else:
            result = strategic_merge(kind.shape, live, patch.body)
    except PatchError as error:
        malformed = patch.type != "json" or not isinstance(patch.body, list)
        raise status.bad_request(str(error)) if malformed else status.StatusError(422, "Invalid", str(error), {}) from None
    if not isinstance(result, dict) or not isinstance(result.get("metadata"), dict):
        raise status.bad_request("the patch leaves no object")
    return result


def _applied(kind: ServedKind, live: Object | None, body: Any, key: Key, options: WriteOptions, now: float, subresource: str) -> Object:
    if not options.manager:
        raise status.invalid("PatchOptions", "meta.k8s.io", "", [("fieldManager", "Required value: is required for apply patch")])
    if not isinstance(body, dict):
        raise status.bad_request("an apply is an object")
    check_head(kind, body, key[0])
    metadata = body["metadata"]
    if metadata.get("managedFields"):
        raise status.bad_request("metadata.managedFields must be nil")
    if metadata.setdefault("name", key[1]) != key[1]:
        raise status.bad_request("the name of the object does not match the name on the URL")
    if options.validation == "Strict":
        refuse_undeclared(kind, body)
    if not kind.custom:
        body = shaped(kind, body, options)
    return apply(kind, live, body, options.manager, options.force, now, subresource)
