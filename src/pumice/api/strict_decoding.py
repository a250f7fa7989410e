"""Strict conversion of plain values into structs: a field that the struct does not have is a fault, as in kube-scheduler's decoder."""

from functools import lru_cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import structs

from pumice.api.errors import did_you_mean
from pumice.api.problems import Path, Problems, explain
from pumice.api.structs import convert

T = TypeVar("T", bound=msgspec.Struct)


class Conf(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """Base of the structs that a configuration is read into."""


class Args(Conf, frozen=True):
    """Base of a plugin's arguments. `check` adds to the problems what kube-scheduler would refuse."""

    kind: str = ""
    api_version: str = ""

    def check(self, path: Path, problems: Problems) -> None:
        raise NotImplementedError


def decode(kind: type[T], value: Any, path: Path, problems: Problems) -> T:
    """The value as a struct of this kind. Unknown fields are added to the problems; a value of the wrong type raises InputError at once."""
    _note_unknown(kind, value, path, problems)
    try:
        return convert(_without_nulls(value), kind)
    except msgspec.ValidationError as error:
        message, inner = explain(error, value)
        raise problems.document.error(message, (*path, *inner), str(problems.document.value.get("kind", ""))) from None


def _note_unknown(kind: Any, value: Any, path: Path, problems: Problems) -> None:
    struct = _struct_in(kind)
    if isinstance(value, list):
        for index, item in enumerate(value):
            _note_unknown(kind, item, (*path, index), problems)
    elif struct is not None and isinstance(value, dict):
        known = _fields(struct)
        for key, item in value.items():
            if key in known:
                _note_unknown(known[key], item, (*path, key), problems)
            else:
                problems.add((*path, str(key)), f'unknown field "{key}"{did_you_mean(str(key), known)}')


def _without_nulls(value: Any) -> Any:
    """The value without fields that are null, which count as absent."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


@lru_cache(maxsize=256)
def _fields(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """The types of a struct's fields, by their names on the wire."""
    hints = get_type_hints(struct)
    return {field.encode_name: hints[field.name] for field in structs.fields(struct)}


def _struct_in(kind: Any) -> type[msgspec.Struct] | None:
    """The struct inside a type, also inside lists and optional types; None for mappings and plain values."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind
    if get_origin(kind) is dict:
        return None
    return next((found for part in get_args(kind) if (found := _struct_in(part)) is not None), None)
