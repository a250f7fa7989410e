"""All small faults that one file could have: each changes one node of the syntax tree, as text in its place.

Left out are annotations, docstrings and other texts with spaces, f-strings, imports, log lines, `raise`, `assert`, `__all__` and
type-checking blocks: tests need not notice a fault there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from copy import copy
from typing import NamedTuple

FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
MOVED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
OTHERWISE: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
LOGS = ("log", "logger", "logging", "warnings")


class Mutation(NamedTuple):
    """A fault: `old` at `line` becomes `new`. `within` is the function or class that contains it."""

    path: str
    line: int
    within: str
    old: str
    new: str
    text: str  #: the text of the whole file with the fault

    @property
    def name(self) -> str:
        """The fault's name, which stays the same when lines move."""
        return f"{self.path} | {self.within} | {_short(self.old)} -> {_short(self.new)}"


def mutations(path: str, source: str) -> list[Mutation]:
    """All faults of a file, in the order of its text. A fault that would not change the text is left out."""
    starts = [0]
    encoded = source.encode()
    for line in encoded.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for within, node, changed in _Sites().of(ast.parse(source)):
        begin, end = starts[node.lineno - 1] + node.col_offset, starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        old = encoded[begin:end].decode()
        new = ast.unparse(changed).replace("\n", "\n" + " " * node.col_offset)
        if isinstance(changed, ast.expr):
            new = f"({new})"
        text = (encoded[:begin] + new.encode() + encoded[end:]).decode()
        found.append(Mutation(path, node.lineno, within or "module", old, new, text))
    return [each for each in found if each.text != source]


def _short(text: str) -> str:
    """The text on one line, cut to 100 characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 100 else f"{flat[:97]}..."


Site = tuple[str, ast.expr | ast.stmt, ast.AST]  #: the name of the function or class, the node, and its replacement


class _Sites:
    """Finds the sites of faults in a syntax tree, without the nodes that the module docstring leaves out."""

    def of(self, node: ast.AST, within: str = "") -> Iterator[Site]:
        for child in _children(node):
            inside = (
                f"{within}.{child.name}".strip(".") if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else within
            )
            if isinstance(child, ast.expr | ast.stmt):
                yield from ((inside, child, changed) for changed in _changes(child))
            yield from self.of(child, inside)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """The child nodes in which a fault matters."""
    unseen = {id(part) for name in ("annotation", "returns", "type_params", "format_spec") for part in _parts(node, name)}
    for child in ast.iter_child_nodes(node):
        if id(child) not in unseen and not _idle(child):
            yield child


def _parts(node: ast.AST, name: str) -> list[object]:
    value = getattr(node, name, None)
    return value if isinstance(value, list) else [value]


def _idle(node: ast.AST) -> bool:
    match node:
        case ast.Raise() | ast.Assert() | ast.Import() | ast.ImportFrom() | ast.JoinedStr():
            return True
        case ast.Expr(ast.Constant()):
            return True
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(name)))):
            return name in LOGS
        case ast.If(ast.Name("TYPE_CHECKING")):
            return True
        case ast.Assign([ast.Name("__all__")]):
            return True
    return False


def _changes(node: ast.expr | ast.stmt) -> Iterator[ast.AST]:
    """The replacements of this node, each of which is a fault."""
    match node:
        case ast.Compare(ops=[operator]):
            for table in (FLIPPED, MOVED):
                if type(operator) in table:
                    yield _with(node, ops=[table[type(operator)]()])
        case ast.BoolOp(op):
            yield _with(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.BinOp(op=op) if type(op) in OTHERWISE:
            yield _with(node, op=OTHERWISE[type(op)]())
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.Constant(value):
            yield from _constants(value)
        case ast.If(test):
            yield _with(node, test=ast.UnaryOp(ast.Not(), test))
            yield _with(node, test=ast.Constant(False))
        case ast.While(test) | ast.IfExp(test):
            yield _with(node, test=ast.UnaryOp(ast.Not(), test))
        case ast.Return(value) if value is not None and not (isinstance(value, ast.Constant) and value.value is None):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call() | ast.Await()) | ast.AugAssign():
            yield ast.Pass()
        case ast.Call(args=[first, second, *rest]) if ast.dump(first) != ast.dump(second) and not _starred(first, second):
            yield _with(node, args=[second, first, *rest])


def _starred(*nodes: ast.expr) -> bool:
    return any(isinstance(node, ast.Starred) for node in nodes)


def _constants(value: object) -> Iterator[ast.AST]:
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int | float):
        yield ast.Constant(value + 1)
    elif isinstance(value, str) and value and " " not in value:
        yield ast.Constant(f"{value}x")


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed
