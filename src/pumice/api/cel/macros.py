"""Calls that are no calls: `has(a.b)`, `list.all(x, ...)`, `cel.bind(x, ..., ...)` and their like."""

from __future__ import annotations

from pumice.api.cel.errors import CompileError
from pumice.api.cel.functions import FUNCTIONS
from pumice.api.cel.tree import Bind, Call, Each, Has, Member, Name, Node

#: by the number of arguments, how many of them are variables
_EACH: dict[str, dict[int, int]] = {
    "all": {2: 1, 3: 2},
    "exists": {2: 1, 3: 2},
    "exists_one": {2: 1, 3: 2},
    "existsOne": {3: 2},
    "filter": {2: 1},
    "map": {2: 1, 3: 1},
    "transformList": {3: 2, 4: 2},
    "transformMap": {3: 2, 4: 2},
    "transformMapEntry": {3: 2, 4: 2},
    "sortBy": {2: 1},
}
_BIND = {"optMap", "optFlatMap"}


def expanded(target: Node | None, name: str, arguments: tuple[Node, ...]) -> Node:
    """A call as what it means. Raises CompileError."""
    if target is None and name == "has" and len(arguments) == 1:
        member = arguments[0]
        if not isinstance(member, Member):
            raise CompileError("invalid argument to has() macro")
        return Has(*member)
    if target is None:
        return Call(name, arguments)
    if target == Name("cel") and name == "bind" and len(arguments) == 3:
        return Bind("cel.bind", _variable(arguments[0], "cel.bind() variable name must be a simple identifier"), arguments[1], arguments[2])
    if name in _BIND and len(arguments) == 2:
        return Bind(name, _variable(arguments[0], f"{name}() variable name must be a simple identifier"), target, arguments[1])
    count = _EACH.get(name, {}).get(len(arguments))
    if count is None:
        full = f"{_dotted(target)}.{name}"
        return Call(full, arguments) if full in FUNCTIONS else Call(name, (target, *arguments), is_method=True)
    variables = tuple(_variable(each, "argument must be a simple name") for each in arguments[:count])
    if len({*variables}) < count:
        raise CompileError(f"duplicate variable name: {variables[0]}")
    return Each(target, name, variables, arguments[count:])


def _dotted(node: Node) -> str:
    """A name with a dot in it may be that of a function."""
    if isinstance(node, Member) and not node.optional:
        return f"{_dotted(node.target)}.{node.name}"
    return node.name if isinstance(node, Name) else ""


def _variable(node: Node, problem: str) -> str:
    if not isinstance(node, Name):
        raise CompileError(problem)
    if node.name == "__result__":
        raise CompileError("iteration variable overwrites accumulator variable")
    return node.name
