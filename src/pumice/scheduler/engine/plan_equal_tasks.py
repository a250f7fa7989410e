"""Where a run of equal tasks goes, one after the other, without examining every node again for each task.

When a copy is placed, only its row changes, so the score of a row depends only on how many copies it has. These scores are computed for
many rows and several copies at once, as cells of a table [row, copy]. Sorted, the cells have the order in which a scan of all nodes for
each task would choose them: first by rank, then by row, then by number of the copy. The rank of a copy is the lowest score among this
copy and the copies before it on the row: once a row was the best, its next copies with higher scores follow at once.
"""

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from pumice.scheduler.engine.evaluation import NOTHING, Evaluation
from pumice.scheduler.engine.view import PlannedView, Scores, snapshot
from pumice.scheduler.model import Mask, Rows

CELLS = 8192  #: the most cells that are scored together
DEEPEST = 64  #: the most copies on one row that are scored together


def plan(evaluation: Evaluation, candidates: Mask, copies: int) -> Iterator[int]:
    """The rows for up to `copies` equal tasks, each the best one after the tasks before it are placed. Only idle room is used.

    The evaluation must be refreshed, and `steady`. The caller may stop at any time; the tasks that it places must have the same template.
    """
    scores = evaluation.totals(candidates)
    rows = _best_rows(scores, candidates, copies)
    run = _Run(evaluation, rows, scores[rows], evaluation.extras(candidates) if len(rows) else [])
    depth = min(DEEPEST, 2 + copies // max(len(rows), 1))
    left = copies
    while left > 0:
        part = run.next_part(depth)
        if not len(part.rows):
            return
        yield from part.rows[:left].tolist()
        left -= len(part.rows)
        depth = min(DEEPEST, 2 * depth) if part.ended_deep else depth


def _best_rows(scores: Scores, candidates: Mask, count: int) -> Rows:
    """The rows with the `count` highest scores (of equal scores the first rows), in order. No copy can be placed on any other row."""
    rows = np.flatnonzero(candidates)
    if len(rows) <= count:
        return rows
    values = scores[rows]
    threshold = np.partition(values, len(values) - count)[len(values) - count]
    above = values > threshold
    level = np.flatnonzero(values == threshold)[: count - int(above.sum())]
    above[level] = True
    best: Rows = rows[above]
    return best


class _Part(Struct, frozen=True):
    rows: Rows  #: where the next copies go, in order
    ended_deep: bool  #: whether it ended because more copies of a row must be scored


class _Run:
    """The progress of a plan: the copies on each row so far, and the score of each row for its next copy."""

    def __init__(self, evaluation: Evaluation, rows: Rows, scores: Scores, extras: list[float]) -> None:
        self._evaluation = evaluation
        self._base = snapshot(evaluation.table, rows)
        self._rows = rows
        self._scores = scores.copy()  #: for the next copy; NOTHING where none fits
        self._copies = np.zeros(len(rows))
        self._extras = extras

    def next_part(self, depth: int) -> _Part:
        """The next copies, as far as they follow from the scores of the best rows for `depth` more copies each."""
        order = np.lexsort((self._rows, -self._scores))
        width = max(1, CELLS // depth)
        active, rest = order[:width], order[width : width + 1]
        cells, ranks = self._cells(active, depth)
        place = np.repeat(active, depth)
        number = np.tile(np.arange(depth), len(active))
        sequence = np.lexsort((number, self._rows[place], -ranks.ravel()))
        sequence = sequence[: self._reliable(ranks.ravel()[sequence], self._rows[place[sequence]], rest)]
        last = np.flatnonzero(number[sequence] == depth - 1)
        if len(last):
            sequence = sequence[: int(last[0]) + 1]
        taken = np.bincount(place[sequence], minlength=len(self._rows))
        self._copies += taken
        self._advance(active, cells, taken[active], depth)
        return _Part(self._rows[place[sequence]], bool(len(last)))

    def _cells(self, active: Rows, depth: int) -> tuple[Scores, Scores]:
        """The scores [row, copy] of the next copies, and their ranks."""
        copies = (self._copies[active][:, None] + np.arange(depth)).ravel()
        view = PlannedView(self._base, np.repeat(active, depth), self._evaluation.template, copies)
        scores, fine = self._evaluation.look_ahead(view, self._extras)
        cells = np.where(fine, scores, NOTHING).reshape(len(active), depth)
        return cells, np.minimum.accumulate(cells, axis=1)

    def _reliable(self, ranks: Scores, rows: Rows, rest: Rows) -> int:
        """How many cells of the sorted sequence come before any cell that was not computed."""
        fits = ranks > NOTHING
        if len(rest):
            bound, row = self._scores[rest[0]], self._rows[rest[0]]
            fits &= (ranks > bound) | ((ranks == bound) & (rows < row))
        return int(fits.argmin()) if not fits.all() else len(fits)

    def _advance(self, active: Rows, cells: Scores, taken: Rows, depth: int) -> None:
        """Set the scores of the active rows to those for the copies after the ones taken."""
        known = taken < depth
        self._scores[active[known]] = cells[known, taken[known]]
        deep = active[~known]
        if len(deep):
            self._scores[deep] = self._cells(deep, 1)[0][:, 0]
