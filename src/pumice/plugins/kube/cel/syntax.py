"""From text to a tree. Precedence as in CEL: `?:`, `||`, `&&`, relations and `in`, `+ -`, `* / %`, `! -`, then members, indices, calls.

Functions and methods that we do not know are refused here, so that a selector that cannot be judged is told before any device is
looked at.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import Any, NamedTuple

RELATIONS = ("==", "!=", "<=", ">=", "<", ">", "in")
LEVELS: tuple[tuple[str, ...], ...] = (("||",), ("&&",), RELATIONS, ("+", "-"), ("*", "/", "%"))
FUNCTIONS = {"has": 1, "size": 1, "quantity": 1, "semver": 1, "string": 1, "int": 1}
METHODS = {
    **dict.fromkeys(["startsWith", "endsWith", "contains", "matches", "compareTo", "isGreaterThan", "isLessThan"], 1),
    **dict.fromkeys(["size", "lowerAscii", "upperAscii", "asInteger", "major", "minor", "patch"], 0),
}
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.\d+|\d+)u?|(?P<text>r?(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'))|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<mark>\|\||&&|[=!<>]=|[-+*/%!<>?:.,()\[\]]))"
)


class CelError(Exception):
    """What is wrong with an expression, or with its value for a device."""


class Literal(NamedTuple):
    value: Any


class Name(NamedTuple):
    name: str


class Member(NamedTuple):
    target: Node
    name: str


class Index(NamedTuple):
    target: Node
    key: Node


class Call(NamedTuple):
    target: Node | None
    name: str
    arguments: tuple[Node, ...]


class Items(NamedTuple):
    items: tuple[Node, ...]


class Unary(NamedTuple):
    operator: str
    operand: Node


class Binary(NamedTuple):
    operator: str
    left: Node
    right: Node


class Choice(NamedTuple):
    condition: Node
    yes: Node
    no: Node


Node = Literal | Name | Member | Index | Call | Items | Unary | Binary | Choice
CONSTANTS = {"true": True, "false": False, "null": None}


@lru_cache(maxsize=1024)
def parse(text: str) -> Node:
    """Raises CelError."""
    parser = _Parser(text)
    tree = parser.expression()
    if parser.peek():
        raise CelError(f'"{parser.peek()}" is not expected here')
    return tree


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []  #: kind and text
        position, end = 0, len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None or match.lastgroup is None:
                raise CelError(f'"{text[position:].strip()[:20]}" is not understood')
            self.tokens.append((match.lastgroup, match[match.lastgroup]))
            position = match.end()
        self.tokens.reverse()

    def peek(self) -> str:
        return self.tokens[-1][1] if self.tokens else ""

    def take(self) -> tuple[str, str]:
        if not self.tokens:
            raise CelError("the expression ends too early")
        return self.tokens.pop()

    def accept(self, mark: str) -> bool:
        if self.tokens and self.tokens[-1] in (("mark", mark), ("name", mark)):
            self.tokens.pop()
            return True
        return False

    def expect(self, mark: str) -> None:
        if not self.accept(mark):
            raise CelError(f'"{mark}" is missing' + (f' before "{self.peek()}"' if self.peek() else ""))

    # -- from the loosest to the tightest

    def expression(self) -> Node:
        condition = self.binary(0)
        if not self.accept("?"):
            return condition
        yes = self.expression()
        self.expect(":")
        return Choice(condition, yes, self.expression())

    def binary(self, level: int) -> Node:
        if level == len(LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in LEVELS[level] and self.tokens[-1][0] != "text":
            _, operator = self.take()
            left = Binary(operator, left, self.binary(level + 1))
        return left

    def unary(self) -> Node:
        for operator in ("!", "-"):
            if self.accept(operator):
                return Unary(operator, self.unary())
        return self.postfix(self.primary())

    def postfix(self, node: Node) -> Node:
        while True:
            if self.accept("."):
                _, name = self.take()
                node = self.call(node, name) if self.accept("(") else Member(node, name)
            elif self.accept("["):
                node = Index(node, self.expression())
                self.expect("]")
            else:
                return node

    def primary(self) -> Node:
        kind, text = self.take()
        if kind == "number":
            return Literal(float(text) if "." in text else int(text))
        if kind == "text":
            return Literal(text[2:-1] if text[0] == "r" else ast.literal_eval(text))
        if kind == "name":
            if text in CONSTANTS:
                return Literal(CONSTANTS[text])
            return self.call(None, text) if self.accept("(") else Name(text)
        if text == "(":
            inner = self.expression()
            self.expect(")")
            return inner
        if text == "[":
            return Items(self.arguments("]"))
        raise CelError(f'"{text}" is not expected here')

    def call(self, target: Node | None, name: str) -> Node:
        arguments = self.arguments(")")
        known = FUNCTIONS if target is None else METHODS
        if name not in known:
            raise CelError(f"{name}() is not supported")
        if len(arguments) != known[name]:
            raise CelError(f"{name}() takes {known[name]} argument{'' if known[name] == 1 else 's'}, not {len(arguments)}")
        return Call(target, name, arguments)

    def arguments(self, end: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self.accept(end):
            if found:
                self.expect(",")
            found.append(self.expression())
        return tuple(found)
