"""The value of an expression: each node of its tree is turned into a step once, and the steps run for each set of names.

A key that a map does not have is an error, which `&&`, `||`, `all` and `exists` ignore if the other operands decide. A map of a class
with `__missing__` gives a value for such a key. Each step costs as much as upstream, so no expression runs for long.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from pumice.api.cel import tree
from pumice.api.cel.activation import Activation, Step
from pumice.api.cel.check import type_named
from pumice.api.cel.cost import LIST
from pumice.api.cel.errors import EvaluationError
from pumice.api.cel.functions import FUNCTIONS, METHODS, NO_OVERLOAD
from pumice.api.cel.library.operators import is_key, truth
from pumice.api.cel.loops import MACROS, Bound, decided
from pumice.api.cel.syntax import unescaped
from pumice.api.cel.values import TYPES, Optional, kind_of

MAP = 30  #: what making a map costs
_NONE = Optional(False)
_FAULTS = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError)


class _Later:
    """A value that is computed when it is first read."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    @cached_property
    def value(self) -> Any:
        return self.make()


def steps(node: tree.Node) -> Step:
    match node:
        case tree.Literal(value):
            return lambda run: value
        case tree.Name() | tree.Select() if (type_name := type_named(node, {})) is not None:
            return _name(type_name, TYPES.get(type_name))
        case tree.Name(name):
            return _name(name, None)
        case tree.Select(target, name, optional):
            return _member(target, name, optional)
        case tree.Has(target, name):
            return _has(target, name)
        case tree.Subscript(target, key, optional):
            return _index(target, key, optional)
        case tree.Items():
            return _items(node)
        case tree.Construct():
            return _record(node)
        case tree.Logic(operator, sides):
            return _logic(operator == "||", [steps(side) for side in sides])
        case tree.Ternary(condition, yes, no):
            return _choice(steps(condition), steps(yes), steps(no))
        case tree.BindMacro():
            return _bind(node)
        case tree.Each():
            return _each(node)
        case tree.Call():
            return _call(node)


def _name(name: str, type: Any) -> Step:
    first = name.partition(".")[0]

    def step(run: Activation) -> Any:
        run.budget.pay(1)
        if first in run.names and (type is None or first == name):
            found = run.names[name]
            return found.value if isinstance(found, _Later) else found
        if type is None:
            raise EvaluationError(f"no such attribute: {name}")
        return type

    return step


def _target(node: tree.Node) -> Step:
    """The step for the object of a member access or an index; it costs 1 even if the object is a literal."""
    inner = steps(node)
    if not isinstance(node, tree.Literal):
        return inner

    def step(run: Activation) -> Any:
        run.budget.pay(1)
        return inner(run)

    return step


def _member(target: tree.Node, name: str, optional: bool) -> Step:
    holder, plain = _target(target), unescaped(name)

    def step(run: Activation) -> Any:
        held = holder(run)
        if optional or isinstance(held, Optional):
            return _if_there(held, name, plain, run)
        run.budget.pay(1)
        return _entry(held, name, plain)

    return step


def _index(target: tree.Node, key: tree.Node, optional: bool) -> Step:
    holder, chosen = _target(target), steps(key)

    def step(run: Activation) -> Any:
        held, wanted = holder(run), chosen(run)
        if optional or isinstance(held, Optional):
            return _if_there(held, wanted, wanted, run)
        run.budget.pay(1)
        return _entry(held, wanted, wanted)

    return step


def _if_there(held: Any, key: Any, plain: Any, run: Activation) -> Optional:
    if isinstance(held, Optional):
        if not held.present:
            return held
        held = held.value
    try:
        found = _entry(held, key, plain)
    except EvaluationError:
        return _NONE
    run.budget.pay(1)
    return Optional(True, found)


def _entry(held: Any, key: Any, plain: Any) -> Any:
    """The item of a list or the value of a map at this key. Raises EvaluationError."""
    if isinstance(held, list):
        if isinstance(key, bool) or not isinstance(key, int | float) or key != int(key):
            raise EvaluationError(f"unsupported index type '{kind_of(key)}' in list")
        if not 0 <= key < len(held):
            raise EvaluationError(f"index out of bounds: {int(key)}")
        return held[int(key)]
    if isinstance(held, Mapping) and is_key(key):
        try:
            return held[key if key in held else plain]
        except KeyError:
            pass
    raise EvaluationError(f"no such key: {key}")


def _has(target: tree.Node, name: str) -> Step:
    holder, plain = _target(target), unescaped(name)

    def step(run: Activation) -> bool:
        held = holder(run)
        if isinstance(held, Optional):
            held = held.value
        return isinstance(held, Mapping) and (name in held or plain in held)

    return step


