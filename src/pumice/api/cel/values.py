"""Values that JSON does not have: versions, optional values, instants and spans, types; and the budget of an evaluation."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from pumice.api.cel.syntax import CelError
from pumice.api.quantity import Quantity

STEPS = 100_000  #: of one evaluation, at most
_WIDE = 16  #: characters or items that are looked at in one step


class Version(NamedTuple):
    """A semantic version; one before a release sorts before it."""

    major: int
    minor: int
    patch: int
    released: bool
    before: tuple[tuple[bool, int, str], ...] = ()


def version(text: str) -> Version:
    match = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", text)
    if match is None:
        raise CelError(f'"{text}" is no semantic version')
    parts = match[4].split(".") if match[4] else []
    before = tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts)
    return Version(int(match[1]), int(match[2]), int(match[3]), not parts, before)


class Optional(NamedTuple):
    """A value that may not be there."""

    present: bool
    value: Any = None


class Instant(NamedTuple):
    """Seconds since 1970."""

    seconds: float


class Span(NamedTuple):
    """A duration in seconds."""

    seconds: float


class Type(NamedTuple):
    """What `type(x)` gives."""

    name: str


TYPES = {name: Type(name) for name in ("bool", "int", "double", "string", "list", "map", "null_type", "type")}
_TYPE_NAMES = {bool: "bool", int: "int", float: "double", str: "string", list: "list", dict: "map", type(None): "null_type", Type: "type"}


def type_of(value: Any) -> Type:
    return Type(_TYPE_NAMES.get(type(value), type(value).__name__.lower()))


class Budget:
    """How much may still be done. Whoever looks at long texts or lists pays for their length."""

    __slots__ = ("left",)

    def __init__(self, steps: int = STEPS) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> None:
        """Raises CelError."""
        self.left -= steps
        if self.left < 0:
            raise CelError("the expression costs more than is allowed")

    def spend_on(self, *values: Any) -> None:
        for value in values:
            if isinstance(value, str | list | dict):
                self.spend(len(value) // _WIDE)


def comparable(value: Any) -> Any:
    return value.milli if isinstance(value, Quantity) else value
