"""The value of an expression for one device.

`device.driver`, `device.attributes["domain"].name` and `device.capacity["domain"].name` are what it may look at. Asking for an attribute
that the device does not have is an error, which `&&` and `||` pass over if the other side decides.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pumice.api.devices import Attribute, Device
from pumice.api.quantity import Quantity, QuantityError, quantity
from pumice.plugins.kube.cel.syntax import Binary, Call, CelError, Choice, Index, Items, Literal, Member, Name, Node, Unary

ORDERS: dict[str, Callable[[Any, Any], bool]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


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


class Domains(dict[str, dict[str, Any]]):
    """Names by domain. A domain that nobody uses is empty, not an error."""


class Facts(NamedTuple):
    """What an expression may look at."""

    driver: str
    attributes: Domains
    capacity: Domains


def facts_of(device: Device, driver: str) -> Facts:
    attributes = {name: _attribute(value) for name, value in (device.attributes or {}).items()}
    capacity = {name: each.value for name, each in (device.capacity or {}).items()}
    return Facts(driver, _by_domain(attributes, driver), _by_domain(capacity, driver))


def _attribute(value: Attribute) -> Any:
    if value.version is not None:
        return version(value.version)
    return next((part for part in (value.string, value.int_, value.bool_) if part is not None), None)


def _by_domain(values: Mapping[str, Any], driver: str) -> Domains:
    """A name without a domain is in the driver's."""
    found = Domains()
    for full, value in values.items():
        domain, slash, name = full.rpartition("/")
        found.setdefault(domain if slash else driver, {})[name] = value
    return found


def satisfies(tree: Node, facts: Facts) -> bool:
    """Raises CelError if the expression has no value, or none that is true or false."""
    answer = _value(tree, facts)
    if not isinstance(answer, bool):
        raise CelError("the expression is neither true nor false")
    return answer


def _value(node: Node, facts: Facts) -> Any:
    match node:
        case Literal(value):
            return value
        case Name("device"):
            return facts
        case Name(name):
            raise CelError(f"{name} is not known")
        case Member(target, name):
            return _member(_value(target, facts), name)
        case Index(target, key):
            return _entry(_value(target, facts), _value(key, facts))
        case Items(items):
            return [_value(item, facts) for item in items]
        case Choice(condition, yes, no):
            return _value(yes if _truth(_value(condition, facts)) else no, facts)
        case Unary(sign, operand):
            value = _value(operand, facts)
            return not _truth(value) if sign == "!" else -_number(value)
        case Binary("&&" | "||" as sign, left, right):
            return _either(sign == "||", left, right, facts)
        case Binary(sign, left, right):
            return _binary(sign, _value(left, facts), _value(right, facts))
        case Call(None, "has", (argument,)):
            return _has(argument, facts)
    assert isinstance(node, Call)
    own = () if node.target is None else (_value(node.target, facts),)
    return _call(node.name, [*own, *(_value(argument, facts) for argument in node.arguments)])


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise CelError("a condition is neither true nor false")
    return value


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CelError("no such overload")
    return value


def _either(decisive: bool, left: Node, right: Node, facts: Facts) -> bool:
    """`&&` and `||`: one side that decides is enough, though the other has no value."""
    error: CelError | None = None
    for side in (left, right):
        try:
            if _truth(_value(side, facts)) is decisive:
                return decisive
        except CelError as met:
            error = error or met
    if error is not None:
        raise error
    return not decisive


def _member(target: Any, name: str) -> Any:
    if isinstance(target, Facts):
        if name not in Facts._fields:
            raise CelError(f"device.{name} is not known")
        return getattr(target, name)
    return _entry(target, name)


def _entry(target: Any, key: Any) -> Any:
    if isinstance(target, list) and isinstance(key, int) and 0 <= key < len(target):
        return target[key]
    if not isinstance(target, Mapping):
        raise CelError(f"there is no {key} here")
    if key in target:
        return target[key]
    if isinstance(target, Domains):
        return {}
    raise CelError(f"no such key: {key}")


def _has(argument: Node, facts: Facts) -> bool:
    if not isinstance(argument, Member | Index):
        raise CelError("has() asks for a member")
    holder = _value(argument.target, facts)
    key = argument.name if isinstance(argument, Member) else _value(argument.key, facts)
    return key in holder if isinstance(holder, Mapping) else key in Facts._fields


def _binary(sign: str, left: Any, right: Any) -> Any:
    if sign == "in":
        if not isinstance(right, list | Mapping):
            raise CelError("in asks for a list or a map")
        return left in right
    if sign in ("==", "!="):
        return (_alike(left, right) and _comparable(left) == _comparable(right)) is (sign == "==")
    if sign == "+" and isinstance(left, str) and isinstance(right, str):
        return left + right
    if sign in ORDERS and type(left) is type(right) and isinstance(left, str | Version | Quantity):
        return ORDERS[sign](_comparable(left), _comparable(right))
    return _arithmetic(sign, _number(left), _number(right))


def _arithmetic(sign: str, left: Any, right: Any) -> Any:
    if sign in ORDERS:
        return ORDERS[sign](left, right)
    if sign in "/%" and right == 0:
        raise CelError("division by zero")
    match sign:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/" if isinstance(left, int) and isinstance(right, int):
            return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        case "/":
            return left / right
    return abs(left) % abs(right) * (-1 if left < 0 else 1)


def _alike(left: Any, right: Any) -> bool:
    return type(left) is type(right) or {type(left), type(right)} == {int, float}


def _comparable(value: Any) -> Any:
    return value.milli if isinstance(value, Quantity) else value


def _call(name: str, values: list[Any]) -> Any:
    first, rest = values[0], values[1:]
    try:
        match name:
            case "quantity":
                return quantity(first)
            case "semver":
                return version(first)
            case "string":
                return first if isinstance(first, str) else str(first).lower() if isinstance(first, bool) else str(first)
            case "int":
                return int(first)
            case "size":
                return len(first)
            case "asInteger":
                return first.whole
            case "major" | "minor" | "patch":
                return getattr(first, name)
            case "compareTo" | "isGreaterThan" | "isLessThan":
                return _compare(name, first, rest[0])
    except (QuantityError, ValueError, TypeError, AttributeError) as error:
        raise CelError(f"{name}(): {error}") from None
    return _on_text(name, first, rest)


def _compare(name: str, left: Any, right: Any) -> Any:
    if type(left) is not type(right):
        raise CelError("no such overload")
    order = (_comparable(left) > _comparable(right)) - (_comparable(left) < _comparable(right))
    return order if name == "compareTo" else order == (1 if name == "isGreaterThan" else -1)


def _on_text(name: str, text: Any, rest: list[Any]) -> Any:
    if not all(isinstance(each, str) for each in (text, *rest)):
        raise CelError(f"{name}() is for text")
    match name:
        case "startsWith":
            return text.startswith(rest[0])
        case "endsWith":
            return text.endswith(rest[0])
        case "contains":
            return rest[0] in text
        case "lowerAscii":
            return text.lower()
        case "upperAscii":
            return text.upper()
    try:
        return re.search(rest[0], text) is not None
    except re.error as error:
        raise CelError(f"matches(): {error}") from None
