"""From text to a tree. Precedence as in CEL: `?:`, `||`, `&&`, relations and `in`, `+ -`, `* / %`, `! -`, then members, indices, calls.

Functions and methods that we do not know are refused here, so that an expression that cannot be judged is told before any value is
looked at.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from pumice.api.cel.names import FUNCTIONS, LIBRARIES, MACROS, METHODS

RELATIONS = ("==", "!=", "<=", ">=", "<", ">", "in")
LEVELS: tuple[tuple[str, ...], ...] = (("||",), ("&&",), RELATIONS, ("+", "-"), ("*", "/", "%"))
LONGEST = 16 * 1024  #: characters of an expression
_TOKEN = re.compile(
    r"\s*(?:(?P<number>0x[0-9a-fA-F]+|\d+\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\d+)u?(?![A-Za-z_])"
    r"|(?P<text>[rR]?(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'))|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<mark>\|\||&&|[=!<>]=|\.\?|\[\?|[-+*/%!<>?:.,()\[\]{}]))"
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|[xX]([0-9a-fA-F]{2})|([0-3][0-7]{2})|(.))", re.DOTALL)
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class CelError(Exception):
    """What is wrong with an expression, or why it has no value here."""


class Literal(NamedTuple):
    value: Any


class Name(NamedTuple):
    name: str


class Member(NamedTuple):
    target: Node
    name: str
    optional: bool = False


class Index(NamedTuple):
    target: Node
    key: Node
    optional: bool = False


class Each(NamedTuple):
    """A macro: `target.all(variable, parts...)` and its like."""

    target: Node
    macro: str
    variable: str
    parts: tuple[Node, ...]


class Record(NamedTuple):
    entries: tuple[tuple[Node, Node], ...]


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


Node = Literal | Name | Member | Index | Call | Each | Items | Record | Unary | Binary | Choice
CONSTANTS = {"true": True, "false": False, "null": None}


@lru_cache(maxsize=1024)
def parse(text: str) -> Node:
    """Raises CelError."""
    if len(text) > LONGEST:
        raise CelError(f"the expression is longer than {LONGEST} characters")
    parser = _Parser(text)
    try:
        tree = parser.expression()
    except RecursionError:
        raise CelError("the expression nests too deeply") from None
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
            if self.accept(".?"):
                node = Member(node, self.take()[1], optional=True)
            elif self.accept("."):
                _, name = self.take()
                node = self.call(node, name) if self.accept("(") else Member(node, name)
            elif self.peek() in ("[", "[?") and self.tokens[-1][0] == "mark":
                _, mark = self.take()
                node = Index(node, self.expression(), optional=mark == "[?")
                self.expect("]")
            else:
                return node

    def primary(self) -> Node:
        kind, text = self.take()
        if kind == "number":
            return Literal(int(text, 16) if text[:2] == "0x" else int(text) if text.isdigit() else float(text))
        if kind == "text":
            return Literal(text[2:-1] if text[0] in "rR" else _unescaped(text[1:-1]))
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
        if text == "{":
            return self.record()
        raise CelError(f'"{text}" is not expected here')

    def record(self) -> Node:
        entries: list[tuple[Node, Node]] = []
        while not self.accept("}"):
            if entries:
                self.expect(",")
            key = self.expression()
            self.expect(":")
            entries.append((key, self.expression()))
        return Record(tuple(entries))

    def call(self, target: Node | None, name: str) -> Node:
        arguments = self.arguments(")")
        if target is not None and name in MACROS and len(arguments) in MACROS[name] and isinstance(arguments[0], Name):
            return Each(target, name, arguments[0].name, arguments[1:])
        if isinstance(target, Name) and target.name in LIBRARIES:
            name = f"{target.name}.{name}"
            target = None
        known = FUNCTIONS if target is None else METHODS
        if name not in known:
            raise CelError(f"{name}() is not supported")
        if len(arguments) not in known[name]:
            counts = " or ".join(map(str, known[name]))
            raise CelError(f"{name}() takes {counts} argument{'' if known[name] == (1,) else 's'}, not {len(arguments)}")
        return Call(target, name, arguments)

    def arguments(self, end: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self.accept(end):
            if found:
                self.expect(",")
            found.append(self.expression())
        return tuple(found)


def _unescaped(text: str) -> str:
    def letter(match: re.Match[str]) -> str:
        short, long, byte, octal, other = match.groups()
        if other is not None:
            return _LETTERS.get(other, other)
        return chr(min(int(octal, 8) if octal else int(short or long or byte, 16), 0x10FFFF))

    return _ESCAPE.sub(letter, text) if "\\" in text else text


def names_in(node: Any) -> set[str]:
    """The free and bound names that a tree mentions."""
    if isinstance(node, Name):
        return {node.name}
    if isinstance(node, tuple):
        return {name for part in node for name in names_in(part)}
    return set()
