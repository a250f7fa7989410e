"""Strategic merge: a merge patch that knows which lists are maps in disguise.

A list with a merge key is merged item by item, one of plain values like a set; all others are replaced. Directives: `$patch` (replace,
delete, merge), `$retainKeys`, `$setElementOrder/x`, `$deleteFromPrimitiveList/x`.
"""

from __future__ import annotations

from typing import Any

from pumice.apiserver.json_patch import PatchError
from pumice.apiserver.shapes import Object, Shape

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
    if not shape.merge_key:
        return live + [item for item in change if item not in live]
    key = shape.merge_key
    if not all(isinstance(item, dict) for item in (*live, *change)):
        raise PatchError(f"items of a list that merges by {key} must be objects")
    if any(item.get("$patch") == "replace" for item in change):
        return [{name: value for name, value in item.items() if name != "$patch"} for item in change if set(item) != {"$patch"}]
    result = list(live)
    for item in change:
        if key not in item:
            raise PatchError(f"map: {item} does not contain declared merge key: {key}")
        places = [index for index, other in enumerate(result) if other.get(key) == item[key]]
        if item.get("$patch") == "delete":
            result = [other for other in result if other.get(key) != item[key]]
        elif places:
            result[places[0]] = _merge_object(shape.element, result[places[0]], item)
        else:
            result.append(_merge_object(shape.element, {}, item))
    return result


def _apply_list_directives(shape: Shape | None, live: Object, patch: Object, result: Object) -> None:
    for directive, values in patch.items():
        if directive.startswith(_DELETE):
            field = directive.removeprefix(_DELETE)
            if isinstance(result.get(field), list) and isinstance(values, list):
                result[field] = [item for item in result[field] if item not in values]
        elif directive.startswith(_ORDER):
            field = directive.removeprefix(_ORDER)
            child = _child(shape, field)
            if isinstance(result.get(field), list) and isinstance(values, list) and child is not None and child.merge:
                result[field] = _ordered(child, result[field], live.get(field) or [], values)


def _ordered(shape: Shape, items: list[Any], live: list[Any], order: list[Any]) -> list[Any]:
    """Listed items in the order given; the others stay before whatever they stood before."""

    def identity(item: Any) -> Any:
        return item.get(shape.merge_key) if shape.merge_key and isinstance(item, dict) else item

    places = [identity(item) for item in live]
    wanted = [identity(item) for item in order]
    listed = sorted((item for item in items if identity(item) in wanted), key=lambda item: wanted.index(identity(item)))
    others = [item for item in items if identity(item) not in wanted]
    result = []
    for item in listed:
        if identity(item) in places:
            place = places.index(identity(item))
            while others and identity(others[0]) in places and places.index(identity(others[0])) < place:
                result.append(others.pop(0))
        result.append(item)
    return result + others
