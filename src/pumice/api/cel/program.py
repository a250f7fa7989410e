"""An expression, compiled.

What does not depend on names is computed when the expression is compiled: literal lists and maps, conversions of literals, patterns.
"""

from collections.abc import Mapping
from typing import Any

import pumice.api.cel.library  # noqa: F401  (its modules register their functions)
from pumice.api.cel.activation import Activation
from pumice.api.cel.check import Environment, check
from pumice.api.cel.cost import CostBudget
from pumice.api.cel.errors import CompileError, EvaluationError
from pumice.api.cel.evaluate import steps
from pumice.api.cel.functions import FUNCTIONS, METHODS
from pumice.api.cel.library.operators import is_key
from pumice.api.cel.library.text import pattern_of
from pumice.api.cel.syntax import parse
from pumice.api.cel.tree import Call, Construct, Items, Literal, Node, names_in
from pumice.api.cel.values import BOOL, CelType

CONVERSIONS = {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "uint"}
_PATTERNS = {"matches", "find", "findAll"}


def folded(node: Any) -> Any:
    """The expression with its constant parts evaluated. Raises CompileError for a part that can never have a value."""
    if isinstance(node, Literal) or not isinstance(node, tuple):
        return node
    parts = [folded(part) for part in node]
    if not hasattr(node, "_fields"):
        return tuple(parts)
    found = type(node)(*parts)
    match found:
        case Items(items, optional) if not optional and all(isinstance(item, Literal) for item in items):
            return Literal([item.value for item in items if isinstance(item, Literal)])
        case Construct(entries, optional) if not optional and all(isinstance(each, Literal) for entry in entries for each in entry):
            return _record(found)
        case Call(name, (Literal(), *_)) if name in CONVERSIONS and not found.is_method:
            return _converted(found)
        case Call(name, (_, Literal(str(pattern)), *_)) if name in _PATTERNS:
            _compiled(name, pattern)
        case Call("format", (Literal(str()), Literal()), True):
            _value(found)
    return found


def _record(node: Construct) -> Node:
    pairs = [(key.value, value.value) for key, value in node.entries if isinstance(key, Literal) and isinstance(value, Literal)]
    return Literal(dict(pairs)) if all(is_key(key) for key, _ in pairs) else node


def _converted(node: Call) -> Node:
    return Literal(_value(node))


def _value(node: Call) -> Any:
    values = [argument.value for argument in node.arguments if isinstance(argument, Literal)]
    try:
        overload = (METHODS if node.is_method else FUNCTIONS)[node.name].overload_for(values)
        return overload.run(CostBudget(), *values) if overload.is_paid_by_itself else overload.run(*values)
    except EvaluationError as error:
        raise CompileError(f"invalid {node.name} argument: {error}") from None


def _compiled(name: str, pattern: str) -> None:
    try:
        pattern_of(pattern)
    except EvaluationError as error:
        raise CompileError(f"invalid {name} argument: {error}") from None


class Program:
    """A compiled expression. The constructor raises CompileError."""

    def __init__(self, text: str, environment: Environment) -> None:
        tree = parse(text)
        self.text = text
        self.kind: CelType = check(tree, environment)
        self.names = names_in(tree)  #: the names that the expression mentions
        self._step = steps(folded(tree))

    def value(self, names: Mapping[str, Any], budget: CostBudget | None = None) -> Any:
        """The value of the expression for these names. Raises EvaluationError."""
        return self._step(Activation(names, budget or CostBudget()))

    def holds(self, names: Mapping[str, Any], budget: CostBudget | None = None) -> bool:
        """Whether the condition is true for these names. Raises EvaluationError, also if its value is neither true nor false."""
        found = self.value(names, budget)
        if not isinstance(found, bool):
            raise EvaluationError("the expression is neither true nor false")
        return found


def condition(text: str, environment: Environment, unknown: CelType) -> Program:
    """A program whose value is a boolean, or of the type `unknown`, which is only known at evaluation. Raises CompileError for others."""
    program = Program(text, environment)
    if program.kind not in (BOOL, unknown):
        raise CompileError(f"must evaluate to {BOOL} or the unknown type, not {program.kind}")
    return program
