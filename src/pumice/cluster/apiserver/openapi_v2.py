"""OpenAPI v2 of all kinds in one document, made from the schemas of v3: kubectl validates lists and older kinds by it.

kubectl reads it in protobuf; the messages are those of gnostic, and only the fields that are used here are encoded. Parts of custom
schemas that v2 cannot express are left out, as the API server does it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from pumice.cluster.apiserver.schema import Object

PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
ANSWERED = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"  #: an @ is not allowed in a content type
_INFO = {"title": "Pumice", "version": "v1.36.1"}
_KEPT = ("type", "format", "required")
_REFERENCE, _DEFINITION = "#/components/schemas/", "#/definitions/"


def document(documents: Iterable[Object]) -> Object:
    """The v2 document, made from the v3 documents of all group versions. Its paths have only PATCH operations and their parameters."""
    definitions: Object = {}
    paths: Object = {}
    for each in documents:
        for name, schema in each["components"]["schemas"].items():
            definitions.setdefault(name, _schema(schema))
        paths |= {path: {"patch": _operation(item["patch"])} for path, item in each["paths"].items() if "patch" in item}
    return {"swagger": "2.0", "info": _INFO, "paths": paths, "definitions": definitions}


def _schema(schema: Object) -> Object:
    reference = schema.get("$ref") or next((part["$ref"] for part in schema.get("allOf") or () if "$ref" in part), None)
    found = {key: value for key, value in schema.items() if key.startswith("x-kubernetes-")}
    if reference is not None:
        return found | {"$ref": _DEFINITION + reference.removeprefix(_REFERENCE)}
    if schema.get("format") == "int-or-string":
        return found | {"type": "string", "format": "int-or-string"}
    if schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("nullable"):
        return found
    if "oneOf" in schema and "type" not in schema:  # a quantity
        return found | {"type": "string"}
    found |= {key: schema[key] for key in _KEPT if schema.get(key)}
    if isinstance(schema.get("properties"), dict):
        found["properties"] = {name: _schema(inner) for name, inner in schema["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            found[key] = _schema(schema[key])
    return found


def _operation(operation: Object) -> Object:
    found = {key: operation[key] for key in ("operationId", "x-kubernetes-action", "x-kubernetes-group-version-kind")}
    queries = [{"name": each["name"], "in": "query", "type": "string"} for each in operation.get("parameters") or ()]
    return found | {"parameters": queries, "responses": {"200": {"description": "OK"}}}


# Protobuf: each function returns the bytes of one message


def encode(document: Object) -> bytes:
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    paths = b"".join(_bytes(2, _named(path, _bytes(8, _encoded_operation(item["patch"])))) for path, item in document["paths"].items())
    return _text(1, document["swagger"]) + _bytes(2, info) + _bytes(8, paths) + _bytes(9, _properties(document["definitions"]))


def _encoded_operation(operation: Object) -> bytes:
    parts = [_text(5, operation["operationId"])]
    for each in operation["parameters"]:
        query = _text(2, each["in"]) + _text(4, each["name"]) + _text(6, each["type"])
        parts.append(_bytes(8, _bytes(1, _bytes(2, _bytes(3, query)))))
    parts.append(_bytes(9, _bytes(1, _named("200", _bytes(1, _text(1, "OK"))))))
    return b"".join([*parts, *_extensions(13, operation)])


def _encoded_schema(schema: Object) -> bytes:
    parts = [_text(1, schema["$ref"])] if "$ref" in schema else []
    if "format" in schema:
        parts.append(_text(2, schema["format"]))
    parts += [_text(19, name) for name in schema.get("required") or ()]
    if "additionalProperties" in schema:
        parts.append(_bytes(21, _bytes(1, _encoded_schema(schema["additionalProperties"]))))
    if "type" in schema:
        parts.append(_bytes(22, _text(1, schema["type"])))
    if "items" in schema:
        parts.append(_bytes(23, _bytes(1, _encoded_schema(schema["items"]))))
    if "properties" in schema:
        parts.append(_bytes(25, _properties(schema["properties"])))
    return b"".join([*parts, *_extensions(31, schema)])


def _properties(schemas: Object) -> bytes:
    return b"".join(_bytes(1, _named(name, _encoded_schema(schema))) for name, schema in schemas.items())


def _extensions(number: int, value: Object) -> Iterator[bytes]:
    """The fields that start with x-, as YAML, which includes JSON."""
    for key, extension in value.items():
        if key.startswith("x-"):
            yield _bytes(number, _named(key, _text(2, json.dumps(extension))))


def _named(name: str, value: bytes) -> bytes:
    return _text(1, name) + _bytes(2, value)


def _text(number: int, text: Any) -> bytes:
    return _bytes(number, str(text).encode())


def _bytes(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
