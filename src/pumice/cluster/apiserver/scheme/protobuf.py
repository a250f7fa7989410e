"""Request bodies in protobuf, as `kubectl create` and typed clients send them, decoded to the JSON form by the tables of types.

A body is the four bytes `k8s\\0` and an envelope: apiVersion, kind, and the raw object. Answers are JSON, which these clients accept.
"""

import base64
import struct
from collections.abc import Iterator
from typing import Any

import msgspec

from pumice.api import rfc3339
from pumice.cluster.apiserver.scheme.builtin_shapes import shape_of
from pumice.cluster.apiserver.scheme.schema import Shape
from pumice.cluster.apiserver.status import bad_request, unsupported_media

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
MAX_DEPTH = 100
YEAR_ONE = -62_135_596_800  #: seconds since 1970: the time that stands for none

Field = tuple[int, int | bytes]


def decode(body: bytes) -> dict[str, Any]:
    """The object in a body. Raises StatusError 400 for a body that is not protobuf, 415 for a kind whose fields are not known."""
    if body[:4] != _MAGIC:
        raise bad_request("the body of the request is not protobuf of Kubernetes")
    try:
        envelope = dict(_fields(body[4:]))
        head = dict(_fields(_bytes(envelope.get(1, b""))))
        api_version, kind = _bytes(head.get(1, b"")).decode(), _bytes(head.get(2, b"")).decode()
        shape = _shape(api_version, kind)
        return {"apiVersion": api_version, "kind": kind} | message(shape, _bytes(envelope.get(2, b"")), 0)
    except (ValueError, IndexError, struct.error, msgspec.DecodeError, RecursionError) as error:
        raise bad_request(f"the body of the request is not protobuf: {error}") from None


def _shape(api_version: str, kind: str) -> Shape:
    group, _, version = api_version.rpartition("/")
    module = "meta.v1" if kind == "DeleteOptions" else f"{group.split('.')[0] or 'core'}.{version}"
    try:
        return shape_of(f"{module}.{kind}")
    except (KeyError, FileNotFoundError):
        raise unsupported_media(f"{CONTENT_TYPE} of {api_version} {kind}") from None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")


def _fields(data: bytes) -> Iterator[Field]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        match tag & 7:
            case 0:
                value, at = _varint(data, at)
                yield tag >> 3, value
            case 1 | 5 as wire:
                size = 8 if wire == 1 else 4
                yield tag >> 3, data[at : at + size]
                at += size
            case 2:
                size, at = _varint(data, at)
                if at + size > len(data):
                    raise ValueError("a field ends after the body")
                yield tag >> 3, data[at : at + size]
                at += size
            case _:
                raise ValueError("a field has an unknown wire type")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number stands where text should be")
    return value


def message(shape: Shape, data: bytes, depth: int = 0) -> dict[str, Any]:
    if depth > MAX_DEPTH:
        raise ValueError("nested too deep")
    result: dict[str, Any] = {}
    for number, raw in _fields(data):
        name = shape.numbers.get(number)
        if name is None:
            continue
        if name.startswith("+"):
            result |= message(shape_of(name[1:]), _bytes(raw), depth + 1)
            continue
        field = shape.fields[name]
        if field.kind == "list":
            assert field.element is not None
            result.setdefault(name, []).append(_value(field.element, raw, depth))
        elif field.kind == "map":
            assert field.element is not None
            entry = dict(_fields(_bytes(raw)))
            result.setdefault(name, {})[_bytes(entry.get(1, b"")).decode()] = _value(field.element, entry.get(2, b""), depth)
        elif (value := _value(field, raw, depth)) is not None and (value not in ("", 0) or name not in shape.omitted):
            result[name] = value
    return result


def _value(shape: Shape, raw: int | bytes, depth: int) -> Any:
    match shape.kind:
        case "string":
            return _bytes(raw).decode()
        case "int32" | "int64":
            number = raw if isinstance(raw, int) else 0
            return number - 2**64 if number >= 2**63 else number
        case "bool":
            return bool(raw) if isinstance(raw, int) else False
        case "bytes":
            return base64.b64encode(_bytes(raw)).decode()
        case "number":
            return struct.unpack("<d", _bytes(raw))[0]
        case "struct":
            return message(shape, _bytes(raw), depth + 1)
        case "list":
            assert shape.element is not None
            return [_value(shape.element, item, depth) for _, item in _fields(_bytes(raw))]
        case "any":
            return _either(shape.name, _bytes(raw), depth) if shape.name else _any(_bytes(raw))
    return _special(shape, dict(_fields(_bytes(raw))))


def _any(data: bytes) -> Any:
    """A value of any type (`RawExtension`, `FieldsV1`, `JSON`): a message with its JSON text. None if it has none."""
    text = _bytes(dict(_fields(data)).get(1, b""))
    return msgspec.json.decode(text) if text else None


def _either(name: str, data: bytes, depth: int) -> Any:
    """A schema, or what stands in its place: a list of schemas, a bool, or a list of names."""

    def schema(raw: int | bytes) -> Any:
        return message(shape_of("apiextensions.v1.JSONSchemaProps"), _bytes(raw), depth + 1)

    parts = list(_fields(data))
    if name == "JSONSchemaPropsOrBool":
        return schema(parts[-1][1]) if parts and parts[-1][0] == 2 else any(raw for _, raw in parts)
    if parts and parts[0][0] == 1:
        return schema(parts[0][1])
    return [schema(raw) if name == "JSONSchemaPropsOrArray" else _bytes(raw).decode() for _, raw in parts]


def _special(shape: Shape, parts: dict[int, int | bytes]) -> Any:
    """The JSON value of a type that is a message in protobuf and a scalar in JSON; None for any other type, or a time out of range."""
    match shape.kind:
        case "Quantity":
            return _bytes(parts.get(1, b"0")).decode()
        case "IntOrString":
            return _bytes(parts.get(3, b"")).decode() if parts.get(1) else _value(Shape("int64"), parts.get(2, 0), 0)
        case "Time" | "MicroTime":
            seconds, nanos = parts.get(1), parts.get(2, 0)
            if not isinstance(seconds, int) or not isinstance(nanos, int):
                return None
            seconds -= 2**64 if seconds >= 2**63 else 0
            if not YEAR_ONE <= seconds < 2**38 or (seconds, nanos) == (YEAR_ONE, 0):
                return None
            text = rfc3339(seconds)
            return text if shape.kind == "Time" else f"{text[:-1]}.{nanos // 1000:06d}Z"
    return None
