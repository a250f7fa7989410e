"""Operators on numbers, texts, times and lists."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from pumice.api.cel.functions import NO_OVERLOAD, Purse, function, method, tenth
from pumice.api.cel.library.numbers import whole
from pumice.api.cel.tree import EvaluationError
from pumice.api.cel.values import Address, Amount, Format, Instant, Network, Optional, Span, Uint, Url, Version, equal, size_of

FIRST_NS, LAST_NS = -62135596800 * 10**9, 253402300800 * 10**9 - 1  #: of the years 1 and 9999
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_COMPARED = ("int", "uint", "double")
_SAME = ("bool", "string", "bytes", "timestamp", "duration")


def _smaller(left: Any, right: Any) -> int:
    if isinstance(left, Amount | Version | Url | Format | Address | Network):
        return 1
    return tenth(min(size_of(left), size_of(right)))


for _sign, _order in _ORDERS.items():
    _pairs = [f"{one}, {other}" for one in _COMPARED for other in _COMPARED] + [f"{each}, {each}" for each in _SAME]
    function(f"{_sign}(EACH) bool", each=_pairs, price=_smaller)(_order)


@function("==(A, A) bool", price=_smaller)
def same(left: Any, right: Any) -> bool:
    if type(left) is not type(right) and isinstance(left, Amount | Version | Url | Format | Address | Network):
        raise EvaluationError(NO_OVERLOAD)
    return equal(left, right)


@function("!=(A, A) bool", price=_smaller)
def different(left: Any, right: Any) -> bool:
    return not same(left, right)


@function("in(A, list<A>) bool", price=lambda item, items: len(items))
def is_in_list(item: Any, items: list[Any]) -> bool:
    return any(equal(item, each) for each in items)


@function("in(A, map<A, B>) bool")
def is_in_map(key: Any, entries: Mapping[Any, Any]) -> bool:
    return is_key(key) and key in entries


def is_key(key: Any) -> bool:
    return isinstance(key, bool | int | float | str)


@function("!_(bool) bool")
def opposite(value: bool) -> bool:
    return not value


@function("-_(int) int", "-_(double) double")
def negative(value: Any) -> Any:
    return whole(-value) if isinstance(value, int) else -value


@function("+(EACH, EACH) EACH", each=("int", "uint", "double"))
def plus(left: Any, right: Any) -> Any:
    return _same(left, left + right)


@function("-(EACH, EACH) EACH", each=("int", "uint", "double"))
def minus(left: Any, right: Any) -> Any:
    return _same(left, left - right)


@function("*(EACH, EACH) EACH", each=("int", "uint", "double"))
def times(left: Any, right: Any) -> Any:
    return _same(left, left * right)


@function("/(int, int) int", "/(uint, uint) uint")
def divided(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return int(_same(left, quotient if (left < 0) == (right < 0) else -quotient)) if type(left) is int else Uint(quotient)


@function("/(double, double) double")
def divided_double(left: float, right: float) -> float:
    if right:
        return left / right
    return float("nan") if left == 0 or left != left else float("inf") * (1 if left > 0 else -1) * (-1 if str(right)[0] == "-" else 1)


@function("%(int, int) int", "%(uint, uint) uint")
def remainder(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("modulus by zero")
    found = abs(left) % abs(right)
    return Uint(found) if isinstance(left, Uint) else -found if left < 0 else found


def _same(left: Any, found: Any) -> Any:
    return found if isinstance(left, float) else whole(found, isinstance(left, Uint))


@function("+(string, string) string", "+(bytes, bytes) bytes", price=lambda left, right: tenth(len(left), len(right)))
def joined(left: Any, right: Any) -> Any:
    return left + right


@function("+(list<A>, list<A>) list<A>", pays=True)
def joined_lists(purse: Purse, left: list[Any], right: list[Any]) -> list[Any]:
    purse.pay((len(left) + len(right)) // 16)
    return left + right


@function("+(duration, duration) duration")
def plus_span(left: Span, right: Span) -> Span:
    return Span(whole(left.ns + right.ns))


@function("-(duration, duration) duration")
def minus_span(left: Span, right: Span) -> Span:
    return Span(whole(left.ns - right.ns))


@function("+(timestamp, duration) timestamp")
def later(left: Instant, right: Span) -> Instant:
    return moment(left.ns + right.ns, left.offset)


@function("+(duration, timestamp) timestamp")
def later_by(left: Span, right: Instant) -> Instant:
    return moment(left.ns + right.ns, right.offset)


@function("-(timestamp, duration) timestamp")
def earlier(left: Instant, right: Span) -> Instant:
    return moment(left.ns - right.ns, left.offset)


@function("-(timestamp, timestamp) duration")
def between(left: Instant, right: Instant) -> Span:
    return Span(whole(left.ns - right.ns))


def moment(ns: int, offset: int = 0) -> Instant:
    """The instant, if there is such a one. Raises EvaluationError."""
    if not FIRST_NS <= ns <= LAST_NS:
        raise EvaluationError("timestamp overflow")
    return Instant(ns, offset)


def truth(value: Any) -> bool:
    """The value, which must be true or false. Raises EvaluationError."""
    if not isinstance(value, bool):
        raise EvaluationError(NO_OVERLOAD)
    return value


# Values that may not be there.

NONE = Optional(False)


@function("optional.of(A) optional_type<A>")
def of(value: Any) -> Optional:
    return Optional(True, value)


@function("optional.none() optional_type<A>")
def none() -> Optional:
    return NONE


@function("optional.ofNonZeroValue(A) optional_type<A>")
def of_non_zero(value: Any) -> Optional:
    empty = value in (None, Span(0)) if not isinstance(value, bool | int | float | str | bytes | list | Mapping) else not value
    return NONE if empty else Optional(True, value)


@method("hasValue(optional_type<A>) bool")
def has_value(value: Optional) -> bool:
    return value.present


@method("value(optional_type<A>) A")
def value_of(value: Optional) -> Any:
    if not value.present:
        raise EvaluationError("optional.none() dereference")
    return value.value


@method("or(optional_type<A>, optional_type<A>) optional_type<A>")
def or_(value: Optional, other: Optional) -> Optional:
    return value if value.present else other


@method("orValue(optional_type<A>, A) A")
def or_value(value: Optional, other: Any) -> Any:
    return value.value if value.present else other


@function("optional.unwrap(list<optional_type<A>>) list<A>", pays=True)
@method("unwrapOpt(list<optional_type<A>>) list<A>", pays=True)
def unwrap(purse: Purse, items: list[Any]) -> list[Any]:
    if not all(isinstance(item, Optional) for item in items):
        raise EvaluationError("no such overload")
    purse.pay(len(items) // 16)
    return [item.value for item in items if item.present]
