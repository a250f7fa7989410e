"""Columns of custom kinds: `additionalPrinterColumns`, whose cells are found by simple JSON paths."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from pumice.api.spans import age
from pumice.apiserver.kinds import Column
from pumice.apiserver.shapes import Object

_STEP = re.compile(r"\.?((?:[^.\[\]\\]|\\.)+)|\[(\*|-?\d+|'[^']*'|\"[^\"]*\"|\?\([^\[\]]*\))\]")
_CONDITION = re.compile(r"\?\(\s*@\.([\w.]+)\s*==\s*['\"]([^'\"]*)['\"]\s*\)")

AGE = Column("Age", lambda obj, now: age(obj["metadata"].get("creationTimestamp"), now), "date", "", "How long ago the object was made.")


def custom_columns(declared: list[Object] | None) -> tuple[Column, ...]:
    """The declared columns, or the age if none are declared. The name is always first and not among them."""
    if not declared:
        return (AGE,)
    return tuple(
        Column(
            one["name"],
            _cell(one["jsonPath"], one["type"]),
            one["type"],
            one.get("format", ""),
            one.get("description", ""),
            one.get("priority", 0),
        )
        for one in declared
    )


def _cell(path: str, type: str) -> Callable[[Object, float], Any]:
    steps = parse_path(path)

    def cell(obj: Object, now: float) -> Any:
        found = follow(steps, obj)
        if not found:
            return None
        if type == "date":
            return age(found[0], now) if isinstance(found[0], str) else "<unknown>"
        if type in ("integer", "number", "boolean"):
            return found[0] if not isinstance(found[0], dict | list) else None
        return ",".join(one if isinstance(one, str) else json.dumps(one, separators=(",", ":")) for one in found)

    return cell


def parse_path(path: str) -> tuple[str, ...]:
    """`.status.conditions[?(@.type=="Ready")].status` as steps; a step in brackets keeps its `[`."""
    return tuple(match[1].replace("\\.", ".") if match[1] else f"[{match[2]}" for match in _STEP.finditer(path.strip("{}")))


def follow(steps: tuple[str, ...], value: Any) -> list[Any]:
    """All values at a path."""
    values = [value]
    for step in steps:
        values = [inner for one in values for inner in _inside(step, one)]
    return [one for one in values if one is not None]


def _inside(step: str, value: Any) -> list[Any]:
    if not step.startswith("["):
        if step == "*":
            return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        return [value[step]] if isinstance(value, dict) and step in value else []
    inner = step[1:]
    if inner[0] in "'\"":
        return [value[inner[1:-1]]] if isinstance(value, dict) and inner[1:-1] in value else []
    if not isinstance(value, list):
        return []
    if inner == "*":
        return value
    condition = _CONDITION.match(inner)
    if condition:
        path = tuple(condition[1].split("."))
        return [item for item in value if follow(path, item)[:1] == [condition[2]]]
    index = int(inner) if inner.lstrip("-").isdigit() else len(value)
    return value[index : index + 1] if index != -1 else value[-1:]
