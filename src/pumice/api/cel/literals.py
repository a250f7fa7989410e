"""Literals: numbers are decimal, hexadecimal or unsigned; strings and bytes have single or triple quotes, are raw or have escapes."""

import re
from typing import Any

from pumice.api.cel.errors import CompileError
from pumice.api.cel.values import Uint

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|[xX]([0-9a-fA-F]{2})|([0-3][0-7]{2})|([abfnrtv\\?\"'`])|(.|$))", re.DOTALL)
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def number(text: str) -> int | float:
    """The value of a number literal. Raises CompileError."""
    digits = text.rstrip("uU")
    if re.fullmatch(r"0[xX][0-9a-fA-F]+|[0-9]+", digits) is None:
        return float(text)
    value = int(digits, 0 if digits[:2] in ("0x", "0X") else 10) if len(digits) < 100 else 2**64
    if digits == text and value <= 2**63:  # 2**63 itself is too large, but the least int is written as a minus and this number
        return value
    if digits != text and value < 2**64:
        return Uint(value)
    raise CompileError(f"invalid {'int' if digits == text else 'uint'} literal")


def text_of(written: str) -> str | bytes:
    """The value of a string or bytes literal: the text between the quotes, with escapes resolved. Raises CompileError."""
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
