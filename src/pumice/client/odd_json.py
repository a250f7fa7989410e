"""JSON that a decoder does not take though it is whole: nested too deeply, or with bytes that are no UTF-8.

A user who may write an object may nest its managedFields as deeply as the server allows; a proxy may pass on any byte.
"""

import re
from typing import Protocol, TypeVar

import msgspec

NOT_TAKEN = (RecursionError, UnicodeDecodeError)  #: what a decoder raises of such JSON
DEEPEST = 200  #: the levels that are kept; a value that lies deeper reads as null

T = TypeVar("T", covariant=True)
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[{\]}]', re.DOTALL)


class Decoder(Protocol[T]):
    def decode(self, raw: bytes | msgspec.Raw, /) -> T: ...


def decode(decoder: Decoder[T], raw: bytes | msgspec.Raw) -> T:
    """The decoded value, as `readable` leaves it."""
    try:
        return decoder.decode(raw)
    except NOT_TAKEN:
        return decoder.decode(readable(bytes(raw)))


def readable(raw: bytes) -> bytes:
    """The JSON with null for what is nested too deeply, and U+FFFD for bytes that are no UTF-8."""
    raw = raw.decode("utf-8", "replace").encode()
    kept, begin, level = [], 0, 0
    for token in _TOKEN.finditer(raw):
        bracket = token[0]
        if bracket in (b"[", b"{"):
            level += 1
            if level == DEEPEST + 1:
                kept += [raw[begin : token.start()], b"null"]
        elif bracket in (b"]", b"}"):
            if level == DEEPEST + 1:
                begin = token.end()
            level -= 1
    return b"".join([*kept, raw[begin:]])
