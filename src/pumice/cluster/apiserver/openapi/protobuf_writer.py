"""Protobuf: each function returns the bytes of one message."""

import json
from collections.abc import Iterator
from typing import Any

from pumice.api import Object


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