def _items(node: tree.Items) -> Step:
    parts = [(steps(item), index in node.optional) for index, item in enumerate(node.items)]

    def step(run: Activation) -> list[Any]:
        found = []
        for part, optional in parts:
            value = part(run)
            if not optional:
                found.append(value)
            elif _optional(value).present:
                found.append(value.value)
        run.budget.pay(LIST)
        return found

    return step


def _record(node: tree.Construct) -> Step:
    parts = [(steps(key), steps(value), index in node.optional) for index, (key, value) in enumerate(node.entries)]

    def step(run: Activation) -> dict[Any, Any]:
        found = {}
        for key_step, value_step, optional in parts:
            key, value = key_step(run), value_step(run)
            if not is_key(key):
                raise EvaluationError(f"unsupported key type: {kind_of(key)}")
            if not optional:
                found[key] = value
            elif _optional(value).present:
                found[key] = value.value
        run.budget.pay(MAP)
        return found

    return step


def _optional(value: Any) -> Optional:
    if not isinstance(value, Optional):
        raise EvaluationError(f"cannot initialize optional entry from non-optional value {kind_of(value)}")
    return value


def _logic(decisive: bool, sides: list[Step]) -> Step:
    return lambda run: decided(run, decisive, sides)


def _choice(condition: Step, yes: Step, no: Step) -> Step:
    return lambda run: (yes if truth(condition(run)) else no)(run)


def _call(node: tree.Call) -> Step:
    function = (METHODS if node.is_method else FUNCTIONS)[node.name]
    parts = [steps(argument) for argument in node.arguments]
    if node.is_method and node.name in ("or", "orValue"):
        return _otherwise(node.name, *parts)

    def step(run: Activation) -> Any:
        values = [part(run) for part in parts]
        overload = function.overload_for(values)
        try:
            run.budget.pay(1 if overload.price is None else overload.price(*values))
            return overload.run(run.budget, *values) if overload.is_paid_by_itself else overload.run(*values)
        except _FAULTS:
            raise EvaluationError(NO_OVERLOAD) from None

    return step


def _otherwise(name: str, value: Step, other: Step) -> Step:
    def step(run: Activation) -> Any:
        found = value(run)
        if not isinstance(found, Optional):
            raise EvaluationError(NO_OVERLOAD)
        if found.present:
            return found if name == "or" else found.value
        return other(run) if name == "orValue" else _optional(other(run))

    return step


def _bind(node: tree.BindMacro) -> Step:
    value, body = steps(node.value), steps(node.body)
    if node.macro == "cel.bind":
        return _lazily_bound(node.variable, value, body)

    def step(run: Activation) -> Any:
        found = value(run)
        if not isinstance(found, Optional):
            raise EvaluationError(NO_OVERLOAD)
        run.budget.pay(1)
        if not found.present:
            return found
        run.budget.pay(2)
        before = run.names
        run.names = dict(before)
        run.names[node.variable] = found.value
        try:
            inner = body(run)
        finally:
            run.names = before
        return Optional(True, inner) if node.macro == "optMap" else _optional(inner)

    return step


def _lazily_bound(variable: str, value: Step, body: Step) -> Step:
    """The step of `cel.bind`: the variable's value is computed only if it is used, and only once."""

    def step(run: Activation) -> Any:
        before = run.names
        run.names = {**before, variable: _Later(lambda: value(Activation(before, run.budget)))}
        try:
            return body(run)
        finally:
            run.names = before

    return step


def _each(node: tree.Each) -> Step:
    """The step of a macro over a list or a map."""
    target, parts, macro, names = steps(node.target), [steps(part) for part in node.parts], node.macro, node.variables
    run_macro = MACROS[macro]

    def step(run: Activation) -> Any:
        held = target(run)
        if not isinstance(held, list | Mapping):
            raise EvaluationError(f"got '{kind_of(held)}', expected iterable type")
        before = run.names
        run.names = dict(before)
        try:
            return run_macro(run, _bound(run, held, names), parts, held)
        finally:
            run.names = before

    return step


def _bound(run: Activation, held: Any, names: tuple[str, ...]) -> Bound:
    """Each item with its key or index, while the macro's variables are bound to it."""
    pairs = held.items() if isinstance(held, Mapping) else enumerate(held)
    is_map, first, second, bound = isinstance(held, Mapping), names[0], names[-1], run.names
    for key, value in pairs:
        single = key if is_map else value
        if first is second:
            bound[first] = single
        else:
            bound[first], bound[second] = key, value
        yield key, single
