"""The parser of CEL. Its precedence: `?:`, `||`, `&&`, relations and `in`, `+ -`, `* / %`, `! -`, then members, indices, calls.

Macros, which look like calls: `has(a.b)`, `list.all(x, ...)`, `cel.bind(x, ..., ...)` and similar ones.
"""

import re
from typing import Any, NamedTuple

from pumice.api.cel import tree
from pumice.api.cel.errors import CompileError
from pumice.api.cel.functions import FUNCTIONS
from pumice.api.cel.literals import number, text_of
from pumice.api.cel.values import Uint

LONGEST = 100_000  #: the most characters of an expression
_NEVER = ("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package", "namespace", "return")
RESERVED = frozenset({*_NEVER, "var", "void", "while"})
#: how CEL writes field names that are no identifiers
_ESCAPED = {"__underscores__": "__", "__dot__": ".", "__dash__": "-", "__slash__": "/"}
MESSAGES = ("Object", "JSONPatch")  #: the messages of mutations
WORDS = frozenset({"true", "false", "null", "in"})  #: words that cannot be names
_TOKEN = re.compile(
    r"(?P<skip>[ \t\r\n\f]+|//[^\n]*)"
    r"|(?P<number>0[xX][0-9a-fA-F]+[uU]?|(?:[0-9]+\.[0-9]+|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+|[0-9]+[uU]?)"
    r'|(?P<text>[bB]?[rR](?:"""(?s:.*?)"""|\'\'\'(?s:.*?)\'\'\'|"[^"\r\n]*"|\'[^\'\r\n]*\')'
    r'|[bB]?(?:"""(?s:(?:[^\\]|\\.)*?)"""|\'\'\'(?s:(?:[^\\]|\\.)*?)\'\'\'|"(?:[^"\\\r\n]|\\.)*+"|\'(?:[^\'\\\r\n]|\\.)*+\'))'
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<mark>\|\||&&|[=!<>]=|\.\?|\[\?|[-+*/%!<>?:.,()\[\]{}])"
)


class Token(NamedTuple):
    kind: str  #: one of number, text, name, mark, end
    text: str


END = Token("end", "<EOF>")


def tokens_of(text: str) -> list[Token]:
    """The tokens of an expression, with END as the last one. Raises CompileError."""
    if len(text) > LONGEST:
        raise CompileError(f"expression code point size exceeds limit: size: {len(text)}, limit {LONGEST}")
    found, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise CompileError(f"Syntax error: token recognition error at: '{text[position : position + 20]}'")
        kind = str(match.lastgroup)
        if kind != "skip":
            found.append(Token(kind, match[0]))
        position = match.end()
    return [*found, END]


#: for each macro, by its number of arguments, how many of them are variables
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


def expanded(target: tree.Node | None, name: str, arguments: tuple[tree.Node, ...]) -> tree.Node:
    """The node for a call: that of a macro, or else of a function or method. Raises CompileError."""
    if target is None and name == "has" and len(arguments) == 1:
        member = arguments[0]
        if not isinstance(member, tree.Select):
            raise CompileError("invalid argument to has() macro")
        return tree.Has(*member)
    if target is None:
        return tree.Call(name, arguments)
    if target == tree.Name("cel") and name == "bind" and len(arguments) == 3:
        return tree.BindMacro(
            "cel.bind", _variable(arguments[0], "cel.bind() variable name must be a simple identifier"), arguments[1], arguments[2]
        )
    if name in _BIND and len(arguments) == 2:
        return tree.BindMacro(name, _variable(arguments[0], f"{name}() variable name must be a simple identifier"), target, arguments[1])
    count = _EACH.get(name, {}).get(len(arguments))
    if count is None:
        full = f"{_dotted(target)}.{name}"
        return tree.Call(full, arguments) if full in FUNCTIONS else tree.Call(name, (target, *arguments), is_method=True)
    variables = tuple(_variable(each, "argument must be a simple name") for each in arguments[:count])
    if len({*variables}) < count:
        raise CompileError(f"duplicate variable name: {variables[0]}")
    return tree.Each(target, name, variables, arguments[count:])


def unescaped(name: str) -> str:
    """The name of a field as it is written outside of CEL, without escapes."""
    if "__" in name:
        for escaped, plain in _ESCAPED.items():
            name = name.replace(escaped, plain)
        if name.startswith("__") and name.endswith("__") and len(name) > 4:
            return name[2:-2]
    return name


def _dotted(node: tree.Node) -> str:
    """The dotted name that the node may mean, as a function's name can have dots; empty or incomplete if it is no name."""
    if isinstance(node, tree.Select) and not node.optional:
        return f"{_dotted(node.target)}.{node.name}"
    return node.name if isinstance(node, tree.Name) else ""


def _variable(node: tree.Node, problem: str) -> str:
    if not isinstance(node, tree.Name):
        raise CompileError(problem)
    if node.name == "__result__":
        raise CompileError("iteration variable overwrites accumulator variable")
    return node.name


DEEPEST = 50  #: the most levels of nested brackets
CONSTANTS = {"true": True, "false": False, "null": None}
RELATIONS = ("==", "!=", "<=", ">=", "<", ">", "in")
LEVELS = {"||": 1, "&&": 2, **dict.fromkeys(RELATIONS, 3), "+": 4, "-": 4, "*": 5, "/": 5, "%": 5}


