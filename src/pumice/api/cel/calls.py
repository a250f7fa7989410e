"""The functions and methods: of texts, lists, numbers, quantities, versions, times and optional values."""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from pumice.api.cel.syntax import CelError
from pumice.api.cel.values import Budget, Instant, Optional, Span, comparable, type_of, version
from pumice.api.patterns import pattern
from pumice.api.quantity import Quantity, QuantityError, format_milli, quantity
from pumice.api.times import duration, instant

Values = list[Any]


def call(name: str, values: Values, budget: Budget) -> Any:
    """`values` begin with the object of a method. Raises CelError."""
    budget.spend_on(*values)
    function = _FUNCTIONS.get(name)
    try:
        if function is not None:
            return function(*values)
        return _on_text(name, values[0], values[1:])
    except (QuantityError, ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise CelError(f"{name}(): {error}") from None


def _compared(left: Any, right: Any) -> int:
    if type(left) is not type(right):
        raise CelError("no such overload")
    return int(comparable(left) > comparable(right)) - int(comparable(left) < comparable(right))


def _string(value: Any) -> str:
    if isinstance(value, Instant):
        return datetime.fromtimestamp(value.seconds, UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Span):
        return f"{value.seconds:g}s"
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def _int(value: Any) -> int:
    return int(value.seconds) if isinstance(value, Instant | Span) else int(value)


def _bool(value: Any) -> bool:
    if value in ("true", "True", "TRUE", "t", "1", True):
        return True
    if value in ("false", "False", "FALSE", "f", "0", False):
        return False
    raise ValueError(f"{value} is neither true nor false")


def _can(make: Callable[[Any], Any]) -> Callable[[Any], bool]:
    def can(value: Any) -> bool:
        try:
            make(value)
        except (CelError, QuantityError, ValueError, TypeError):
            return False
        return True

    return can


def _is_url(text: str) -> bool:
    parts = urlsplit(text)
    return bool(parts.scheme and parts.netloc) or text.startswith("/")


def _sum(amount: Quantity, other: Any, way: int) -> Quantity:
    return quantity(format_milli(amount.milli + way * (other.milli if isinstance(other, Quantity) else 1000 * other)))


def _contains_all(items: Values, others: Values) -> bool:
    return all(other in items for other in others)


def _extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    def extreme(*values: Any) -> Any:
        items = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        return choose(items, key=comparable)

    return extreme


def _value(value: Any) -> Any:
    if not isinstance(value, Optional):
        raise CelError("no such overload")
    if not value.present:
        raise CelError("optional.none() has no value")
    return value.value


def _at(field: str, shift: int = 0) -> Callable[[Any], int]:
    """A part of an instant; hours, minutes and seconds also of a span as a whole."""
    units = {"hour": 3600, "minute": 60, "second": 1}

    def part(value: Any) -> int:
        if isinstance(value, Span):
            return int(value.seconds // units[field])
        return int(getattr(datetime.fromtimestamp(value.seconds, UTC), field)) + shift

    return part


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "quantity": quantity,
    "isQuantity": _can(quantity),
    "semver": version,
    "isSemver": _can(version),
    "string": _string,
    "int": _int,
    "uint": _int,
    "double": float,
    "bool": _bool,
    "dyn": lambda value: value,
    "type": type_of,
    "timestamp": lambda value: value if isinstance(value, Instant) else Instant(instant(value)),
    "duration": lambda value: value if isinstance(value, Span) else Span(duration(value)),
    "isURL": _is_url,
    "isIP": _can(ipaddress.ip_address),
    "isCIDR": _can(lambda text: ipaddress.ip_network(text, strict=False) if "/" in text else ipaddress.ip_network("")),
    "size": len,
    "isInteger": lambda amount: amount.milli % 1000 == 0,
    "asInteger": lambda amount: amount.whole,
    "asApproximateFloat": lambda amount: amount.milli / 1000,
    "sign": lambda amount: (amount.milli > 0) - (amount.milli < 0),
    "add": lambda amount, other: _sum(amount, other, 1),
    "sub": lambda amount, other: _sum(amount, other, -1),
    "major": lambda value: value.major,
    "minor": lambda value: value.minor,
    "patch": lambda value: value.patch,
    "compareTo": _compared,
    "isGreaterThan": lambda left, right: _compared(left, right) > 0,
    "isLessThan": lambda left, right: _compared(left, right) < 0,
    "isSorted": lambda items: all(comparable(one) <= comparable(other) for one, other in itertools.pairwise(items)),
    "sum": sum,
    "min": _extreme(min),
    "max": _extreme(max),
    "math.least": _extreme(min),
    "math.greatest": _extreme(max),
    "sets.contains": _contains_all,
    "sets.equivalent": lambda items, others: _contains_all(items, others) and _contains_all(others, items),
    "sets.intersects": lambda items, others: any(other in items for other in others),
    "optional.of": lambda value: Optional(True, value),
    "optional.none": lambda: Optional(False),
    "hasValue": lambda value: value.present,
    "value": _value,
    "or": lambda value, other: value if value.present else other,
    "orValue": lambda value, other: value.value if value.present else other,
    "getFullYear": _at("year"),
    "getMonth": _at("month", -1),
    "getDayOfMonth": _at("day", -1),
    "getHours": _at("hour"),
    "getMinutes": _at("minute"),
    "getSeconds": _at("second"),
}


def _on_text(name: str, text: Any, rest: Values) -> Any:
    if isinstance(text, list) and name in ("indexOf", "lastIndexOf", "join"):
        return _on_list(name, text, rest)
    if not isinstance(text, str) or not all(isinstance(each, str | int) for each in rest) or isinstance(rest[:1], bool):
        raise CelError(f"{name}() is for text")
    match name:
        case "substring" | "charAt":
            return _part(name, text, rest)
        case "split":
            limit = rest[1] if len(rest) > 1 else -1
            return list(text)[: limit if limit >= 0 else None] if rest[0] == "" else text.split(rest[0], limit - 1 if limit > 0 else -1)
        case "replace":
            return text.replace(*rest)
        case "indexOf":
            return text.find(*rest)
        case "lastIndexOf":
            return text.rfind(rest[0])
        case "find":
            return pattern(rest[0]).first(text) or ""
        case "findAll":
            return pattern(rest[0]).each(text, rest[1] if len(rest) > 1 else -1)
        case "matches":
            return pattern(rest[0]).found_in(text)
    return _TEXT[name](text, *rest)


_TEXT: dict[str, Callable[..., Any]] = {
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": str.__contains__,
    "lowerAscii": str.lower,
    "upperAscii": str.upper,
    "trim": str.strip,
}


def _part(name: str, text: str, rest: Values) -> str:
    start, end = rest[0], rest[0] + 1 if name == "charAt" else rest[1] if len(rest) > 1 else len(text)
    if not 0 <= start <= len(text) or (name == "substring" and not start <= end <= len(text)):
        raise CelError(f"{name}(): index out of range: {start}")
    return text[start:end]


def _on_list(name: str, items: Values, rest: Values) -> Any:
    if name == "join":
        return (rest[0] if rest else "").join(items)
    places = [index for index, item in enumerate(items) if item == rest[0]]
    return -1 if not places else places[0] if name == "indexOf" else places[-1]
