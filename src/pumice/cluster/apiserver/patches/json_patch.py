"""JSON patches (RFC 6902), bounded in what they may cost."""

from typing import Any

import msgspec

from pumice.api.json_objects import clone

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
        case "replace":  # a field need not be there, as in Kubernetes
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
    if not isinstance(parent, dict):
        _at(document, path)
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
