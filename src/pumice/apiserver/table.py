"""Objects as a Table: what `kubectl get` asks for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pumice.api.annotations import DEFAULT_INGRESS_CLASS, DEFAULT_STORAGE_CLASS
from pumice.apiserver.kinds import Column, Kind
from pumice.apiserver.shapes import Object

_NAME = Column("Name", lambda obj, now: obj["metadata"]["name"], format="name", description="Name must be unique within a namespace.")
_IS_DEFAULT = (DEFAULT_STORAGE_CLASS, DEFAULT_INGRESS_CLASS)
_NAME_OF_CLASS = Column("Name", lambda obj, now: _marked(obj["metadata"]), format="name", description=_NAME.description)


def _marked(metadata: Object) -> str:
    """The default among classes says so."""
    notes = metadata.get("annotations") or {}
    return f"{metadata['name']} (default)" if any(notes.get(key) == "true" for key in _IS_DEFAULT) else str(metadata["name"])


def _columns(kind: Kind) -> tuple[Column, ...]:
    if kind.plural == "events" and not kind.custom:
        return kind.columns
    return (_NAME_OF_CLASS if kind.kind in ("StorageClass", "IngressClass") else _NAME, *kind.columns)


def table(kind: Kind, objects: Iterable[Object], now: float, metadata: Object, include: str = "Metadata", headed: bool = True) -> Object:
    """`include` is the part of each object that goes with its row: None, Metadata or Object. Watches need the head only once."""
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
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": definitions if headed else None,
        "rows": [_row(columns, obj, now, include) for obj in objects],
    }


def _row(columns: tuple[Column, ...], obj: Object, now: float, include: str) -> Object:
    row: dict[str, Any] = {"cells": [column.cell(obj, now) for column in columns]}
    if include == "Object":
        row["object"] = obj
    elif include != "None":
        row["object"] = partial(obj)
    return row


def partial(obj: Object) -> Object:
    """An object's metadata alone."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
