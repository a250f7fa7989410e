"""The value of an expression, under names that stand for JSON values and those of `values`.

Asking for a key that a map does not have is an error, which `&&`, `||` and the macros pass over if the rest decides. A map of a class with
`__missing__` answers for keys it does not have. Every node visited costs a step of the budget, so no expression runs for long.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from pumice.api.cel.calls import call
from pumice.api.cel.syntax import Binary, Call, CelError, Choice, Each, Index, Items, Literal, Member, Name, Node, Record, Unary
from pumice.api.cel.values import TYPES, Budget, Instant, Optional, Span, Version, comparable
from pumice.api.quantity import Quantity

ORDERS: dict[str, Callable[[Any, Any], bool]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
#: how names that are no identifiers are written
_ESCAPED = {"__underscores__": "__", "__dot__": ".", "__dash__": "-", "__slash__": "/"}


class Scope(NamedTuple):
    """What names mean, and what is left of the budget."""

    names: Mapping[str, Any]
    budget: Budget

    def with_name(self, name: str, value: Any) -> Scope:
        return Scope({**self.names, name: value}, self.budget)


def holds(tree: Node, names: Mapping[str, Any], budget: Budget | None = None) -> bool:
    """Raises CelError if the expression has no value, or none that is true or false."""
    answer = value_of(tree, names, budget)
    if not isinstance(answer, bool):
        raise CelError("the expression is neither true nor false")
    return answer


def value_of(tree: Node, names: Mapping[str, Any], budget: Budget | None = None) -> Any:
    """Raises CelError."""
    try:
        return _value(tree, Scope(names, budget or Budget()))
    except RecursionError:
        raise CelError("the expression nests too deeply") from None


def _value(node: Node, scope: Scope) -> Any:
    scope.budget.spend()
    match node:
        case Literal(value):
            return value
        case Name(name):
            return _named(name, scope)
        case Member(target, name, optional):
            return _entry(_value(target, scope), name, optional, is_field=True)
        case Index(target, key, optional):
            return _entry(_value(target, scope), _value(key, scope), optional)
        case Items(items):
            return [_value(item, scope) for item in items]
        case Record(entries):
            return {_value(key, scope): _value(value, scope) for key, value in entries}
        case Choice(condition, yes, no):
            return _value(yes if _truth(_value(condition, scope)) else no, scope)
        case Unary(sign, operand):
            value = _value(operand, scope)
            return not _truth(value) if sign == "!" else -_number(value)
        case Binary("&&" | "||" as sign, left, right):
            return _decided(sign == "||", (_thunk(side, scope) for side in (left, right)))
        case Binary(sign, left, right):
            return _binary(sign, _value(left, scope), _value(right, scope), scope.budget)
        case Each():
            return _each(node, scope)
        case Call(None, "has", (argument,)):
            return _has(argument, scope)
    assert isinstance(node, Call)
    own = () if node.target is None else (_value(node.target, scope),)
    return call(node.name, [*own, *(_value(argument, scope) for argument in node.arguments)], scope.budget)


def _named(name: str, scope: Scope) -> Any:
    if name in scope.names:
        return scope.names[name]
    if name in TYPES:
        return TYPES[name]
    raise CelError(f"{name} is not known")


def _thunk(node: Node, scope: Scope) -> Callable[[], Any]:
    return lambda: _value(node, scope)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise CelError("a condition is neither true nor false")
    return value


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CelError("no such overload")
    return value


def _decided(decisive: bool, sides: Iterable[Callable[[], Any]]) -> bool:
    """`&&`, `||`, `all` and `exists`: one side that decides is enough, though others have no value."""
    error: CelError | None = None
    for side in sides:
        try:
            if _truth(side()) is decisive:
                return decisive
        except CelError as met:
            error = error or met
    if error is not None:
        raise error
    return not decisive


def _entry(target: Any, key: Any, optional: bool = False, is_field: bool = False) -> Any:
    if isinstance(target, Optional):
        if not target.present:
            return target
        return _entry(target.value, key, True, is_field)
    if optional:
        try:
            return Optional(True, _entry(target, key, is_field=is_field))
        except CelError:
            return Optional(False)
    if isinstance(target, list) and isinstance(key, int) and 0 <= key < len(target):
        return target[key]
    if not isinstance(target, Mapping):
        raise CelError(f"there is no {key} here")
    try:
        return target[_plain(key) if is_field else key]
    except (KeyError, TypeError):
        raise CelError(f"no such key: {key}") from None


def _plain(name: str) -> str:
    """A field as it is called outside of CEL."""
    if "__" in name:
        for escaped, plain in _ESCAPED.items():
            name = name.replace(escaped, plain)
        if name.startswith("__") and name.endswith("__") and len(name) > 4:
            return name[2:-2]
    return name


def _has(argument: Node, scope: Scope) -> bool:
    if not isinstance(argument, Member | Index):
        raise CelError("has() asks for a member")
    holder = _value(argument.target, scope)
    key = _plain(argument.name) if isinstance(argument, Member) else _value(argument.key, scope)
    if isinstance(holder, Optional):
        holder = holder.value if holder.present else {}
    if not isinstance(holder, Mapping):
        raise CelError(f"there is no {key} here")
    return key in holder


def _each(node: Each, scope: Scope) -> Any:
    """The macros over the items of a list or the keys of a map."""
    items = _value(node.target, scope)
    if not isinstance(items, list | Mapping):
        raise CelError(f"{node.macro}() is for lists and maps")
    inner = [scope.with_name(node.variable, item) for item in items]
    condition, last = node.parts[0], node.parts[-1]
    match node.macro:
        case "all" | "exists":
            return _decided(node.macro == "exists", (_thunk(condition, each) for each in inner))
        case "exists_one" | "existsOne":
            return sum(_truth(_value(condition, each)) for each in inner) == 1
        case "filter":
            return [item for item, each in zip(items, inner, strict=True) if _truth(_value(condition, each))]
    chosen = inner if len(node.parts) == 1 else [each for each in inner if _truth(_value(condition, each))]
    return [_value(last, each) for each in chosen]


def _binary(sign: str, left: Any, right: Any, budget: Budget) -> Any:
    budget.spend_on(left, right)
    if sign == "in":
        if not isinstance(right, list | Mapping):
            raise CelError("in asks for a list or a map")
        return left in right
    if sign in ("==", "!="):
        return (_alike(left, right) and comparable(left) == comparable(right)) is (sign == "==")
    if sign == "+" and type(left) is type(right) and isinstance(left, str | list):
        return left + right
    if sign in ORDERS and type(left) is type(right) and isinstance(left, str | bool | Version | Quantity | Instant | Span):
        return ORDERS[sign](comparable(left), comparable(right))
    if sign in "+-" and (isinstance(left, Instant | Span) or isinstance(right, Instant | Span)):
        return _shifted(sign, left, right)
    return _arithmetic(sign, _number(left), _number(right))


def _shifted(sign: str, left: Any, right: Any) -> Any:
    """Instants and spans added and subtracted."""
    way = 1 if sign == "+" else -1
    match left, right:
        case (Span(), Span()) | (Instant(), Span()):
            return type(left)(left.seconds + way * right.seconds)
        case (Span(), Instant()) if way == 1:
            return Instant(left.seconds + right.seconds)
        case (Instant(), Instant()) if way == -1:
            return Span(left.seconds - right.seconds)
    raise CelError("no such overload")


def _arithmetic(sign: str, left: Any, right: Any) -> Any:
    if sign in ORDERS:
        return ORDERS[sign](left, right)
    if sign in "/%" and right == 0:
        raise CelError("division by zero")
    match sign:
        case "+":
            found = left + right
        case "-":
            found = left - right
        case "*":
            found = left * right
        case "/" if isinstance(left, int) and isinstance(right, int):
            found = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        case "/":
            found = left / right
        case _:
            found = abs(left) % abs(right) * (-1 if left < 0 else 1)
    if isinstance(found, int) and not -(2**63) <= found < 2**63:
        raise CelError("integer overflow")
    return found


def _alike(left: Any, right: Any) -> bool:
    return type(left) is type(right) or {type(left), type(right)} == {int, float} or (isinstance(left, dict) and isinstance(right, dict))
