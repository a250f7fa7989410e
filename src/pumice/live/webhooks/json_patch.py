"""The JSON patch (RFC 6902) that turns one JSON value into another: the answer of a mutating webhook."""

from collections.abc import Iterator
from typing import Any

Operation = dict[str, Any]


def difference(old: Any, new: Any, path: str = "") -> Iterator[Operation]:
    """The operations that turn `old` into `new`, to be applied in order. Lists that changed their length are replaced whole."""
    if old == new and type(old) is type(new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _of_objects(old, new, path)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from difference(before, after, f"{path}/{index}")
    else:
        yield {"op": "replace", "path": path, "value": new}


def _of_objects(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Operation]:
    for key in sorted(old.keys() - new.keys()):
        yield {"op": "remove", "path": _below(path, key)}
    for key in sorted(new):
        if key in old:
            yield from difference(old[key], new[key], _below(path, key))
        else:
            yield {"op": "add", "path": _below(path, key), "value": new[key]}


def _below(path: str, key: str) -> str:
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