def parse(text: str) -> tree.Node:
    """The expression as a tree. Raises CompileError."""
    parser = _Parser(text)
    found = parser.expression()
    if parser.peek().kind != "end":
        raise CompileError(f"Syntax error: extraneous input '{parser.peek().text}' expecting <EOF>")
    tree.depth(found)
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = tokens_of(text)[::-1]
        self.level = 0

    def peek(self) -> Any:
        return self.tokens[-1]

    def accept(self, mark: str) -> bool:
        if self.tokens[-1].text == mark and self.tokens[-1].kind in ("mark", "name"):
            self.tokens.pop()
            return True
        return False

    def expect(self, mark: str) -> None:
        if not self.accept(mark):
            raise CompileError(f"Syntax error: missing '{mark}' at '{self.peek().text}'")

    def name(self) -> str:
        kind, text = self.tokens[-1]
        if kind != "name" or text in WORDS:
            raise CompileError(f"Syntax error: mismatched input '{text}' expecting a name")
        return str(self.tokens.pop().text)

    def expression(self) -> tree.Node:
        self.level += 1
        if self.level > DEEPEST:
            raise CompileError("expression recursion limit exceeded")
        found = self.binary(1)
        if self.accept("?"):
            yes = self.binary(1)
            self.expect(":")
            found = tree.Ternary(found, yes, self.expression())
        self.level -= 1
        return found

    def binary(self, least: int) -> tree.Node:
        """An expression whose binary operators have at least this level of precedence."""
        left = self.unary()
        while self.peek().kind != "text" and (level := LEVELS.get(self.peek().text, 0)) >= least:
            operator = self.tokens.pop().text
            right = self.binary(level + 1)
            if level <= 2:
                sides = left.sides if isinstance(left, tree.Logic) and left.operator == operator else (left,)
                left = tree.Logic(operator, (*sides, right))
            else:
                left = tree.Call(operator, (left, right))
        return left

    def unary(self) -> tree.Node:
        """An operand with its prefix operators. An even number of the same sign has no effect."""
        for sign in ("!", "-"):
            count = 0
            while self.accept(sign):
                count += 1
            if count:
                negative = count % 2 == 1
                if sign == "-" and negative and self.peek().kind == "number":
                    return self.postfix(_negative(number(self.tokens.pop().text)))
                operand = self.postfix(self.primary())
                return tree.Call(sign + "_", (operand,)) if negative else operand
        return self.postfix(self.primary())

    def postfix(self, node: tree.Node) -> tree.Node:
        while True:
            if self.accept(".?"):
                node = tree.Select(node, self.name(), optional=True)
            elif self.accept("."):
                name = self.name()
                node = expanded(node, name, self.arguments(")")) if self.accept("(") else tree.Select(node, name)
            elif self.accept("[?"):
                node = tree.Subscript(node, self.expression(), optional=True)
                self.expect("]")
            elif self.accept("["):
                node = tree.Subscript(node, self.expression())
                self.expect("]")
            elif self.peek().text == "{" and self.peek().kind == "mark" and _dotted(node).partition(".")[0] in MESSAGES:
                node = self.message()
            else:
                return node

    def message(self) -> tree.Node:
        """The fields of a message such as `Object{spec: Object.spec{replicas: 1}}`: a map from their names."""
        self.expect("{")
        entries: list[tuple[tree.Node, tree.Node]] = []
        while not self.accept("}"):
            if entries:
                self.expect(",")
                if self.accept("}"):
                    break
            name = unescaped(self.name())
            self.expect(":")
            entries.append((tree.Literal(name), tree.Call("dyn", (self.expression(),))))
        return tree.Construct(tuple(entries))

    def primary(self) -> tree.Node:
        kind, text = self.tokens.pop()
        if kind == "number":
            value = number(text)
            if value == 2**63 and type(value) is int:
                raise CompileError("invalid int literal")
            return tree.Literal(value)
        if kind == "text":
            return tree.Literal(text_of(text))
        if kind == "name" and text != "in":
            return self.named(text)
        if text == "." and self.peek().kind == "name":
            return self.named(self.name())
        if text == "(":
            inner = self.expression()
            self.expect(")")
            return inner
        if text in ("[", "[?"):
            return self.items(text == "[?")
        if text == "{":
            return self.record()
        raise CompileError(f"Syntax error: mismatched input '{text}'")

    def named(self, text: str) -> tree.Node:
        if text in CONSTANTS:
            return tree.Literal(CONSTANTS[text])
        if text in RESERVED:
            raise CompileError(f"reserved identifier: {text}")
        return expanded(None, text, self.arguments(")")) if self.accept("(") else tree.Name(text)

    def items(self, first_is_optional: bool) -> tree.Node:
        found: list[tree.Node] = []
        optional: set[int] = set()
        while not self.accept("]"):
            if found:
                self.expect(",")
                if self.accept("]"):
                    break
            if self.accept("?") or (first_is_optional and not found):
                optional.add(len(found))
            found.append(self.expression())
        return tree.Items(tuple(found), frozenset(optional))

    def record(self) -> tree.Node:
        entries: list[tuple[tree.Node, tree.Node]] = []
        optional: set[int] = set()
        while not self.accept("}"):
            if entries:
                self.expect(",")
                if self.accept("}"):
                    break
            if self.accept("?"):
                optional.add(len(entries))
            key = self.expression()
            self.expect(":")
            entries.append((key, self.expression()))
        return tree.Construct(tuple(entries), frozenset(optional))

    def arguments(self, end: str) -> tuple[tree.Node, ...]:
        found: list[tree.Node] = []
        while not self.accept(end):
            if found:
                self.expect(",")
            found.append(self.expression())
        return tuple(found)


def _negative(value: int | float) -> tree.Literal:
    if isinstance(value, Uint):
        raise CompileError("found no matching overload for '-_' applied to '(uint)'")
    return tree.Literal(-value)
