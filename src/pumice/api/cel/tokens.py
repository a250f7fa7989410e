"""From text to tokens."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from pumice.api.cel.errors import CompileError
from pumice.api.cel.values import Uint

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


# Numbers and texts as they are written: decimal, hexadecimal, unsigned; quoted once or three times, raw, with escapes, bytes.

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|[xX]([0-9a-fA-F]{2})|([0-3][0-7]{2})|([abfnrtv\\?\"'`])|(.|$))", re.DOTALL)
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def number(text: str) -> int | float:
    """Raises CompileError."""
    digits = text.rstrip("uU")
    if re.fullmatch(r"0[xX][0-9a-fA-F]+|[0-9]+", digits) is None:
        return float(text)
    value = int(digits, 0 if digits[:2] in ("0x", "0X") else 10) if len(digits) < 100 else 2**64
    if digits == text and value <= 2**63:  # one more than fits, for the least of all numbers is written with a minus
        return value
    if digits != text and value < 2**64:
        return Uint(value)
    raise CompileError(f"invalid {'int' if digits == text else 'uint'} literal")


def text_of(written: str) -> str | bytes:
    """Raises CompileError."""
    start = re.match("[bBrR]*", written)
    prefix = start[0].lower() if start else ""
    quotes = 3 if written[len(prefix) :][:3] in ('"""', "'''") else 1
    inside = written[len(prefix) + quotes : -quotes]
    if quotes == 3:
        inside = inside.replace("\r\n", "\n").replace("\r", "\n")
    if "b" in prefix:
        return inside.encode() if "r" in prefix else _bytes_of(inside)
    return inside if "r" in prefix else _ESCAPE.sub(_character, inside)


def _character(match: re.Match[str]) -> str:
    short, long, byte, octal, letter, other = match.groups()
    if letter is not None:
        return _LETTERS.get(letter, letter)
    if other is not None:
        raise CompileError(f"Syntax error: token recognition error at: '\\{other}'")
    code = int(octal, 8) if octal else int(short or long or byte, 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise CompileError("invalid unicode code point")
    return chr(code)


def _bytes_of(text: str) -> bytes:
    found, position = bytearray(), 0
    for match in _ESCAPE.finditer(text):
        found += text[position : match.start()].encode()
        if match[1] or match[2]:
            raise CompileError("unable to unescape string")
        code: Any = match[3] or match[4]
        found += bytes([int(code, 16 if match[3] else 8)]) if code else _character(match).encode()
        position = match.end()
    return bytes(found + text[position:].encode())
