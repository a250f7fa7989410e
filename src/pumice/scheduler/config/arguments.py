"""Arguments from a configuration, read into the typed struct of a plugin or an action.

Faults that Volcano tolerates (an unknown key, a value of the wrong type) are tolerated here, too, with a warning that has the line and
the most similar right name; the default applies then.
"""

from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import structs

from pumice.api import InputError, did_you_mean, duration
from pumice.api.times import Duration
from pumice.api.yaml import Document
from pumice.scheduler.framework.hooks import SWITCHES
from pumice.scheduler.model.argument_ranges import type_of
from pumice.scheduler.model.task import TRUE_WORDS

Path = tuple[str | int, ...]

FALSE_WORDS = frozenset(["0", "f", "F", "false", "FALSE", "False"])
PLAIN = {int: "an integer", float: "a number", bool: "true or false", str: "a string", Duration: "a duration such as 90m or 24h"}
OF_DEVICES = ("GPUSharingEnable", "GPUNumberEnable", "VGPUEnable")
REST = "named"  #: the field for arguments whose names begin with a wildcard prefix


class Warnings:
    """The warnings about a configuration: faults that are tolerated."""

    def __init__(self, *, shift: int = 0, where: str = "") -> None:
        self.errors: list[InputError] = []
        self._shift, self._where = shift, where

    def add(self, document: Document, path: Path, message: str) -> None:
        error = document.error(message, path)
        error.line += self._shift
        error.where = self._where or error.where
        error.document = 0
        error.field = ""
        self.errors.append(error)

    @property
    def texts(self) -> list[str]:
        return [str(error).replace(": ", ": warning: ", 1) for error in self.errors]


def bind(
    args: type[msgspec.Struct], given: Any, owner: str, wildcards: tuple[str, ...], document: Document, path: Path, warnings: Warnings
) -> Any:
    """The struct made from a mapping of arguments. `owner`: the name of the plugin or action in messages."""
    if given is None:
        return args()
    if not isinstance(given, dict):
        raise document.error(f"arguments of {owner} must be a mapping", path)
    return _Reader(owner, document, path, warnings).struct(args, given, (), wildcards)


class _Unfit(Exception):
    """Raised for a value that does not fit its type. The text says what is wrong."""


class _Reader:
    """Converts values to types. A value that does not fit gets a warning and is left out, at any depth; the values around it are kept."""

    def __init__(self, owner: str, document: Document, path: Path, warnings: Warnings) -> None:
        self._owner, self._document, self._path, self._warnings = owner, document, path, warnings

    def struct(self, kind: type[msgspec.Struct], given: dict[Any, Any], path: Path, wildcards: tuple[str, ...] = ()) -> Any:
        fields = {field.encode_name: field for field in structs.fields(kind)}
        values: dict[str, Any] = {}
        rest: dict[str, Any] = {}
        for key, value in given.items():
            here = (*path, str(key))
            prefix = next((prefix for prefix in wildcards if str(key).startswith(prefix) and key not in fields), None)
            if prefix is not None and REST in fields:
                name = str(key) if len(wildcards) > 1 else str(key)[len(prefix) :]
                self._take(rest, name, get_args(fields[REST].type)[1], value, here)
            elif key in fields and key != REST:
                self._take(values, fields[key].name, type_of(fields[key]), value, here)
            else:
                near = _moved(str(key)) or did_you_mean(str(key), fields) or ("" if path else _switch_meant(str(key)))
                self._warn(here, f'{self._owner} has no argument "{_dotted(here)}" (ignored){near}')
        if lacking := [name for name, field in fields.items() if field.required and field.name not in values]:
            raise _Unfit(f"has no {lacking[0]!r}")
        return kind(**values, **({REST: rest} if rest else {}))

    def _take(self, into: dict[Any, Any], name: str | int, kind: Any, value: Any, path: Path) -> None:
        try:
            into[name] = self._value(kind, value, path)
        except _Unfit as fault:
            instead = "the default applies, as in Volcano" if isinstance(name, str) else "left out"
            self._warn(path, f'argument "{_dotted(path)}" of {self._owner} {fault} ({instead})')

    def _value(self, kind: Any, value: Any, path: Path) -> Any:
        if isinstance(value, dict) and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self.struct(kind, value, path)
        if isinstance(value, dict | list) and get_origin(kind) is type(value):
            parts: dict[Any, Any] = {}
            for name, part in value.items() if isinstance(value, dict) else enumerate(value):
                self._take(parts, name, get_args(kind)[-1], part, (*path, name))
            return parts if isinstance(value, dict) else list(parts.values())
        if kind is bool and isinstance(value, str) and value in TRUE_WORDS | FALSE_WORDS:
            return value in TRUE_WORDS
        if kind is int and _is_fraction(text := self._document.text((*self._path, *path)) or ""):
            raise _Unfit(f"is {text}, which is not an integer")
        try:
            return _duration(value) if kind is Duration else msgspec.convert(value, kind)
        except ValueError:
            raise _Unfit(f"is {value!r}, which is not {_wanted(kind)}") from None

    def _warn(self, path: Path, message: str) -> None:
        self._warnings.add(self._document, (*self._path, *path), message)


def _duration(value: Any) -> Duration:
    """A duration that is not below zero. Raises ValueError."""
    seconds = duration(value if isinstance(value, str) else "")
    if seconds < 0:
        raise ValueError
    return Duration(seconds)


def _is_fraction(text: str) -> bool:
    """Whether a number is written as a fraction, such as 10.0 or 1e1. To YAML it is the same as the integer, to Volcano it is none."""
    return not text.startswith("0x") and not {".", "e", "E"}.isdisjoint(text)


def _dotted(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def _wanted(kind: Any) -> str:
    if kind in PLAIN:
        return PLAIN[kind]
    if get_origin(kind) is Literal:
        return " or ".join(f'"{word}"' for word in get_args(kind))
    if isinstance(kind, UnionType):
        return " or ".join(_wanted(part) for part in get_args(kind) if part is not NoneType)
    return "a list" if get_origin(kind) is list else "a mapping"


def _moved(key: str) -> str:
    """Where an argument is now that was one of predicates before Volcano 1.7."""
    owner, _, name = key.partition(".")
    return f'; it is "deviceshare.{name}" of plugin "deviceshare" now' if owner == "predicate" and name in OF_DEVICES else ""


def _switch_meant(key: str) -> str:
    near = did_you_mean(key, SWITCHES)
    return near.replace("did you mean", "did you mean the switch") if near else ""
