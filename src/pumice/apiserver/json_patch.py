"""RFC 6902 (lists of operations) and RFC 7386 (merge patch). Both leave their input alone and give a new value."""

from __future__ import annotations

import copy
from typing import Any

MAX_OPERATIONS = 10_000


class PatchError(ValueError):
    """A patch that is not well-formed, or does not fit the object."""


def merge_patch(value: Any, patch: Any) -> Any:
    """RFC 7386: objects are merged, null removes, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for key, change in patch.items():
        if change is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), change)
    return result


def json_patch(value: Any, operations: Any) -> Any:
    """RFC 6902. Raises PatchError."""
    if not isinstance(operations, list) or not all(isinstance(operation, dict) for operation in operations):
        raise PatchError("a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise PatchError(f"a JSON patch may have at most {MAX_OPERATIONS} operations")
    result = copy.deepcopy(value)
    for operation in operations:
        result = _apply(result, operation)
    return result


def _apply(document: Any, operation: dict[str, Any]) -> Any:
    path = _pointer(operation, "path")
    match operation.get("op"):
        case "add":
            return _add(document, path, copy.deepcopy(_value(operation)))
        case "remove":
            return _remove(document, path)
        case "replace":
            _at(document, path)
            return _put(document, path, copy.deepcopy(_value(operation)))
        case "move":
            source = _pointer(operation, "from")
            if path[: len(source)] == source and path != source:
                raise PatchError("a value cannot be moved into itself")
            moved = _at(document, source)
            return _add(_remove(document, source), path, moved)
        case "copy":
            return _add(document, path, copy.deepcopy(_at(document, _pointer(operation, "from"))))
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


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _at(document, path[:-1])
    if isinstance(parent, list):
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


def _remove(document: Any, path: list[str]) -> Any:
    if not path:
        raise PatchError("the whole document cannot be removed")
    _at(document, path)
    parent = _at(document, path[:-1])
    del parent[int(path[-1]) if isinstance(parent, list) else path[-1]]
    return document


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) is isinstance(other, bool)
