"""From text to tokens."""

from __future__ import annotations

import re
from typing import NamedTuple

from pumice.api.cel.errors import CompileError

LONGEST = 100_000  #: characters of an expression
_NEVER = ("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package", "namespace", "return")
RESERVED = frozenset({*_NEVER, "var", "void", "while"})
WORDS = frozenset({"true", "false", "null", "in"})  #: that are no names
_TOKEN = re.compile(
    r"(?P<skip>[ \t\r\n\f]+|//[^\n]*)"
    r"|(?P<number>0[xX][0-9a-fA-F]+[uU]?|(?:[0-9]+\.[0-9]+|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+|[0-9]+[uU]?)"
    r'|(?P<text>[bB]?[rR](?:"""(?s:.*?)"""|\'\'\'(?s:.*?)\'\'\'|"[^"\r\n]*"|\'[^\'\r\n]*\')'
    r'|[bB]?(?:"""(?s:(?:[^\\]|\\.)*?)"""|\'\'\'(?s:(?:[^\\]|\\.)*?)\'\'\'|"(?:[^"\\\r\n]|\\.)*+"|\'(?:[^\'\\\r\n]|\\.)*+\'))'
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<mark>\|\||&&|[=!<>]=|\.\?|\[\?|[-+*/%!<>?:.,()\[\]{}])"
)


class Token(NamedTuple):
    kind: str  #: number, text, name, mark, or end
    text: str


END = Token("end", "<EOF>")


def tokens_of(text: str) -> list[Token]:
    """The end of the text included. Raises CompileError."""
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
