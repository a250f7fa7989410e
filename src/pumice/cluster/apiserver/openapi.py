"""OpenAPI v3: an index, and one document a group version, with schemas made from the tables of types and from CRDs. And v2, made of it.

kubectl reads them before it creates or applies (does PATCH know `fieldValidation`? then the server validates) and for `explain`.
"""

from __future__ import annotations

import gzip
import zlib
from functools import cache
from importlib.resources import files

import msgspec

from pumice.cluster.apiserver import openapi_v2
from pumice.cluster.apiserver.kinds import Kind, KindTable
from pumice.cluster.apiserver.openapi_paths import COMMON_SCHEMAS, gvk, list_schema, paths_of
from pumice.cluster.apiserver.schema import Object, Shape, object_shape, shape_of
from pumice.http.messages import JSON, Request, Response

_METADATA = "meta.v1.ObjectMeta"
_SCALARS: dict[str, Object] = {
    "string": {"type": "string"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "number": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
    "Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "IntOrString": {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
    "Time": {"type": "string", "format": "date-time"},
    "MicroTime": {"type": "string", "format": "date-time"},
    "any": {"x-kubernetes-preserve-unknown-fields": True},
}


class OpenApi:
    """Documents are made when asked for, and kept until the table of kinds changes."""

    def __init__(self, kinds: KindTable) -> None:
        self._kinds = kinds
        self._documents: dict[str, bytes] = {}
        self._revision = -1

    def respond(self, request: Request) -> Response | None:
        if request.path != "/openapi/v2" and not request.path.startswith("/openapi/v3"):
            return None
        if self._revision != self._kinds.revision:
            self._documents.clear()
            self._revision = self._kinds.revision
        if request.path == "/openapi/v2":
            return self._in_version_2(request)
        name = request.path.removeprefix("/openapi/v3").strip("/")
        if not name:
            return Response.json({"paths": self._index()})
        kinds = self._of_path(name)
        if not kinds:
            return None
        if name not in self._documents:
            self._documents[name] = msgspec.json.encode(document(kinds))
        return Response(self._documents[name])

    def _of_path(self, name: str) -> list[Kind]:
        group, _, version = name.removeprefix("apis/").removeprefix("api/").rpartition("/")
        kinds = [kind for kind in self._kinds if (kind.group, kind.version) == (group, version)]
        return kinds if kinds and name == _path(kinds[0]) else []

    def _in_version_2(self, request: Request) -> Response:
        """In protobuf or JSON, zipped for those who can unzip it: kubectl asks for all of it whenever it needs any."""
        content_type = openapi_v2.ANSWERED if openapi_v2.PROTOBUF in request.headers.get("accept", "") else JSON
        zipped = "gzip" in request.headers.get("accept-encoding", "")
        name = f"v2 {content_type} {zipped}"
        if name not in self._documents:
            whole = openapi_v2.document(document(self._of_path(path)) for path in sorted({_path(kind) for kind in self._kinds}))
            data = openapi_v2.encode(whole) if content_type != JSON else msgspec.json.encode(whole)
            self._documents[name] = gzip.compress(data, 5, mtime=0) if zipped else data
        headers = (("Content-Encoding", "gzip"), ("Vary", "Accept, Accept-Encoding")) if zipped else (("Vary", "Accept, Accept-Encoding"),)
        return Response(self._documents[name], 200, content_type, headers)

    def _index(self) -> Object:
        paths = sorted({_path(kind) for kind in self._kinds})
        mark = zlib.crc32(repr([(kind.resource, kind.version) for kind in self._kinds]).encode()) + self._revision
        return {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={mark:X}"} for path in paths}


@cache
def descriptions() -> dict[str, str]:
    """By type, or type and field: few, since kubectl reads a whole document for each object that it applies."""
    lines = (files(__package__) / "descriptions.txt").read_text().splitlines()[2:]
    return dict(line.split(": ", 1) for line in lines)


def _path(kind: Kind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def document(kinds: list[Kind]) -> Object:
    """Of one group version."""
    schemas: Object = dict(COMMON_SCHEMAS)
    paths: Object = {}
    for kind in kinds:
        name = _schema_name(kind)
        schemas[name] = _custom_schema(kind, schemas) if kind.custom else _struct(kind.shape, schemas)
        schemas[name]["x-kubernetes-group-version-kind"] = [gvk(kind)]
        if not kind.reviewed_only:
            schemas[f"{name}List"] = list_schema(kind, name)
        paths |= paths_of(kind, name, f"/{_path(kind)}", lambda struct: _of(object_shape(struct), schemas))
    return {"openapi": "3.0.0", "info": {"title": "Pumice", "version": "v1.36.1"}, "paths": paths, "components": {"schemas": schemas}}


def _schema_name(kind: Kind) -> str:
    if kind.custom:
        return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])
    return kind.shape.name


def _custom_schema(kind: Kind, schemas: Object) -> Object:
    body = kind.schema or {"type": "object"}
    head = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _of(shape_of(_METADATA), schemas)}
    return {**body, "properties": head | (body.get("properties") or {})}


def _of(shape: Shape, schemas: Object) -> Object:
    match shape.kind:
        case "struct":
            if shape.name not in schemas:
                schemas[shape.name] = {}
                schemas[shape.name] = _struct(shape, schemas)
            return {"allOf": [{"$ref": f"#/components/schemas/{shape.name}"}]}
        case "list":
            assert shape.element is not None
            found = {"type": "array", "items": _of(shape.element, schemas)}
            strategies = [word for word, holds in (("merge", shape.merge), ("retainKeys", shape.retain_keys)) if holds]
            if strategies:
                found["x-kubernetes-patch-strategy"] = ",".join(strategies)
            if shape.merge_key:
                found["x-kubernetes-patch-merge-key"] = shape.merge_key
            if shape.keys:
                found |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(shape.keys)}
            return found
        case "map":
            assert shape.element is not None
            return {"type": "object", "additionalProperties": _of(shape.element, schemas)}
        case other:
            return dict(_SCALARS[other])


def _struct(shape: Shape, schemas: Object) -> Object:
    found: Object = {"type": "object", "properties": {name: _of(field, schemas) for name, field in sorted(shape.fields.items())}}
    for name in shape.retained:
        found["properties"][name]["x-kubernetes-patch-strategy"] = "retainKeys"
    told = descriptions()
    for name, field in found["properties"].items():
        if text := told.get(f"{shape.name}.{name}"):
            field["description"] = text
    if text := told.get(shape.name):
        found["description"] = text
    return found | ({"required": list(shape.required)} if shape.required else {})
