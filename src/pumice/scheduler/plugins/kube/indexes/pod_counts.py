"""How often something stands on each row, and summed over domains: rows that share a label's value.

Most things stand on few rows, so counts are a mapping; one of many rows keeps an array beside it once sums are asked for.
"""

from __future__ import annotations

import numpy as np

from pumice.scheduler.engine.view import Scores
from pumice.scheduler.model.nodes import ABSENT, Codes, Nodes
from pumice.scheduler.model.resources import Mask

FEW = 64  #: up to so many rows a loop over them is faster than an array of all


class PodCounts:
    __slots__ = ("_array", "_sums", "by_row")

    def __init__(self) -> None:
        self.by_row: dict[int, int] = {}  #: counts, never 0
        self._array: Scores | None = None
        self._sums: dict[str, tuple[Codes, Scores]] = {}  #: by label: the codes of rows, and by code the sums, with 0 for rows without one

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

    def near(self, key: str, table: Nodes) -> Scores:
        """For every row, how many stand on rows with the same value of a label. Summed once; then who comes and goes is added."""
        codes, values = table.codes(key)
        known = self._sums.get(key)
        if known is None or known[0] is not codes:  # nodes or their labels are others
            known = self._sums[key] = codes, np.append(self.per_domain(codes, len(values)), 0.0)
        shown: Scores = known[1].take(codes)
        return shown

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
    spread: Scores = np.append(sums, 0.0).take(codes)
    return spread
