"""JSON that is nested deeper than a decoder can go: who may write an object may nest its managedFields as deep as a server lets them."""

from __future__ import annotations

import re
from typing import Protocol, TypeVar

DEEPEST = 200  #: levels that are kept; what lies deeper reads as null

T = TypeVar("T", covariant=True)
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[{\]}]', re.DOTALL)


class Decoder(Protocol[T]):
    def decode(self, raw: bytes, /) -> T: ...


def decode(decoder: Decoder[T], raw: bytes) -> T:
    """What the decoder makes of it, without what lies too deep for it."""
    try:
        return decoder.decode(raw)
    except RecursionError:
        return decoder.decode(shallow(raw))


def shallow(raw: bytes) -> bytes:
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
