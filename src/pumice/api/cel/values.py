"""CEL values that JSON does not have, and functions on all values: their kinds, their equality, their size.

A `CelType` (a kind) is the type of an expression before evaluation: `int`, `list(string)`, `dyn`; `fits` says whether one kind is accepted
for another. Letters in signatures stand for unknown kinds and become type variables when a signature is used; `KnownKinds` has the kinds
found for them. An expression of kind `dyn` is only checked at evaluation; `any` is the same, for attributes of devices.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Any, NamedTuple
from urllib.parse import SplitResult

from pumice.api.cel.cost import CostBudget
from pumice.api.cel.errors import CompileError

_TOKEN = re.compile(r"[\w.]+|[<>,]")
_SPELLED = {"null_type": "null", "duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}


class CelType(NamedTuple):
    name: str
    of: tuple[CelType, ...] = ()

    def __str__(self) -> str:
        return _SPELLED.get(self.name, self.name) + (f"({', '.join(map(str, self.of))})" if self.of else "")

    @property
    def is_variable(self) -> bool:
        return self.name[0] == "$"

    @property
    def is_open(self) -> bool:
        return self.name in ("dyn", "any")


HELD = 5  #: what it costs to compare a list, a map or an optional value within another
MOST_STEPS = 500_000  #: of one check; the longest expression needs 430,000 where no kind is nested deeply
ANY, DYN, NULL, BOOL, INT, STRING = (CelType(name) for name in ("any", "dyn", "null_type", "bool", "int", "string"))
_NEVER_NULL = {"bool", "int", "uint", "double", "string", "bytes", "list", "map", "type"}


def list_of(item: CelType) -> CelType:
    return CelType("list", (item,))


def map_of(key: CelType, value: CelType) -> CelType:
    return CelType("map", (key, value))


def optional_of(value: CelType) -> CelType:
    return CelType("optional_type", (value,))


@lru_cache(maxsize=256)
def kind(text: str) -> CelType:
    """The kind written in the form of signatures, such as `map<string, list<A>>`."""
    return next(_read(iter([*_TOKEN.findall(text), ","])))[0]


def _read(tokens: Iterator[str]) -> Iterator[tuple[CelType, str]]:
    """The kinds up to a closing bracket, each with the mark that follows it."""
    mark = ","
    while mark == ",":
        name, mark, of = next(tokens), next(tokens), tuple[CelType, ...]()
        if mark == "<":
            of = tuple(inner for inner, _ in _read(tokens))
            mark = next(tokens, ">")
        yield CelType(f"${name}" if len(name) == 1 else name, of), mark


def with_fresh(of: CelType, suffix: str) -> CelType:
    """The kind with its variables renamed, so that two uses of a signature do not share variables."""
    return CelType(of.name + suffix if of.is_variable else of.name, tuple(with_fresh(inner, suffix) for inner in of.of))


class KnownKinds:
    """The kinds found for type variables in one check. What an attempt has found can be forgotten. Whoever walks a kind counts the steps: a
    short expression can make a kind that is written in more characters than any memory has."""

    __slots__ = ("_before", "_kinds", "_steps")

    def __init__(self) -> None:
        self._kinds: dict[str, CelType] = {}
        self._before: list[tuple[str, CelType | None]] = []
        self._steps = 0

    def step(self) -> None:
        """Raises CompileError if there were too many."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise CompileError("the types of the expression are too large to be compared")

    def mark(self) -> int:
        return len(self._before)

    def forget(self, mark: int) -> None:
        """Forget what was found since the mark."""
        while len(self._before) > mark:
            name, before = self._before.pop()
            if before is None:
                del self._kinds[name]
            else:
                self._kinds[name] = before

    def found(self, variable: CelType, kind: CelType) -> None:
        self._before.append((variable.name, self._kinds.get(variable.name)))
        self._kinds[variable.name] = kind

    def get(self, variable: CelType) -> CelType | None:
        return self._kinds.get(variable.name)

    def last(self, of: CelType) -> CelType:
        """The kind; for a variable that stands for another variable the last one. The way to it is one step from then on."""
        passed = []
        while of.is_variable and (after := self.get(of)) is not None and after.is_variable:
            passed.append(of)
            of = after
        for variable in passed[:-1]:
            self.found(variable, of)
        return of


