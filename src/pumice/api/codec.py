"""Wire structs from and to JSON, and from plain values, with quantities made on the way."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from pumice.api.quantity import Quantity, quantity

T = TypeVar("T")


def _decode(kind: type, value: Any) -> Any:
    if kind is Quantity and isinstance(value, str | int | float) and not isinstance(value, bool):
        return quantity(value)
    raise TypeError(f"Expected a quantity, got `{type(value).__name__}`")


def _encode(value: Any) -> Any:
    if isinstance(value, Quantity):
        return value.text
    raise TypeError(type(value).__name__)


@lru_cache(maxsize=256)
def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """A JSON decoder for a wire struct. Its decode() raises msgspec.ValidationError, whose text ends in the path."""
    return msgspec.json.Decoder(kind, dec_hook=_decode)


def convert(value: Any, kind: type[T]) -> T:
    """From plain dicts and lists. Raises msgspec.ValidationError."""
    return msgspec.convert(value, kind, dec_hook=_decode)


_ENCODER = msgspec.json.Encoder(enc_hook=_encode)


def encode(value: Any) -> bytes:
    return _ENCODER.encode(value)
