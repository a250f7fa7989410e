"""Counts of pods per row, and their sums per domain (the rows that share a label's value).

Most counts concern few rows, so they are a mapping; counts over many rows keep an array beside it once sums are needed.
"""

from __future__ import annotations

import numpy as np

from pumice.scheduler.engine import Scores
from pumice.scheduler.model import ABSENT, Codes, Mask, Nodes

FEW = 64  #: up to this number of rows a loop is faster than an array of all rows


class PodCounts:
    __slots__ = ("_array", "_sums", "by_row")

    def __init__(self) -> None:
        self.by_row: dict[int, int] = {}  #: counts, never 0
        self._array: Scores | None = None
        self._sums: dict[str, tuple[Codes, Scores]] = {}  #: by label key: codes of rows, sums by code; the last is 0, for rows without it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PodCounts) and self.by_row == other.by_row

    def __bool__(self) -> bool:
        return bool(self.by_row)

    def add(self, row: int, sign: int) -> None:
        count = self.by_row.get(row, 0) + sign
        if count:
            self.by_row[row] = count
        else:
            del self.by_row[row]
        if self._array is not None:
            if row < len(self._array):
                self._array[row] = count
            else:
                self._array = None
        for codes, sums in self._sums.values():
            if row < len(codes) and codes[row] != ABSENT:
                sums[codes[row]] += sign

    def array(self, rows: int) -> Scores:
        """The counts of all rows. The caller must not change the array."""
        if self._array is None or len(self._array) != rows:
            self._array = np.zeros(rows)
            for row, count in self.by_row.items():
                self._array[row] = count
        return self._array

    def present(self, rows: int) -> Mask:
        """The rows whose count is not 0."""
        if len(self.by_row) > FEW:
            return self.array(rows) > 0
        mask = np.zeros(rows, bool)
        mask[list(self.by_row)] = True
        return mask

    def near(self, key: str, table: Nodes) -> Scores:
        """For every row, the sum of the counts on rows with the same value of a label. It is summed once; later changes are added."""
        codes, values = table.codes(key)
        known = self._sums.get(key)
        if known is None or known[0] is not codes:  # nodes or their labels have changed
            known = self._sums[key] = codes, np.append(self.per_domain(codes, len(values)), 0.0)
        shown: Scores = known[1].take(codes)
        return shown

    def per_domain(self, codes: Codes, domains: int) -> Scores:
        """The sums of the counts by code. Rows without a code (a negative one) are left out."""
        if len(self.by_row) > FEW:
            return np.bincount(codes + 1, weights=self.array(len(codes)), minlength=domains + 1)[1:].astype(np.float64, copy=False)
        sums = np.zeros(domains + 1)
        for row, count in self.by_row.items():
            sums[codes[row]] += count
        return sums[:domains]


def shown_per_node(sums: Scores, codes: Codes) -> Scores:
    """For every row the value of its domain; 0 for a row without a domain."""
    spread: Scores = np.append(sums, 0.0).take(codes)
    return spread
