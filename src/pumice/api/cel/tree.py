"""The tree that an expression is parsed into."""

from __future__ import annotations

from typing import Any, NamedTuple

from pumice.api.cel.errors import CompileError

DEEPEST = 200  #: the most levels of a tree


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
    """The macro `has`: whether the target has this member."""

    target: Node
    name: str
    optional: bool = False


class Each(NamedTuple):
    """A macro over a list or a map, such as `target.all(variable, parts...)`. Two variables are the index or key, and the value."""

    target: Node
    macro: str
    variables: tuple[str, ...]
    parts: tuple[Node, ...]


class BindMacro(NamedTuple):
    """The macro `cel.bind`; or `optMap` or `optFlatMap`, which bind an optional value."""

    macro: str
    variable: str
    value: Node
    body: Node


class Call(NamedTuple):
    """A call of a function or an operator, or of a method, whose target is the first argument."""

    name: str
    arguments: tuple[Node, ...]
    is_method: bool = False


class Items(NamedTuple):
    items: tuple[Node, ...]
    optional: frozenset[int] = frozenset()  #: the indexes of items that are optional values


class Construct(NamedTuple):
    entries: tuple[tuple[Node, Node], ...]
    optional: frozenset[int] = frozenset()


class Logic(NamedTuple):
    """`&&` or `||` with two or more operands."""

    operator: str
    sides: tuple[Node, ...]


class Ternary(NamedTuple):
    condition: Node
    yes: Node
    no: Node


Node = Literal | Name | Select | Subscript | Has | Each | BindMacro | Call | Items | Construct | Logic | Ternary


def names_in(node: Any) -> set[str]:
    """The names that a tree mentions, free and bound ones."""
    if isinstance(node, Name):
        return {node.name}
    if isinstance(node, Literal) or not isinstance(node, tuple):
        return set()
    return {name for part in node for name in names_in(part)}


def depth(node: Any, limit: int = DEEPEST) -> None:
    """Check that the tree is not too deep to be walked. Raises CompileError."""
    if limit < 0:
        raise CompileError("expression recursion limit exceeded")
    if isinstance(node, tuple) and not isinstance(node, Literal):
        below = limit - 1 if hasattr(node, "_fields") else limit
        for part in node:
            depth(part, below)
