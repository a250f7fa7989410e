"""OpenAPI v3: an index, and one document for each group version, made from the tables of types and from CRDs. And v2, made from v3.

kubectl reads them before it creates or applies (if PATCH has the parameter `fieldValidation`, the server validates) and for `explain`.

The paths of OpenAPI: for each kind its collection, its objects and their subresources, with the schemas of requests and answers.
Watches and Tables are not declared: they are other forms of the same answers, requested by `watch` and by the Accept header.
"""

import asyncio
import gzip
import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from pumice.api import Object
from pumice.cluster.apiserver.discovery import VERSION, Remote, subresources_of
from pumice.cluster.apiserver.openapi import protobuf_writer as openapi_protobuf, v2 as openapi_v2
from pumice.cluster.apiserver.scheme.builtin_shapes import object_shape, shape_of
from pumice.cluster.apiserver.scheme.kinds import KindTable, ServedKind
from pumice.cluster.apiserver.scheme.schema import Shape
from pumice.http.messages import JSON, Request, Response, Stream

OPENAPI_PATH = "/openapi/v3"
#: the HTTP method of a verb; any other verb has the name of its method
_METHODS = {"list": "get", "create": "post", "update": "put", "deletecollection": "delete"}
_ON_ALL, _ON_ONE = ("list", "create", "deletecollection"), ("get", "update", "patch", "delete")
_ACTIONS = {"create": "post", "update": "put"}  #: the API's word for an action, where it is not the verb
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_SELECT = ("labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "resourceVersionMatch")
_DELETE = ("dryRun", "gracePeriodSeconds", "propagationPolicy")
_TEXT: Object = {"type": "string"}
_WHOLE: Object = {"type": "integer", "minimum": 0}
_QUERIES: Object = {  #: the schemas of query parameters that may not be any text
    "limit": _WHOLE,
    "gracePeriodSeconds": _WHOLE,
    "force": {"type": "boolean"},
    "dryRun": {"type": "string", "enum": ["All"]},
    "fieldValidation": {"type": "string", "enum": ["Ignore", "Strict", "Warn"]},
    "propagationPolicy": {"type": "string", "enum": ["Background", "Foreground", "Orphan"]},
    "resourceVersion": {"type": "string", "pattern": "^[0-9]{1,18}$"},
    "resourceVersionMatch": {"type": "string", "enum": ["Exact", "NotOlderThan"]},
}
_UNTYPED = frozenset({"exec", "attach", "portforward"})  #: subresources that need a process, which simulated pods do not have

COMMON_SCHEMAS: Object = {
    "meta.v1.ListMeta": {
        "type": "object",
        "properties": {"resourceVersion": _TEXT, "continue": _TEXT, "remainingItemCount": {"type": "integer", "format": "int64"}},
    },
    "meta.v1.Status": {
        "type": "object",
        "properties": {
            "apiVersion": _TEXT,
            "kind": {"type": "string", "enum": ["Status"]},
            "metadata": {"$ref": "#/components/schemas/meta.v1.ListMeta"},
            "status": {"type": "string", "enum": ["Success", "Failure"]},
            "message": _TEXT,
            "reason": _TEXT,
            "details": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "code": {"type": "integer", "format": "int32"},
        },
        "required": ["kind", "status"],
    },
}
STATUS = "meta.v1.Status"

SchemaOf = Callable[[str], Object]  #: returns the schema of a built-in struct, and adds it to the schemas of the document


class PathOwner(NamedTuple):
    """What the operations of a kind have in common."""

    kind: ServedKind
    schema: str
    path: str  #: of the kind's collection in one namespace, or in the cluster
    schema_of: SchemaOf


def gvk(kind: ServedKind) -> Object:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def list_schema(kind: ServedKind, schema: str) -> Object:
    properties = {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "metadata": _reference("meta.v1.ListMeta"),
        "items": {"type": "array", "items": _reference(schema)},
    }
    return {
        "type": "object",
        "properties": properties,
        "required": ["items"],
        "x-kubernetes-group-version-kind": [gvk(kind) | {"kind": f"{kind.kind}List"}],
    }


def paths_of(kind: ServedKind, schema: str, root: str, schema_of: SchemaOf) -> Object:
    place = PathOwner(kind, schema, root + ("/namespaces/{namespace}" if kind.namespaced else "") + f"/{kind.plural}", schema_of)
    found = {place.path: _item(place, (), [verb for verb in _ON_ALL if verb in kind.verbs])}
    if kind.namespaced and "list" in kind.verbs:
        found[f"{root}/{kind.plural}"] = {"get": _operation(place, "list", "ForAllNamespaces")}
    if "get" in kind.verbs:
        found[f"{place.path}/{{name}}"] = _item(place, ("name",), [verb for verb in _ON_ONE if verb in kind.verbs])
    for name, api_version, taken, verbs in subresources_of(kind):
        found[f"{place.path}/{{name}}/{name}"] = _subresource(place, name, api_version, taken, verbs)
    return found


def _item(place: PathOwner, names: tuple[str, ...], verbs: list[str]) -> Object:
    parameters = [_parameter(name, "path") for name in (*(("namespace",) if place.kind.namespaced else ()), *names)]
    return ({"parameters": parameters} if parameters else {}) | {_METHODS.get(verb, verb): _operation(place, verb) for verb in verbs}


def _operation(place: PathOwner, verb: str, suffix: str = "") -> Object:
    own, listed = _reference(place.schema), _reference(f"{place.schema}List")
    match verb:
        case "list":
            return _described(place, verb, suffix, {"200": listed}, _SELECT)
        case "deletecollection":
            return _described(place, verb, suffix, {"200": listed}, (*_DELETE, "labelSelector", "fieldSelector"))
        case "get":
            return _described(place, verb, suffix, {"200": own})
        case "create":
            return _described(place, verb, suffix, {"201": _reference(STATUS) if place.kind.kind == "Binding" else own}, _WRITE, _json(own))
        case "update":
            return _described(place, verb, suffix, {"200": own, "201": own}, _WRITE, _json(own))
        case "patch":
            return _described(place, verb, suffix, {"200": own, "201": own}, (*_WRITE, "force"), _patches(place.kind))
        case _:
            answer = own if place.kind.shown_when_deleted else {"anyOf": [_reference(STATUS), own]}
            return _described(place, verb, suffix, {"200": answer}, _DELETE)


def _subresource(place: PathOwner, name: str, api_version: str, taken: str, verbs: tuple[str, ...]) -> Object:
    item = _item(place, ("name",), [])
    if name in _UNTYPED:
        return item | {_METHODS.get(verb, verb): _described(place, verb, name, {}) for verb in verbs}
    if name == "log":
        answers = {"200": {"description": "OK", "content": {"text/plain": {"schema": _TEXT}}}}
        operation = _described(place, "get", name, {}, ("container", "tailLines"))
        return item | {"get": operation | {"responses": answers | operation["responses"]}}
    schema = _reference(place.schema)
    if taken != place.kind.kind:
        group, _, version = api_version.rpartition("/")
        schema = place.schema_of(f"{group.split('.')[0] or 'core'}.{version}.{taken}")
    for verb in verbs:
        answer = _reference(STATUS) if name in ("binding", "eviction") else schema
        body = None if verb == "get" else _patches(place.kind) if verb == "patch" else _json(schema)
        item[_METHODS.get(verb, verb)] = _described(
            place, verb, name, {"201" if verb == "create" else "200": answer}, _WRITE if body else (), body
        )
    return item


def _described(
    place: PathOwner, verb: str, suffix: str, answers: Object, queries: tuple[str, ...] = (), body: Object | None = None
) -> Object:
    kind = place.kind
    operation: Object = {
        "operationId": f"{verb}_{kind.group.replace('.', '_')}_{kind.version}_{kind.plural}_{suffix}".rstrip("_"),
        "x-kubernetes-action": _ACTIONS.get(verb, verb),
        "x-kubernetes-group-version-kind": gvk(kind),
        "responses": {code: _answer(schema) for code, schema in answers.items()} | {"default": _answer(_reference(STATUS), "refused")},
    }
    if queries:
        operation["parameters"] = [_parameter(query, "query") for query in queries]
    return operation | ({"requestBody": body} if body else {})


def _answer(schema: Object, text: str = "OK") -> Object:
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _json(schema: Object) -> Object:
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _patches(kind: ServedKind) -> Object:
    """The body of a PATCH request. kubectl reads from it whether a kind accepts strategic merge patches; custom kinds do not."""
    names = ("json-patch+json", "merge-patch+json", *(() if kind.custom else ("strategic-merge-patch+json",)), "apply-patch+yaml")
    content = {f"application/{name}": {"schema": {"type": "array" if name == "json-patch+json" else "object"}} for name in names}
    return {"required": True, "content": content}


def _parameter(name: str, where: str) -> Object:
    return {"name": name, "in": where, "schema": _QUERIES.get(name, _TEXT)} | ({"required": True} if where == "path" else {})


def _reference(name: str) -> Object:
    return {"$ref": f"#/components/schemas/{name}"}


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


Later = Response | asyncio.Future[Response | Stream]


class OpenApi:
    """The OpenAPI documents. Each is made when it is first requested, on a thread, since it takes up to a third of a second; and it is kept
    until the table of kinds changes, but for what other servers have a part in."""

    def __init__(self, kinds: KindTable, remote: Remote, version: Callable[[], str], others: Callable[[], Awaitable[list[Object]]]) -> None:
        self._kinds = kinds
        self._version = version  #: what the server says of itself
        self._remote = remote  #: whose documents of version 3 the other servers answer for
        self._others = others  #: returns these, for the document of version 2
        self._documents: dict[str, bytes] = {}
        self._revision = -1

    def respond(self, request: Request) -> Later | None:
        if request.path != "/openapi/v2" and not request.path.startswith(OPENAPI_PATH):
            return None
        if self._revision != self._kinds.revision:
            self._documents.clear()
            self._revision = self._kinds.revision
        if request.path == "/openapi/v2":
            return self._in_version_2(request)
        name = request.path.removeprefix(OPENAPI_PATH).strip("/")
        if not name:
            return Response.json({"paths": self._index()})
        kinds, version = self._of_path(name), self._version()
        made = partial(asyncio.to_thread, lambda: msgspec.json.encode(document(kinds, version)))
        return self._made(name, made, Response) if kinds else None

    def _of_path(self, name: str) -> list[ServedKind]:
        group, _, version = name.removeprefix("apis/").removeprefix("api/").rpartition("/")
        kinds = [kind for kind in self._kinds if (kind.group, kind.version) == (group, version)]
        return kinds if kinds and name == _path(kinds[0]) else []

    def _in_version_2(self, request: Request) -> Later:
        """The document of v2 in protobuf or JSON, zipped if the client accepts that: kubectl reads all of it whenever it needs a part."""
        content_type = openapi_v2.ANSWERED if openapi_v2.PROTOBUF in request.headers.get("accept", "") else JSON
        zipped = "gzip" in request.headers.get("accept-encoding", "")
        headers = (("Content-Encoding", "gzip"), ("Vary", "Accept, Accept-Encoding")) if zipped else (("Vary", "Accept, Accept-Encoding"),)
        kinds, version, by_others = list(self._kinds), self._version(), bool(self._remote)

        async def made() -> bytes:
            others = await self._others() if by_others else []
            return await asyncio.to_thread(_document_v2, kinds, version, others, content_type, zipped)

        name = "" if by_others else f"v2 {content_type} {zipped}"
        return self._made(name, made, lambda data: Response(data, 200, content_type, headers))

    def _made(self, name: str, make: Callable[[], Awaitable[bytes]], answer: Callable[[bytes], Response]) -> Later:
        if name in self._documents:
            return answer(self._documents[name])
        return asyncio.ensure_future(self._make(name, make, answer))

    async def _make(self, name: str, make: Callable[[], Awaitable[bytes]], answer: Callable[[bytes], Response]) -> Response | Stream:
        revision = self._revision
        data = await make()
        if name and revision == self._revision == self._kinds.revision:
            self._documents[name] = data
        return answer(data)

    def _index(self) -> Object:
        paths = sorted({_path(kind) for kind in self._kinds})
        mark = zlib.crc32(repr([(kind.resource, kind.version) for kind in self._kinds]).encode()) + self._revision
        own = {path: {"serverRelativeURL": f"{OPENAPI_PATH}/{path}?hash={mark:X}"} for path in paths}
        places = (f"apis/{group}/{version}" for group, version in self._remote)
        return own | {path: {"serverRelativeURL": f"{OPENAPI_PATH}/{path}"} for path in places}


def _document_v2(kinds: list[ServedKind], version: str, others: list[Object], content_type: str, zipped: bool) -> bytes:
    by_path: dict[str, list[ServedKind]] = {}
    for kind in kinds:
        by_path.setdefault(_path(kind), []).append(kind)
    whole = openapi_v2.document([document(by_path[path], version) for path in sorted(by_path)])
    for other in others:
        with suppress(KeyError, TypeError, AttributeError, ValueError):  # what is odd in it is its server's fault, and its alone
            part = openapi_v2.document([other])
            openapi_protobuf.encode(part)
            whole |= {field: part[field] | whole[field] for field in ("paths", "definitions")}
    data = openapi_protobuf.encode(whole) if content_type != JSON else msgspec.json.encode(whole)
    return gzip.compress(data, 5, mtime=0) if zipped else data


@cache
def descriptions() -> dict[str, str]:
    """Descriptions by type, or by type and field. There are few, since kubectl reads a whole document for each object that it applies."""
    lines = Path(__file__).with_name("descriptions.txt").read_text().splitlines()[2:]
    return dict(line.split(": ", 1) for line in lines)


def _path(kind: ServedKind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def document(kinds: list[ServedKind], version: str = VERSION["gitVersion"]) -> Object:
    """The OpenAPI v3 document of one group version, whose kinds are given."""
    schemas: Object = dict(COMMON_SCHEMAS)
    paths: Object = {}
    for kind in kinds:
        name = _schema_name(kind)
        schemas[name] = _custom_schema(kind, schemas) if kind.custom else _struct(kind.shape, schemas)
        schemas[name]["x-kubernetes-group-version-kind"] = [gvk(kind)]
        if not kind.reviewed_only:
            schemas[f"{name}List"] = list_schema(kind, name)
        paths |= paths_of(kind, name, f"/{_path(kind)}", lambda struct: _of(object_shape(struct), schemas))
    info = {"title": "Pumice", "version": version.partition("+")[0]}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _schema_name(kind: ServedKind) -> str:
    if kind.custom:
        return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])
    return kind.shape.name


