"""Schemas of custom kinds as rules see them: the kinds of fields, and values of those kinds in place of JSON's."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

from pumice.api.cel.check import Environment
from pumice.api.cel.errors import EvaluationError
from pumice.api.cel.kinds import DYN, STRING, Kind, kind, list_of, map_of, optional_of
from pumice.api.cel.library.times import instant, span
from pumice.api.cel.tokens import RESERVED, WORDS
from pumice.apiserver.shapes import Object
from pumice.apiserver.structural import EMBEDDED, INT_OR_STRING

Seen = Callable[[Any], Any]  #: a value as expressions see it
_PLAIN = {"integer": "int", "number": "double", "boolean": "bool", "string": "string"}
_FORMATS = {"byte": "bytes", "date-time": "timestamp", "date": "timestamp", "duration": "duration"}
_MAKERS: dict[str, Seen] = {
    "byte": base64.b64decode,
    "date-time": instant,
    "date": lambda text: instant(f"{text}T00:00:00Z"),
    "duration": span,
    "number": float,
    "integer": int,
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IN_NAMES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_METADATA = {"name": STRING, "generateName": STRING}


def environment_of(schema: Object, optional_old: bool, is_root: bool) -> Environment:
    """What a rule at this place may name."""
    fields: dict[str, dict[str, Kind]] = {}
    own = _kind(schema, fields, "self", is_root)
    return Environment({"self": own, "oldSelf": optional_of(own) if optional_old else own}, fields)


def _kind(schema: Object, fields: dict[str, dict[str, Kind]], path: str, is_root: bool = False) -> Kind:
    if schema.get(INT_OR_STRING):
        return DYN
    each = schema.get("additionalProperties")
    match schema.get("type"):
        case "array":
            return list_of(_kind(schema.get("items") or {}, fields, f"{path}.items"))
        case "object" if isinstance(each, dict):
            return map_of(STRING, _kind(each, fields, f"{path}.values"))
        case "object":
            inner = {key: _kind(one, fields, f"{path}.{key}") for key, one in (schema.get("properties") or {}).items()}
            if is_root or schema.get(EMBEDDED):
                fields[f"{path}.metadata"] = {**fields.get(f"{path}.metadata", {}), **_METADATA}
                inner |= {"apiVersion": STRING, "kind": STRING, "metadata": Kind(f"{path}.metadata")}
            fields[path] = {name: one for key, one in inner.items() if (name := _name(key)) is not None}
            return Kind(path)
        case str(plain) if plain in _PLAIN:
            special = _FORMATS.get(schema.get("format", "")) if plain == "string" else None
            return kind(special or _PLAIN[plain])
    return DYN


def _name(key: str) -> str | None:
    """A field as it is called in expressions; None if it cannot be."""
    if key in RESERVED or key in WORDS:
        return f"__{key}__"
    name = re.sub(r"__|[./-]", lambda match: _IN_NAMES[match[0]], key)
    return name if _NAME.fullmatch(name) else None


def seen_as(schema: Object) -> Seen | None:
    """How values become what expressions see; None where they are that."""
    known = schema.get("type")
    make = _MAKERS.get(schema.get("format", "")) if known == "string" else _MAKERS.get(str(known))
    if make is not None and not schema.get(INT_OR_STRING):
        return lambda value: _made(make, value)
    fields = {name: one for name, inner in (schema.get("properties") or {}).items() if (one := seen_as(inner)) is not None}
    inner = schema.get("items") or schema.get("additionalProperties")
    each = seen_as(inner) if isinstance(inner, dict) else None
    if not fields and each is None:
        return None
    same: Seen = lambda value: value  # noqa: E731

    def seen(value: Any) -> Any:
        if isinstance(value, list):
            return [(each or same)(item) for item in value]
        if isinstance(value, dict):
            return {key: fields.get(key, each or same)(item) for key, item in value.items()}
        return value

    return seen


def _made(make: Seen, value: Any) -> Any:
    try:
        return make(value)
    except (EvaluationError, ValueError, TypeError):
        return value
