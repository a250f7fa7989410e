"""Kubernetes quantities, exactly: "1500m", "2Gi", "1e3", 2. Never a float on the way.

A quantity is read in one of two units, each rounded up to an integer as Kubernetes does: `milli` (CPU, extended resources)
or `whole` (bytes, counts). Equal texts share one `Quantity`.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from math import ceil

_FORM = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,2}))?\Z")
_MULTIPLIER: dict[str | None, Decimal] = {
    None: Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(10**3),
    **{letter: Decimal(10 ** (3 * power)) for power, letter in enumerate("MGTPE", 2)},
    **{letter + "i": Decimal(1024**power) for power, letter in enumerate("KMGTPE", 1)},
}


class QuantityError(ValueError):
    """Not a quantity; the text says what to write."""


class Quantity:
    """One quantity, both ways round. Get it from `quantity()`."""

    __slots__ = ("milli", "text", "whole")

    def __init__(self, text: str, value: Decimal) -> None:
        self.text = text
        self.milli = ceil(value * 1000)  #: in thousandths, rounded up
        self.whole = ceil(value)  #: in whole units, rounded up

    def __repr__(self) -> str:
        return f"Quantity({self.text})"


@lru_cache(maxsize=65536)
def quantity(text: str | int | float) -> Quantity:
    """Raises QuantityError."""
    match = _FORM.match(str(text))
    if match is None:
        raise QuantityError(f'"{text}" is not a quantity; {_advice(str(text))}')
    number, suffix, exponent = match.groups()
    return Quantity(str(text), Decimal(number) * (Decimal(10) ** int(exponent) if exponent else _MULTIPLIER[suffix]))


def _advice(text: str) -> str:
    digits = re.match(r"\s*([+-]?\d+(?:\.\d+)?)", text)
    if digits is None:
        return 'write a number, such as "2", "500m" or "4Gi"'
    return f'write "{digits.group(1)}", or with a suffix such as "500m" or "4Gi"'


def format_milli(value: float) -> str:
    """Thousandths as the shortest quantity: 1500 -> "1500m", 2000 -> "2"."""
    amount = round(value)
    return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"


def format_bytes(value: float) -> str:
    """Bytes with the largest binary suffix that divides them: 2147483648 -> "2Gi"."""
    amount = round(value)
    if amount == 0:
        return "0"
    for power in range(6, 0, -1):
        if amount % 1024**power == 0:
            return f"{amount // 1024**power}{'KMGTPE'[power - 1]}i"
    return str(amount)
