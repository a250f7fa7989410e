"""Whole numbers in annotations, labels and names, which may hold any text."""

import re
from collections.abc import Iterable

_DIGITS = re.compile(r"[+-]?[0-9]{1,19}\Z")
MOST_INDEXES = 100_000  #: the most indexes of a set; a range that would exceed it is taken for a mistake


def integer(text: str, default: int = 0) -> int:
    value = int(text) if _DIGITS.match(text) else default
    return value if -(2**63) <= value < 2**63 else default


def index_set(text: str) -> set[int]:
    """The set of numbers in a text such as "0-3,8". Parts that are no numbers or ranges, or would exceed MOST_INDEXES, are left out."""
    found: set[int] = set()
    for part in text.replace(" ", "").split(","):
        first, dash, last = part.partition("-")
        begin, end = integer(first, -1), integer(last if dash else first, -1)
        if 0 <= begin <= end < begin + MOST_INDEXES - len(found):
            found.update(range(begin, end + 1))
    return found


def as_ranges(indexes: Iterable[int]) -> str:
    """The text for a set of numbers, such as "0-3,8": the inverse of `index_set`."""
    spans: list[list[int]] = []
    for index in sorted(indexes):
        if spans and spans[-1][1] == index - 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