def _custom_schema(kind: ServedKind, schemas: Object) -> Object:
    body = _published(kind.schema or {"type": "object"})
    texts = descriptions()
    head = {"apiVersion": dict(_TEXT), "kind": dict(_TEXT), "metadata": _of(shape_of(_METADATA), schemas)}
    for name, field in head.items():
        field["description"] = texts[f"object.{name}"]
    return {**body, "properties": head | (body.get("properties") or {})}


#: of a schema: told if they are true
_FLAGS = ("nullable", "exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string")


def _published(schema: Object) -> Object:
    """A definition's schema as Kubernetes publishes it: without flags that are false."""
    found = {key: value for key, value in schema.items() if value is not False or key not in _FLAGS}
    if isinstance(found.get("properties"), dict):
        found["properties"] = {name: _published(inner) for name, inner in found["properties"].items()}
    for key in ("items", "additionalProperties", "not"):
        if isinstance(found.get(key), dict):
            found[key] = _published(found[key])
    for key in ("allOf", "anyOf", "oneOf"):
        if found.get(key):
            found[key] = [_published(inner) for inner in found[key]]
    return found


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
    texts = descriptions()
    for name, field in found["properties"].items():
        if text := texts.get(f"{shape.name}.{name}"):
            field["description"] = text
    if text := texts.get(shape.name):
        found["description"] = text
    return found | ({"required": list(shape.required)} if shape.required else {})
