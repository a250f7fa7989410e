"""How often something stands on each row, and summed over domains: rows that share a label's value.

Most things stand on few rows, so counts are a mapping; one of many rows keeps an array beside it once sums are asked for.
"""

from __future__ import annotations

import numpy as np

from pumice.engine.view import Scores
from pumice.model.nodes import Codes
from pumice.model.resources import Mask

FEW = 64  #: up to so many rows a loop over them is faster than an array of all


class RowCounts:
    __slots__ = ("_array", "by_row")

    def __init__(self) -> None:
        self.by_row: dict[int, int] = {}  #: counts, never 0
        self._array: Scores | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowCounts) and self.by_row == other.by_row

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

    def array(self, rows: int) -> Scores:
        """The counts of all rows. Not to be changed."""
        if self._array is None or len(self._array) != rows:
            self._array = np.zeros(rows)
            for row, count in self.by_row.items():
                self._array[row] = count
        return self._array

    def present(self, rows: int) -> Mask:
        """Rows where it stands at all."""
        if len(self.by_row) > FEW:
            return self.array(rows) > 0
        mask = np.zeros(rows, bool)
        mask[list(self.by_row)] = True
        return mask

    def per_domain(self, codes: Codes, domains: int) -> Scores:
        """Sums by code; rows without one (negative) are left out."""
        if len(self.by_row) > FEW:
            return np.bincount(codes + 1, weights=self.array(len(codes)), minlength=domains + 1)[1:].astype(np.float64, copy=False)
        sums = np.zeros(domains + 1)
        for row, count in self.by_row.items():
            sums[codes[row]] += count
        return sums[:domains]


def shown_per_node(sums: Scores, codes: Codes) -> Scores:
    """For every row the value of its domain, 0 for one without."""
    spread: Scores = np.append(sums, 0.0)[codes]
    return spread
