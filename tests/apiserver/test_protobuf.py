"""An object in protobuf, as typed clients write it, is read as the object that it was: every kind, every field, also empty ones."""

from __future__ import annotations

import base64
import json
import struct
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pumice.api.times import rfc3339
from pumice.cluster.apiserver import StatusError, requests
from pumice.cluster.apiserver.scheme import protobuf
from pumice.cluster.apiserver.scheme.builtin_kinds import builtin_kinds
from pumice.cluster.apiserver.scheme.builtin_shapes import shape_of
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.scheme.schema import Shape
from tests.samples import times

SCHEMA = "apiextensions.v1.JSONSchemaProps"
KINDS = [kind for kind in builtin_kinds() if kind.group != "metrics.k8s.io"]
ANYTHING = st.recursive(
    st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(max_size=3),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "number": st.floats(allow_nan=False, allow_infinity=False),
    "bool": st.booleans(),
    "bytes": st.binary(max_size=3).map(lambda data: base64.b64encode(data).decode()),
    "Quantity": st.sampled_from(["0", "1", "250m", "1Gi"]),
    "IntOrString": st.integers(0, 2**31 - 1) | st.text(max_size=3),
    "Time": st.integers(-62135596799, 2**32).map(rfc3339),
    "MicroTime": st.integers(0, 2**32).map(lambda seconds: f"{rfc3339(seconds)[:-1]}.000007Z"),
}

ZEROS: dict[str, Any] = {"string": "", "bytes": "", "int32": 0, "int64": 0, "bool": False, "number": 0.0}


@st.composite
def values(draw: st.DrawFn, shape: Shape, depth: int = 0) -> Any:
    """A value of a shape: the deeper, the fewer of its fields."""
    match shape.kind:
        case "struct":
            fields = [name for name in shape.numbers.values() if not name.startswith("+")]
            fields += [name for inlined in shape.numbers.values() if inlined.startswith("+") for name in shape_of(inlined[1:]).fields]
            chosen = draw(st.sets(st.sampled_from(fields), max_size=max(0, 5 - depth))) if fields else set()
            found = {name: draw(values(shape.fields[name], depth + 1)) for name in chosen}
            return {name: value for name, value in found.items() if not (name in shape.omitted and value in ("", 0))}
        case "list" | "map":
            assert shape.element is not None
            items = draw(st.lists(values(shape.element, depth + 1), min_size=1, max_size=2))
            return items if shape.kind == "list" else {f"key{index}": item for index, item in enumerate(items)}
        case "any" if shape.name:
            schema = values(shape_of(SCHEMA), max(depth, 3))
            other = {"Array": st.lists(schema, min_size=1, max_size=2), "Bool": st.booleans()}.get(shape.name[17:])
            return draw(schema | (other or st.lists(st.text(max_size=3), min_size=1, max_size=2)))
        case "any":
            return draw(ANYTHING)
    return draw(SCALARS[shape.kind])


def varint(number: int) -> bytes:
    number %= 2**64
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def field(number: int, value: int | bytes, fixed: bool = False) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 1) + value if fixed else varint(number << 3 | 2) + varint(len(value)) + value


def message(shape: Shape, value: dict[str, Any]) -> bytes:
    """A struct as generated code writes it: fields that are no pointers are written also when they are not set."""
    parts = []
    for number, name in shape.numbers.items():
        if name.startswith("+"):
            parts.append(field(number, message(shape_of(name[1:]), value)))
        elif name in value:
            parts += encoded(number, shape.fields[name], value[name])
        elif name in shape.omitted and (zero := ZEROS.get(shape.fields[name].kind)) is not None:
            parts += encoded(number, shape.fields[name], zero)
    return b"".join(parts)


