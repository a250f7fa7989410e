"""Objects as plain JSON: copying, merging and comparing them. What is given is never changed."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def copied(value: Any) -> Any:
    """A copy of a JSON value that shares nothing that can change."""
    if isinstance(value, dict):
        return {key: copied(inner) for key, inner in value.items()}
    return [copied(inner) for inner in value] if isinstance(value, list) else value


def merged(target: Any, patch: Any) -> Any:
    """What a JSON merge patch (RFC 7386) makes of `target`: objects are merged, null removes, everything else replaces."""
    if not isinstance(patch, dict):
        return copied(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def difference(old: Object, new: Object) -> Object:
    """The smallest JSON merge patch from `old` to `new`; empty if they are equal. Null and absent are the same."""
    found: Object = {}
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            if inner := difference(before, after):
                found[key] = inner
        elif before != after:
            found[key] = copied(after)
    return found
