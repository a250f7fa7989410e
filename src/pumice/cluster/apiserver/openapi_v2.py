"""OpenAPI v2 of all kinds in one document, made from the schemas of v3: kubectl validates lists and older kinds by it.

kubectl reads it in protobuf; the messages are those of gnostic, and bounds of amounts and lengths are left out of them. Parts of custom
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
_WORDS = "type format required description title enum default pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"
_LIMITS = "minLength maxLength minItems maxItems uniqueItems minProperties maxProperties example"
_KEPT = frozenset(f"{_WORDS} {_LIMITS}".split())
_REFERENCE, _DEFINITION = "#/components/schemas/", "#/definitions/"


def document(documents: Iterable[Object]) -> Object:
    """The v2 document, made from the v3 documents of all group versions. Its paths have only PATCH operations and their parameters."""
    definitions: Object = {}
    paths: Object = {}
    for each in documents:
        for name, schema in each["components"]["schemas"].items():
            definitions.setdefault(name, _whole(schema))
        paths |= {path: {"patch": _operation(item["patch"])} for path, item in each["paths"].items() if "patch" in item}
    return {"swagger": "2.0", "info": _INFO, "paths": paths, "definitions": definitions}


def _whole(schema: Object) -> Object:
    """The schema of a kind. Of one that takes any field none is told, since kubectl would refuse the others."""
    if schema.get("x-kubernetes-preserve-unknown-fields") and schema.get("type") == "object":
        return {"type": "object", "x-kubernetes-group-version-kind": schema.get("x-kubernetes-group-version-kind", [])}
    return _schema(schema)


def _schema(schema: Object) -> Object:
    reference = schema.get("$ref") or next((part["$ref"] for part in schema.get("allOf") or () if "$ref" in part), None)
    found = {key: value for key, value in schema.items() if key.startswith("x-kubernetes-") and value is not False}
    if reference is not None:
        return found | {"$ref": _DEFINITION + reference.removeprefix(_REFERENCE)}
    if schema.get("format") == "int-or-string":
        return found | {"type": "string", "format": "int-or-string"}
    found |= {key: value for key, value in schema.items() if key in _KEPT and value is not False}
    if any(schema.get(key) for key in ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields", "nullable")):
        found.pop("type", None)  # kubectl takes anything where it finds no type, and refuses what is told beside that
        return found
    if "oneOf" in schema and "type" not in schema:  # a quantity
        return found | {"type": "string"}
    if schema.get("type") == "array" and "items" not in schema:
        del found["type"]
    if isinstance(schema.get("properties"), dict):
        found["properties"] = {name: _schema(inner) for name, inner in schema["properties"].items()}
        required = [name for name in schema.get("required") or () if not (schema["properties"].get(name) or {}).get("nullable")]
        found.pop("required", None)
        if required:
            found["required"] = required
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


_TEXTS = {"format": 2, "title": 3, "description": 4, "pattern": 13}


def _any(value: Any) -> bytes:
    """Any value, as YAML, which includes JSON."""
    return _text(2, json.dumps(value))


def _encoded_schema(schema: Object) -> bytes:
    parts = [_text(1, schema["$ref"])] if "$ref" in schema else []
    parts += [_text(number, schema[key]) for key, number in _TEXTS.items() if key in schema]
    if "default" in schema:
        parts.append(_bytes(5, _any(schema["default"])))
    parts += [_bytes(20, _any(value)) for value in schema.get("enum") or ()]
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
    """The fields that start with x-."""
    for key, extension in value.items():
        if key.startswith("x-"):
            yield _bytes(number, _named(key, _any(extension)))


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
