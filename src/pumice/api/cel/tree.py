"""What an expression is read into."""

from __future__ import annotations

from typing import Any, NamedTuple

# What can be wrong with an expression.


class CelError(Exception):
    """Either of the two below."""


class CompileError(CelError):
    """The expression is none, or its types do not agree: no value will ever come of it."""


class EvaluationError(CelError):
    """The expression has no value for these names."""


class CostError(EvaluationError):
    """The evaluation was given up, since it costs more than is allowed. Nothing passes over this one."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


DEEPEST = 200  #: levels of a tree


class Literal(NamedTuple):
    value: Any


class Name(NamedTuple):
    name: str


class Select(NamedTuple):
    target: Node
    name: str
    optional: bool = False


class Subscript(NamedTuple):
    target: Node
    key: Node
    optional: bool = False


class Has(NamedTuple):
    """Whether there is such a member."""

    target: Node
    name: str
    optional: bool = False


class Each(NamedTuple):
    """A macro over lists and maps: `target.all(variable, parts...)` and its like; two variables are index or key, and value."""

    target: Node
    macro: str
    variables: tuple[str, ...]
    parts: tuple[Node, ...]


class BindMacro(NamedTuple):
    """`cel.bind`, and with an optional value `optMap` and `optFlatMap`."""

    macro: str
    variable: str
    value: Node
    body: Node


class Call(NamedTuple):
    """Of a function, operators included, or of a method, whose target is the first of the arguments."""

    name: str
    arguments: tuple[Node, ...]
    is_method: bool = False


class Items(NamedTuple):
    items: tuple[Node, ...]
    optional: frozenset[int] = frozenset()  #: places whose value may not be there


class Construct(NamedTuple):
    entries: tuple[tuple[Node, Node], ...]
    optional: frozenset[int] = frozenset()


class Logic(NamedTuple):
    """`&&` or `||` of two and more."""

    operator: str
    sides: tuple[Node, ...]


class Ternary(NamedTuple):
    condition: Node
    yes: Node
    no: Node


Node = Literal | Name | Select | Subscript | Has | Each | BindMacro | Call | Items | Construct | Logic | Ternary


def names_in(node: Any) -> set[str]:
    """The free and bound names that a tree mentions."""
    if isinstance(node, Name):
        return {node.name}
    if isinstance(node, Literal) or not isinstance(node, tuple):
        return set()
    return {name for part in node for name in names_in(part)}


def depth(node: Any, limit: int = DEEPEST) -> None:
    """Raises CompileError for a tree that is too deep to be walked."""
    if limit < 0:
        raise CompileError("expression recursion limit exceeded")
    if isinstance(node, tuple) and not isinstance(node, Literal):
        below = limit - 1 if hasattr(node, "_fields") else limit
        for part in node:
            depth(part, below)
