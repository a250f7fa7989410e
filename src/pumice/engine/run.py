"""Where a run of equal tasks goes, one after the other, without asking every node again for each.

Between two placements of copies only the touched row changes. So the best rows are sorted once, and a heap holds them with the
score each would have for the next copy. Rows beyond the first k cannot be reached by k copies: an untouched row keeps its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np

from pumice.engine.evaluation import Evaluation
from pumice.engine.view import Scores, View
from pumice.model.resources import Mask, Rows

AHEAD = 8  #: copies on one row that are scored at once when it is used repeatedly


def plan(evaluation: Evaluation, candidates: Mask, copies: int) -> Iterator[int]:
    """Rows for up to `copies` equal tasks, best first, each as if the earlier ones stood. Only idle room is used.

    Needs `evaluation.steady`, refreshed. The caller may stop at any time; what it places must be the same template.
    """
    rows = np.flatnonzero(candidates)
    scores = evaluation.totals(candidates)[rows]
    order = np.argsort(-scores, kind="stable")[:copies]
    heap = list(zip((-scores[order]).tolist(), rows[order].tolist(), strict=True))
    ahead = _Ahead(evaluation, rows[order], evaluation.extras(candidates))
    for _ in range(copies):
        if not heap:
            return
        _, row = heappop(heap)
        yield row
        score = ahead.next(row)
        if score is not None:
            heappush(heap, (-score, row))


class _Ahead:
    """Scores of rows as they will be with copies on them; None once no further copy fits."""

    def __init__(self, evaluation: Evaluation, rows: Rows, extras: list[float]) -> None:
        self._evaluation = evaluation
        self._extras = extras
        self._scores: dict[int, list[float | None]] = {}
        self._used = dict.fromkeys(rows.tolist(), 0)
        self._look(rows, np.ones(len(rows)))

    def next(self, row: int) -> float | None:
        """The row took one copy, and the table knows: its score for another."""
        count = self._used[row] = self._used[row] + 1
        known = self._scores[row]
        if count > len(known):
            self._look(np.full(AHEAD, row), np.arange(AHEAD, dtype=float))
        return self._scores[row][count - 1]

    def _look(self, rows: Rows, copies: Scores) -> None:
        evaluation = self._evaluation
        view = View(evaluation.table, rows, evaluation.template, copies)
        scores, fine = evaluation.look_ahead(view, self._extras)
        for row, score, fits in zip(rows.tolist(), scores.tolist(), fine.tolist(), strict=True):
            self._scores.setdefault(row, []).append(score if fits else None)