def settled(of: CelType, known: KnownKinds, default: CelType | None = None) -> CelType:
    """The kind with known variables replaced by their kinds, and unknown ones by the default, if there is one."""
    known.step()
    of = known.last(of)
    if of.is_variable:
        of = known.get(of) or of
    if of.is_variable:
        return default or of
    return CelType(of.name, tuple(settled(inner, known, default) for inner in of.of)) if of.of else of


def fits(found: CelType, wanted: CelType, known: KnownKinds) -> bool:
    """Whether `found` is accepted where `wanted` is expected. What this says about variables is added to `known`, also if it is False."""
    known.step()
    found, wanted = known.last(found), known.last(wanted)
    if wanted.is_variable:
        answer = _stands_for(wanted, found, known)
        if answer is not None:
            return answer
    if found.is_variable:
        return bool(_stands_for(found, wanted, known))
    if found.is_open or wanted.is_open:
        return True
    if NULL in (found, wanted):
        return found == wanted or (wanted if found == NULL else found).name not in _NEVER_NULL
    if found.name != wanted.name:
        return False
    return found.name == "type" or (
        len(found.of) == len(wanted.of) and all(fits(*pair, known) for pair in zip(found.of, wanted.of, strict=True))
    )


def _stands_for(variable: CelType, other: CelType, known: KnownKinds) -> bool | None:
    """Whether the variable can stand for the other kind, noted in `known`; None if it is unknown and occurs in the other kind."""
    if variable == other:
        return True
    before = known.get(variable)
    if before is not None:
        if not fits(other, before, known):
            return False
        general = more_general(other, before, known)
        if not _occurs(variable, general, known):
            known.found(variable, general)
        return True
    if _occurs(variable, other, known):
        return None
    known.found(variable, other)
    return True


def _occurs(variable: CelType, within: CelType, known: KnownKinds) -> bool:
    known.step()
    within = known.last(within)
    if within.is_variable:
        after = known.get(within)
        return variable == within or (after is not None and _occurs(variable, after, known))
    return any(_occurs(variable, inner, known) for inner in within.of)


def more_general(one: CelType, other: CelType, known: KnownKinds) -> CelType:
    """The more general of two kinds that fit each other."""
    return one if _is_as_general(one, other, known) else other


def _is_as_general(one: CelType, other: CelType, known: KnownKinds) -> bool:
    known.step()
    if one.is_open or one.is_variable:
        return True
    if other.is_open or other.is_variable or one.name != other.name or len(one.of) != len(other.of):
        return False
    return all(_is_as_general(*pair, known) for pair in zip(one.of, other.of, strict=True))


class Uint(int):
    """An unsigned integer of 64 bits."""


class Version(NamedTuple):
    """A semantic version; a pre-release sorts before its release."""

    major: int
    minor: int
    patch: int
    released: bool
    before: tuple[tuple[bool, int, str], ...] = ()


class Amount(NamedTuple):
    """An exact quantity."""

    value: Fraction
    scale: int | None  #: the power of ten of its unit; None if upstream does not store it as an int64


class Optional(NamedTuple):
    """An optional value, which may be absent."""

    present: bool
    value: Any = None


class Instant(NamedTuple):
    """A timestamp: nanoseconds since 1970, and an offset from UTC in minutes (east is positive), for printing only."""

    ns: int
    offset: int = 0


class Span(NamedTuple):
    """A duration in nanoseconds."""

    ns: int


class Address(NamedTuple):
    ip: IPv4Address | IPv6Address


class Network(NamedTuple):
    """An IP address, and the number of its bits that are the network's prefix."""

    ip: IPv4Address | IPv6Address
    bits: int


