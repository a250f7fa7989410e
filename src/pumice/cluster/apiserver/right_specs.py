"""Pods are mostly copies of each other: a spec that was found right is not checked again."""

from msgspec.json import encode

from pumice.api import Object

KEPT = 512  #: specs
LONGEST = 16_384  #: bytes


class RightSpecs:
    def __init__(self) -> None:
        self._right: dict[bytes, None] = {}  #: the oldest first

    def has(self, spec: Object) -> bool:
        return encode(spec) in self._right

    def add(self, spec: Object) -> None:
        text = encode(spec)
        if len(text) > LONGEST:
            return
        if len(self._right) == KEPT:
            del self._right[next(iter(self._right))]
        self._right[text] = None