def encoded(number: int, shape: Shape, value: Any) -> list[bytes]:
    match shape.kind:
        case "list":
            assert shape.element is not None
            return [part for item in value for part in encoded(number, shape.element, item)]
        case "map":
            assert shape.element is not None
            entries = (b"".join([field(1, key.encode()), *encoded(2, _boxed(shape.element), item)]) for key, item in value.items())
            return [field(number, entry) for entry in entries]
        case "struct":
            return [field(number, message(shape, value))]
        case "boxed list":
            return [field(number, b"".join(encoded(1, shape.element or shape, value)))]
        case "string":
            return [field(number, value.encode())]
        case "bytes":
            return [field(number, base64.b64decode(value))]
        case "number":
            return [field(number, struct.pack("<d", value), fixed=True)]
        case "any" if shape.name:
            return [field(number, either(shape.name, value))]
        case "any":
            return [field(number, field(1, json.dumps(value).encode()))]
        case "Quantity":
            return [field(number, field(1, value.encode()))]
        case "IntOrString":
            parts = (1, 0, value.encode()) if isinstance(value, str) else (0, value, b"")
            return [field(number, b"".join(map(field, (1, 2, 3), parts)))]
        case "Time" | "MicroTime":
            at = datetime.fromisoformat(value).astimezone(UTC)
            return [field(number, field(1, int(at.timestamp())) + field(2, at.microsecond * 1000))]
    return [field(number, int(value))]


def _boxed(shape: Shape) -> Shape:
    """A list as the value of a map is a message of its own."""
    return Shape("boxed list", element=shape) if shape.kind == "list" else shape


def either(name: str, value: Any) -> bytes:
    schema = shape_of(SCHEMA)
    match value:
        case dict():
            return field(2 if name.endswith("Bool") else 1, message(schema, value))
        case bool():
            return field(1, int(value))
    return b"".join(field(2, item.encode() if isinstance(item, str) else message(schema, item)) for item in value)


def body(kind: ServedKind, obj: dict[str, Any]) -> bytes:
    head = field(1, kind.api_version.encode()) + field(2, kind.kind.encode())
    return b"k8s\0" + field(1, head) + field(2, message(kind.shape, obj))


def read(kind: ServedKind, obj: dict[str, Any]) -> Any:
    found = requests.read(body(kind, obj), protobuf.CONTENT_TYPE)
    assert (found.pop("apiVersion"), found.pop("kind")) == (kind.api_version, kind.kind)
    return found


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.kind}-{kind.version}")
@settings(max_examples=times(8))
@given(data=st.data())
def test_an_object_in_protobuf_and_back_is_the_same_object(kind: ServedKind, data: st.DataObject) -> None:
    obj = data.draw(values(kind.shape))
    assert read(kind, obj) == obj


@pytest.mark.parametrize("name", sorted({name for kind in KINDS for name in [kind.shape.name]}))
def test_each_field_of_a_kind_is_read(name: str) -> None:
    """Each field alone, everywhere in the kind, though a random object has it never or rarely."""
    seen: set[str] = set()

    def each(shape: Shape) -> None:
        if shape.name in seen or shape.kind != "struct":
            return
        seen.add(shape.name)
        for number, field_name in shape.numbers.items():
            if field_name.startswith("+"):
                continue
            inner = shape.fields[field_name]
            value = sample(inner)
            raw = b"".join(encoded(number, inner, value))
            assert protobuf.message(shape, raw) == {field_name: value}, f"{shape.name}.{field_name}"
            while inner.element is not None:
                inner = inner.element
            each(inner)

    each(shape_of(name))


def sample(shape: Shape) -> Any:
    match shape.kind:
        case "list":
            return [sample(shape.element or shape)]
        case "map":
            return {"key": sample(shape.element or shape)}
        case "struct":
            return {}
        case "any":
            return {} if shape.name else {"a": [1]}
        case "IntOrString":
            return "50%"
        case "Time":
            return "2026-01-01T00:00:00Z"
        case "MicroTime":
            return "2026-01-01T00:00:00.000007Z"
    return {"bool": True, "number": 0.5, "bytes": "QQ=="}.get(shape.kind, 7 if "int" in shape.kind else "1")


def test_values_of_any_type_that_are_not_json_or_nest_too_deep_are_refused() -> None:
    kind = next(kind for kind in KINDS if kind.kind == "ControllerRevision")
    head = body(kind, {})[: -len(message(kind.shape, {})) - 2]
    for text in (b"{", b"[" * 200 + b"]" * 200, b"[" * 20_000 + b"]" * 20_000):
        raw = field(2, field(1, text))
        with pytest.raises(StatusError) as refusal:
            requests.read(head + field(2, raw), protobuf.CONTENT_TYPE)
        assert refusal.value.code == 400
