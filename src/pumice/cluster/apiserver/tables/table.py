"""Objects as a Table, which is what `kubectl get` requests."""

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from pumice.api import Object
from pumice.api.annotations import DEFAULT_INGRESS_CLASS, DEFAULT_STORAGE_CLASS
from pumice.api.times import age
from pumice.cluster.apiserver.scheme.kinds import Column, ServedKind

_NAME = Column("Name", lambda obj, now: obj["metadata"]["name"], format="name", description="Name must be unique within a namespace.")
_IS_DEFAULT = (DEFAULT_STORAGE_CLASS, DEFAULT_INGRESS_CLASS)
_NAME_OF_CLASS = Column("Name", lambda obj, now: _marked(obj["metadata"]), format="name", description=_NAME.description)


def _marked(metadata: Object) -> str:
    """The name of a class, marked if it is the default class."""
    notes = metadata.get("annotations") or {}
    return f"{metadata['name']} (default)" if any(notes.get(key) == "true" for key in _IS_DEFAULT) else str(metadata["name"])


def _columns(kind: ServedKind) -> tuple[Column, ...]:
    if kind.plural == "events" and not kind.custom:
        return kind.columns
    return (_NAME_OF_CLASS if kind.kind in ("StorageClass", "IngressClass") else _NAME, *kind.columns)


def table(
    kind: ServedKind,
    objects: Iterable[Object],
    now: float,
    metadata: Object,
    include: str = "Metadata",
    api_version: str = "meta.k8s.io/v1",
    headed: bool = True,
) -> Object:
    """A Table of objects in this version. `include` is the part of each object that its row contains: None, Metadata or Object.

    Without `headed` the column definitions are left out: a watch needs them only once.
    """
    columns = _columns(kind)
    definitions = [
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description or column.name,
            "priority": column.priority,
        }
        for column in columns
    ]
    return {
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": metadata,
        "columnDefinitions": definitions if headed else None,
        "rows": [_row(columns, obj, now, include, api_version) for obj in objects],
    }


def _row(columns: tuple[Column, ...], obj: Object, now: float, include: str, api_version: str) -> Object:
    row: dict[str, Any] = {"cells": [column.cell(obj, now) for column in columns]}
    if include == "Object":
        row["object"] = obj
    elif include != "None":
        row["object"] = partial(obj, api_version)
    return row


def partial(obj: Object, api_version: str) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": obj["metadata"]}


_STEP = re.compile(r"\.?((?:[^.\[\]\\]|\\.)+)|\[(\*|-?\d+|'[^']*'|\"[^\"]*\"|\?\([^\[\]]*\))\]")
_CONDITION = re.compile(r"\?\(\s*@\.([\w.]+)\s*==\s*['\"]([^'\"]*)['\"]\s*\)")

AGE = Column("Age", lambda obj, now: age(obj["metadata"].get("creationTimestamp"), now), "date", "", "How long ago the object was made.")


def custom_columns(declared: list[Object] | None) -> tuple[Column, ...]:
    """The declared columns, or the age if none are declared. The column of the name, which always comes first, is not among them."""
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
    """The steps of a JSON path such as `.status.conditions[?(@.type=="Ready")].status`. A step in brackets keeps its `[`."""
    return tuple(match[1].replace("\\.", ".") if match[1] else f"[{match[2]}" for match in _STEP.finditer(path.strip("{}")))


def follow(steps: tuple[str, ...], value: Any) -> list[Any]:
    """All values at a path, without those that are None."""
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
