"""JSON that is nested too deeply for a decoder.

A user who may write an object may nest its managedFields as deeply as the server allows.
"""

import re
from typing import Protocol, TypeVar

DEEPEST = 200  #: the levels that are kept; a value that lies deeper reads as null

T = TypeVar("T", covariant=True)
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[{\]}]', re.DOTALL)


class Decoder(Protocol[T]):
    def decode(self, raw: bytes, /) -> T: ...


def decode(decoder: Decoder[T], raw: bytes) -> T:
    """The decoded value; parts that are nested too deeply for the decoder read as null."""
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
