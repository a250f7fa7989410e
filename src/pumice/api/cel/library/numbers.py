"""Conversions between numbers, texts and bytes."""

from __future__ import annotations

import re
from math import isfinite
from typing import Any

from pumice.api.cel.functions import free, function
from pumice.api.cel.tree import EvaluationError
from pumice.api.cel.values import Type, Uint, type_of

_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE)
_HEX = re.compile(r"[+-]?0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?[0-9]+")
_TRUE, _FALSE = ("1", "t", "T", "true", "TRUE", "True"), ("0", "f", "F", "false", "FALSE", "False")


def whole(value: int, unsigned: bool = False) -> Any:
    """A number that fits into 64 bits. Raises EvaluationError."""
    if unsigned:
        if 0 <= value < 2**64:
            return Uint(value)
        raise EvaluationError("unsigned integer overflow")
    if -(2**63) <= value < 2**63:
        return int(value)
    raise EvaluationError("integer overflow")


@function("int(int) int", "int(uint) int")
def to_int(value: int) -> int:
    return int(whole(int(value)))


@function("uint(uint) uint", "uint(int) uint")
def to_uint(value: int) -> Any:
    return whole(int(value), unsigned=True)


@function("int(double) int")
def double_to_int(value: float) -> int:
    if not isfinite(value):
        raise EvaluationError("integer overflow")
    return int(whole(int(value)))


@function("uint(double) uint")
def double_to_uint(value: float) -> Any:
    if not isfinite(value):
        raise EvaluationError("unsigned integer overflow")
    return whole(int(value), unsigned=True)


@function("int(string) int")
def text_to_int(text: str) -> int:
    return int(whole(_read(text, "int")))


@function("uint(string) uint")
def text_to_uint(text: str) -> Any:
    if text[:1] in ("+", "-"):
        raise EvaluationError("type conversion error from 'string' to 'uint'")
    return whole(_read(text, "uint"), unsigned=True)


def _read(text: str, to: str) -> int:
    if _WHOLE.fullmatch(text) is None:
        raise EvaluationError(f"type conversion error from 'string' to '{to}'")
    return int(text)


@function("double(int) double", "double(uint) double", "double(double) double")
def to_double(value: float) -> float:
    return float(value)


@function("double(string) double")
def text_to_double(text: str) -> float:
    if len(text) < 1000 and _FLOAT.fullmatch(text):
        return float(text)
    if len(text) < 1000 and _HEX.fullmatch(text):
        return float.fromhex(text)
    raise EvaluationError("type conversion error from 'string' to 'double'")


@function("bool(bool) bool")
def same_bool(value: bool) -> bool:
    return value


@function("bool(string) bool")
def text_to_bool(text: str) -> bool:
    if text not in _TRUE + _FALSE:
        raise EvaluationError("type conversion error from 'string' to 'bool'")
    return text in _TRUE


@function("bytes(bytes) bytes")
def same_bytes(value: bytes) -> bytes:
    return value


@function("bytes(string) bytes", price=lambda text: -(-len(text) // 10))
def text_to_bytes(text: str) -> bytes:
    return text.encode(errors="replace")


@function("dyn(A) dyn")
def dyn(value: Any) -> Any:
    return value


@function("type(A) type<A>")
def type_(value: Any) -> Type:
    return value_type(value)


def value_type(value: Any) -> Type:
    return Type("type") if isinstance(value, Type) else type_of(value)


@function("string(string) string", price=free)
def same_text(text: str) -> str:
    return text


@function("string(bool) string")
def bool_to_text(value: bool) -> str:
    return "true" if value else "false"


@function("string(int) string", "string(uint) string")
def int_to_text(value: int) -> str:
    return str(int(value))


@function("string(bytes) string", price=lambda value: -(-len(value) // 10))
def bytes_to_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


@function("string(double) string")
def double_to_text(value: float) -> str:
    """The shortest digits that mean this number, with an exponent from a million on, as Go's %g has it."""
    if not isfinite(value):
        return "NaN" if value != value else "+Inf" if value > 0 else "-Inf"
    mantissa, _, power = repr(float(value)).partition("e")
    sign, digits = ("-", mantissa[1:]) if mantissa[0] == "-" else ("", mantissa)
    before, _, after = digits.partition(".")
    figures = (before + after).lstrip("0").rstrip("0")
    if not figures:
        return sign + "0"
    leading = len(before + after) - len((before + after).lstrip("0"))
    exponent = len(before) + int(power or 0) - leading - 1
    if -5 < exponent < 6:
        return sign + _plain(figures, exponent)
    point = f".{figures[1:]}" if len(figures) > 1 else ""
    return f"{sign}{figures[0]}{point}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"


def _plain(figures: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + figures
    whole_part, rest = figures[: exponent + 1].ljust(exponent + 1, "0"), figures[exponent + 1 :]
    return f"{whole_part}.{rest}" if rest else whole_part
