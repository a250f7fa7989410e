"""CEL's operators on numbers, strings, times and lists; its conversions between numbers, strings and bytes."""

import operator
import re
from collections.abc import Callable
from math import isfinite
from typing import Any

from pumice.api.cel.cost import CostBudget
from pumice.api.cel.errors import EvaluationError
from pumice.api.cel.functions import NO_OVERLOAD, free, function, tenth
from pumice.api.cel.values import Address, Amount, Format, Instant, Network, Span, Type, Uint, Url, Version, equal, size_of, type_of

_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE)
_HEX = re.compile(r"[+-]?0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?[0-9]+")
_TRUE, _FALSE = ("1", "t", "T", "true", "TRUE", "True"), ("0", "f", "F", "false", "FALSE", "False")


def whole(value: int, unsigned: bool = False) -> Any:
    """The number as an int or uint of 64 bits. Raises EvaluationError if it does not fit."""
    if unsigned:
        if 0 <= value < 2**64:
            return Uint(value)
        raise EvaluationError("unsigned integer overflow")
    if -(2**63) <= value < 2**63:
        return int(value)
    raise EvaluationError("integer overflow")


function("int(int) int", "int(uint) int")(lambda value: int(whole(int(value))))
function("uint(uint) uint", "uint(int) uint")(lambda value: whole(int(value), unsigned=True))


@function("int(double) int")
def double_to_int(value: float) -> int:
    if not isfinite(value):
        raise EvaluationError("integer overflow")
    return int(whole(int(value)))


@function("uint(double) uint")
def double_to_uint(value: float) -> Any:
    if not isfinite(value):
        raise EvaluationError("unsigned integer overflow")
    return whole(int(value), unsigned=True)


function("int(string) int")(lambda text: int(whole(_read(text, "int"))))


@function("uint(string) uint")
def text_to_uint(text: str) -> Any:
    if text[:1] in ("+", "-"):
        raise EvaluationError("type conversion error from 'string' to 'uint'")
    return whole(_read(text, "uint"), unsigned=True)


def _read(text: str, to: str) -> int:
    if _WHOLE.fullmatch(text) is None:
        raise EvaluationError(f"type conversion error from 'string' to '{to}'")
    return int(text)


function("double(int) double", "double(uint) double", "double(double) double")(float)


@function("double(string) double")
def text_to_double(text: str) -> float:
    if len(text) < 1000 and _FLOAT.fullmatch(text):
        return float(text)
    if len(text) < 1000 and _HEX.fullmatch(text):
        return float.fromhex(text)
    raise EvaluationError("type conversion error from 'string' to 'double'")


function("bool(bool) bool")(lambda value: value)


@function("bool(string) bool")
def text_to_bool(text: str) -> bool:
    if text not in _TRUE + _FALSE:
        raise EvaluationError("type conversion error from 'string' to 'bool'")
    return text in _TRUE


function("bytes(bytes) bytes")(lambda value: value)
function("bytes(string) bytes", price=lambda text: -(-len(text) // 10))(lambda text: text.encode(errors="replace"))
function("dyn(A) dyn")(lambda value: value)
function("type(A) type<A>")(lambda value: Type("type") if isinstance(value, Type) else type_of(value))
function("string(string) string", price=free)(lambda text: text)


@function("string(bool) string")
def bool_to_text(value: bool) -> str:
    return "true" if value else "false"


function("string(int) string", "string(uint) string")(lambda value: str(int(value)))


@function("string(bytes) string", price=lambda value: -(-len(value) // 10))
def bytes_to_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


@function("string(double) string")
def double_to_text(value: float) -> str:
    """The shortest digits that mean this number, as Go's %g prints them: with an exponent from a million on, and below 0.0001."""
    if not isfinite(value):
        return "NaN" if value != value else "+Inf" if value > 0 else "-Inf"
    mantissa, _, power = repr(float(value)).partition("e")
    sign, digits = ("-", mantissa[1:]) if mantissa[0] == "-" else ("", mantissa)
    before, _, after = digits.partition(".")
    figures = (before + after).lstrip("0").rstrip("0")
    if not figures:
        return sign + "0"
    leading = len(before + after) - len((before + after).lstrip("0"))
    exponent = len(before) + int(power or 0) - leading - 1
    if -5 < exponent < 6:
        return sign + _plain(figures, exponent)
    point = f".{figures[1:]}" if len(figures) > 1 else ""
    return f"{sign}{figures[0]}{point}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"


def _plain(figures: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + figures
    whole_part, rest = figures[: exponent + 1].ljust(exponent + 1, "0"), figures[exponent + 1 :]
    return f"{whole_part}.{rest}" if rest else whole_part


FIRST_NS, LAST_NS = -62135596800 * 10**9, 253402300800 * 10**9 - 1  #: the first instant of year 1, and the last of year 9999
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


@function("==(A, A) bool", price=_smaller, pays=True)
def same(budget: CostBudget, left: Any, right: Any) -> bool:
    if type(left) is not type(right) and isinstance(left, Amount | Version | Url | Format | Address | Network):
        raise EvaluationError(NO_OVERLOAD)
    return equal(left, right, budget)


function("!=(A, A) bool", price=_smaller, pays=True)(lambda budget, left, right: not same(budget, left, right))
function("in(A, map<A, B>) bool")(lambda key, entries: is_key(key) and key in entries)


@function("in(A, list<A>) bool", price=lambda item, items: len(items), pays=True)
def is_in_list(budget: CostBudget, item: Any, items: list[Any]) -> bool:
    return any(equal(item, each, budget) for each in items)


def is_key(key: Any) -> bool:
    return isinstance(key, bool | int | float | str)


function("!_(bool) bool")(lambda value: not value)
function("-_(int) int", "-_(double) double")(lambda value: whole(-value) if isinstance(value, int) else -value)
function("+(EACH, EACH) EACH", each=("int", "uint", "double"))(lambda left, right: _same(left, left + right))
function("-(EACH, EACH) EACH", each=("int", "uint", "double"))(lambda left, right: _same(left, left - right))
function("*(EACH, EACH) EACH", each=("int", "uint", "double"))(lambda left, right: _same(left, left * right))


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
def joined_lists(budget: CostBudget, left: list[Any], right: list[Any]) -> list[Any]:
    budget.pay((len(left) + len(right)) // 16)
    return left + right


function("+(duration, duration) duration")(lambda left, right: Span(whole(left.ns + right.ns)))
function("-(duration, duration) duration")(lambda left, right: Span(whole(left.ns - right.ns)))
function("+(timestamp, duration) timestamp")(lambda left, right: moment(left.ns + right.ns, left.offset))
function("+(duration, timestamp) timestamp")(lambda left, right: moment(left.ns + right.ns, right.offset))
function("-(timestamp, duration) timestamp")(lambda left, right: moment(left.ns - right.ns, left.offset))
function("-(timestamp, timestamp) duration")(lambda left, right: Span(whole(left.ns - right.ns)))


def moment(ns: int, offset: int = 0) -> Instant:
    """The instant at these nanoseconds since 1970. Raises EvaluationError outside of the years 1 to 9999."""
    if not FIRST_NS <= ns <= LAST_NS:
        raise EvaluationError("timestamp overflow")
    return Instant(ns, offset)


def truth(value: Any) -> bool:
    """The value itself, which must be a boolean. Raises EvaluationError."""
    if not isinstance(value, bool):
        raise EvaluationError(NO_OVERLOAD)
    return value
