"""Pods are mostly copies of each other: a spec that was found right is not checked again."""

KEPT = 512  #: specs
LONGEST = 16_384  #: bytes


class RightSpecs:
    """Specs that were found right, as they are encoded."""

    def __init__(self) -> None:
        self._right: dict[bytes, None] = {}  #: the oldest first

    def __contains__(self, spec: bytes) -> bool:
        return spec in self._right

    def add(self, spec: bytes) -> None:
        if len(spec) > LONGEST:
            return
        if len(self._right) == KEPT:
            del self._right[next(iter(self._right))]
        self._right[spec] = None
