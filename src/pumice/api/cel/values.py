"""Values that JSON does not have, and what holds of all values: their kinds, when two are equal, how large they are."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from typing import Any, NamedTuple
from urllib.parse import SplitResult

from pumice.api.cel.kinds import DYN, CelType, kind


class Uint(int):
    """An unsigned integer of 64 bits."""


class Version(NamedTuple):
    """A semantic version; one before a release sorts before it."""

    major: int
    minor: int
    patch: int
    released: bool
    before: tuple[tuple[bool, int, str], ...] = ()


class Amount(NamedTuple):
    """A quantity, exactly."""

    value: Fraction
    scale: int | None  #: the power of ten that it counts in; None if it is not counted in int64


class Optional(NamedTuple):
    """A value that may not be there."""

    present: bool
    value: Any = None


class Instant(NamedTuple):
    """Nanoseconds since 1970, and minutes east of Greenwich, for printing only."""

    ns: int
    offset: int = 0


class Span(NamedTuple):
    """A duration in nanoseconds."""

    ns: int


class Address(NamedTuple):
    ip: IPv4Address | IPv6Address


class Network(NamedTuple):
    """An address and how many of its bits name the network."""

    ip: IPv4Address | IPv6Address
    bits: int


class Url(NamedTuple):
    parts: SplitResult


class Format(NamedTuple):
    """A named format of texts."""

    name: str


class Type(NamedTuple):
    """What `type(x)` gives."""

    name: str


_KINDS: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
    type(None): "null_type",
    Type: "type",
    Instant: "timestamp",
    Span: "duration",
    Optional: "optional_type",
    Amount: "kubernetes.Quantity",
    Version: "kubernetes.Semver",
    Url: "kubernetes.URL",
    Format: "kubernetes.NamedFormat",
    Address: "net.IP",
    Network: "net.CIDR",
}
_PLAIN = ("bool", "int", "uint", "double", "string", "bytes", "null_type", "type", "google.protobuf.Timestamp", "google.protobuf.Duration")
_MADE = ("list", "map", "optional_type", "net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver", "kubernetes.URL")
TYPES = {name: Type(name) for name in (*_PLAIN, *_MADE)}  #: names that stand for types
_HOLDING = {"list": "list<dyn>", "map": "map<dyn, dyn>", "optional_type": "optional_type<dyn>"}
_SPELLED = {"google.protobuf.Timestamp": "timestamp", "google.protobuf.Duration": "duration"}
TYPE_KINDS = {name: CelType("type", (kind(_HOLDING.get(name, _SPELLED.get(name, name))),)) for name in TYPES}
NUMBERS = (int, float)


def kind_of(value: Any) -> str:
    """The outer kind of a value."""
    return _KINDS.get(type(value)) or ("map" if isinstance(value, Mapping) else DYN.name)


def type_of(value: Any) -> Type:
    return Type(str(CelType(kind_of(value))) if value is not None else "null_type")


def equal(left: Any, right: Any) -> bool:
    """Numbers are equal across their kinds, nothing else is."""
    if type(left) is type(right) and isinstance(left, str | int | float):
        return bool(left == right)
    if isinstance(left, NUMBERS) and isinstance(right, NUMBERS):
        return left == right and isinstance(left, bool) == isinstance(right, bool)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return len(left) == len(right) and all(key in right and equal(value, right[key]) for key, value in left.items())
    if type(left) is not type(right):
        return False
    if isinstance(left, Optional):
        return left.present == right.present and equal(left.value, right.value)
    if isinstance(left, Instant | Amount):
        return bool(left[0] == right[0])
    return bool(left == right)


def size_of(value: Any) -> int:
    """What comparing it costs: characters, items, 1 for all else."""
    if isinstance(value, Optional):
        return size_of(value.value)
    if isinstance(value, Address | Network):
        return value.ip.max_prefixlen // 8
    return len(value) if isinstance(value, str | bytes | list | Mapping) else 1
