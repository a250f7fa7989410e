"""Strategic merge: a merge patch that knows which lists it must merge.

A list with a merge key is merged item by item, as if it were a map. A list of plain values that merges is treated like a set. All other
lists are replaced. Directives: `$patch` (replace, delete, merge), `$retainKeys`, `$setElementOrder/x`, `$deleteFromPrimitiveList/x`.
"""

from collections import deque
from typing import Any

import msgspec

from pumice.api import Object
from pumice.cluster.apiserver.patches.json_patch import PatchError
from pumice.cluster.apiserver.scheme.schema import Shape

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
    is_directed = False
    for key, change in patch.items():
        if key.startswith("$"):
            is_directed = True
        elif change is None:
            result.pop(key, None)
        else:
            result[key] = _merge_value(_child(shape, key), result.get(key), change) if isinstance(change, dict | list) else change
    if is_directed:
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
    known = [(_identity(shape, item), item) for item in items]
    listed = sorted((each for each in known if each[0] in wanted), key=lambda each: wanted[each[0]])
    others = deque(each for each in known if each[0] not in wanted)
    result = []
    for identity, item in listed:
        place = places.get(identity, -1)
        while others and places.get(others[0][0], len(places)) < place:
            result.append(others.popleft()[1])
        result.append(item)
    return [*result, *(item for _, item in others)]


CONTENT_TYPES = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
    "application/apply-patch+json": "apply",
}
