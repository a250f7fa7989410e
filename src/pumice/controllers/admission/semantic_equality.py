"""The meaning of a part of an object, to compare two versions of it.

Programs write the same value differently: Go programs may leave out empty values or write them, "1" for "1000m", and "10m0s" for "10m".
"""

from typing import Any

from pumice.api import duration
from pumice.api.quantity import QuantityError, quantity

AMOUNTS = ("requests", "limits")


def meaning(value: Any, field: str = "") -> Any:
    """A value that is equal for parts with the same meaning; None for a part that might as well be left out."""
    if isinstance(value, dict):
        read = _amount if field in AMOUNTS else meaning
        found = {name: read(inner, name) for name, inner in value.items()}
        return {name: inner for name, inner in found.items() if inner is not None} or None
    if isinstance(value, list):
        return [meaning(inner) for inner in value] or None
    return _span(value) if field == "timeout" else value or None


def _amount(value: Any, name: str) -> Any:
    try:
        return quantity(value).milli
    except QuantityError:
        return value


def _span(value: Any) -> Any:
    try:
        return duration(value)
    except (TypeError, ValueError):
        return value