class Url(NamedTuple):
    parts: SplitResult


class Format(NamedTuple):
    name: str


class Type(NamedTuple):
    """The value of `type(x)`."""

    name: str


class Authorizer(dict[str, Any]):
    """Whom expressions ask what the user of a request may do, or the service account that `account` names; its entries are its fields."""

    def __init__(
        self, ask: Callable[[tuple[str, str] | None, str, dict[str, str]], bool], account: tuple[str, str] | None = None, **fields: Any
    ) -> None:
        super().__init__(fields)
        self.ask = ask
        self.account = account


class PathCheck(NamedTuple):
    authorizer: Authorizer
    path: str


class GroupCheck(NamedTuple):
    authorizer: Authorizer
    group: str


class ResourceCheck(NamedTuple):
    authorizer: Authorizer
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class Decision(NamedTuple):
    allowed: bool


_KINDS: dict[type, str] = {
    Authorizer: "kubernetes.authorization.Authorizer",
    PathCheck: "kubernetes.authorization.PathCheck",
    GroupCheck: "kubernetes.authorization.GroupCheck",
    ResourceCheck: "kubernetes.authorization.ResourceCheck",
    Decision: "kubernetes.authorization.Decision",
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
TYPES = {name: Type(name) for name in (*_PLAIN, *_MADE)}  #: the names of types that expressions can use
_HOLDING = {"list": "list<dyn>", "map": "map<dyn, dyn>", "optional_type": "optional_type<dyn>"}
_KIND_NAMES = {"google.protobuf.Timestamp": "timestamp", "google.protobuf.Duration": "duration"}
TYPE_KINDS = {name: CelType("type", (kind(_HOLDING.get(name, _KIND_NAMES.get(name, name))),)) for name in TYPES}
NUMBERS = (int, float)
AUTHORIZER = CelType(_KINDS[Authorizer])
#: its fields, as an environment declares them
AUTHORIZER_FIELDS = {AUTHORIZER.name: {"requestResource": CelType(_KINDS[ResourceCheck])}}


def kind_of(value: Any) -> str:
    """The name of a value's kind, without the kinds of what it holds."""
    return _KINDS.get(type(value)) or ("map" if isinstance(value, Mapping) else DYN.name)


def type_of(value: Any) -> Type:
    return Type(str(CelType(kind_of(value))) if value is not None else "null_type")


def equal(left: Any, right: Any, budget: CostBudget) -> bool:
    """Whether two values are equal. Numbers of different kinds can be equal; other values of different kinds are not.

    What lists, maps and optional values hold is paid for where these are within others: a value may hold another very often."""
    if type(left) is type(right) and isinstance(left, str | int | float):
        return bool(left == right)
    if isinstance(left, NUMBERS) and isinstance(right, NUMBERS):
        return left == right and isinstance(left, bool) == isinstance(right, bool)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(_held_equal(one, other, budget) for one, other in zip(left, right, strict=True))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return len(left) == len(right) and all(key in right and _held_equal(value, right[key], budget) for key, value in left.items())
    if type(left) is not type(right):
        return False
    if isinstance(left, Optional):
        return left.present == right.present and _held_equal(left.value, right.value, budget)
    if isinstance(left, Instant | Amount):
        return bool(left[0] == right[0])
    return bool(left == right)


def _held_equal(left: Any, right: Any, budget: CostBudget) -> bool:
    if isinstance(left, list | Mapping | Optional):
        budget.pay(HELD + size_of(left) // 10)
    return equal(left, right, budget)


def size_of(value: Any) -> int:
    """The size of a value for the cost of comparing it: its characters, bytes or items; 1 for most others."""
    if isinstance(value, Optional):
        return size_of(value.value)
    if isinstance(value, Address | Network):
        return value.ip.max_prefixlen // 8
    return len(value) if isinstance(value, str | bytes | list | Mapping) else 1
