"""Whole numbers in annotations, labels and names, where anybody may have written anything."""

from __future__ import annotations

import re
from collections.abc import Iterable

_FORM = re.compile(r"[+-]?[0-9]{1,19}\Z")
MOST_INDEXES = 100_000  #: of a set; one that names more is taken for a slip


def integer(text: str, default: int = 0) -> int:
    """As an integer of 64 bits; the default for everything else."""
    value = int(text) if _FORM.match(text) else default
    return value if -(2**63) <= value < 2**63 else default


def index_set(text: str) -> set[int]:
    """The numbers of "0-3,8". Parts that are no numbers are left out, as are those that would be beyond counting."""
    found: set[int] = set()
    for part in text.replace(" ", "").split(","):
        first, dash, last = part.partition("-")
        begin, end = integer(first, -1), integer(last if dash else first, -1)
        if 0 <= begin <= end < begin + MOST_INDEXES - len(found):
            found.update(range(begin, end + 1))
    return found


def as_ranges(indexes: Iterable[int]) -> str:
    """The other way."""
    spans: list[list[int]] = []
    for index in sorted(indexes):
        if spans and spans[-1][1] == index - 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
