"""The four kinds of patches, told apart by content type."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import msgspec

from pumice.api.json_objects import merged
from pumice.cluster.apiserver import status
from pumice.cluster.apiserver.admission import WriteOptions
from pumice.cluster.apiserver.decoding import shaped
from pumice.cluster.apiserver.json_patch import PatchError, json_patch
from pumice.cluster.apiserver.kinds import ServedKind
from pumice.cluster.apiserver.metadata import check_head
from pumice.cluster.apiserver.schema import Object, Shape
from pumice.cluster.apiserver.server_side_apply import apply
from pumice.cluster.apiserver.watch import Key

# Strategic merge: a merge patch that knows which lists are maps in disguise.
#
# A list with a merge key is merged item by item, one of plain values like a set; all others are replaced. Directives: `$patch` (replace,
# delete, merge), `$retainKeys`, `$setElementOrder/x`, `$deleteFromPrimitiveList/x`.

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
    """Items of the change in their order, before the others that stand after them; what is new therefore comes first."""
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
    """By what an item of a list that merges is known."""
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
    """Listed items in the order given; the others stay before whatever they stood before."""
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
    """`type` is one of json, merge, strategic, apply."""

    type: str
    body: Any


def patched(
    kind: ServedKind, live: Object | None, patch: PatchRequest, key: Key, options: WriteOptions, now: float, subresource: str = ""
) -> Object:
    """The object as the patch would have it. It may share parts with `live`. Raises StatusError."""
    if patch.type == "apply":
        return _applied(kind, live, patch.body, key, options, now, subresource)
    assert live is not None
    return changed(kind, live, patch)


def changed(kind: ServedKind, live: Object, patch: PatchRequest) -> Object:
    """One of the three patches that need no memory. Raises StatusError."""
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
    if not kind.custom:
        body = shaped(kind, body, options)
    return apply(kind, live, body, options.manager, options.force, now, subresource)
