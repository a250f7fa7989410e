"""The best node for a task that occurs once, found by upper bounds of its scores.

Scores that are whole numbers take many passes over all nodes. Upper bounds of them take few passes, in float32: a small amount is added to
each number before it is rounded down. The first node with the highest bound is the best one if its bound is certainly its score, that is
if none of its numbers was near a whole number: then no node scores higher, and no node before it as high. Else this node is scored, and
if its score is less than the bound, the node with the next highest bound is examined.
"""

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from pumice.scheduler.engine.normalize_score import weighted
from pumice.scheduler.engine.rules import Bounds, Scorer
from pumice.scheduler.model import Cluster, Mask, Template

SLACK = 2.0**-14  #: greater than the error of float32 after a few operations on numbers up to 100
LOOKS = 4  #: the most nodes that are examined one by one; after these, scoring all nodes is quicker
WEIGHTS = range(1, 1000)  #: with these, sums of scores are exact in float32


class BestByBounds:
    """Finds the best node for tasks for which only these scorers tell nodes apart."""

    def __init__(self, cluster: Cluster, scorers: Sequence[Scorer]) -> None:
        self._cluster = cluster
        self._scorers = scorers
        self._kept: list[tuple[Bounds, float]] = []  #: of all scorers, with weights; empty if a scorer has no bounds
        self._position = -1
        self.foremost = -1  #: the row with the highest bound of all nodes for the last task, even if it was no candidate

    def find(self, template: Template, score_of: Callable[[int], float], candidates: Mask | None = None) -> int:
        """The row with the highest score among the candidates (None: all nodes), the first of equal ones; -1 if bounds do not decide it
        within LOOKS nodes. `score_of`: the score of a row."""
        self._refresh()
        parts, rounded = [], []
        for kept, weight in self._kept:
            bound = kept.of(template)
            if bound is None:
                return -1
            parts.append(weighted(bound.most, weight))
            rounded.append(bound.rounded)
        if not parts:
            return -1
        most = reduce(np.add, parts)
        row = self.foremost = int(most.argmax())
        for _ in range(LOOKS):
            if candidates is not None and not candidates[row]:
                most, candidates = np.where(candidates, most, -np.inf), None
                row = int(most.argmax())
            above_whole = min([number % 1.0 for part in rounded for number in part[:, row].tolist()])
            if above_whole >= 2 * SLACK or (score := score_of(row)) == most[row]:
                return row
            most[row] = score
            row = int(most.argmax())
        return -1

    def _refresh(self) -> None:
        """Take in the changes that are in the log."""
        log, table = self._cluster.log, self._cluster.nodes
        since, self._position = self._position, log.position
        rows = log.rows_since(since) if since >= 0 else None
        if rows is None or len(rows) * 4 > len(table):
            made = [(rule.bounds(table) if rule.weight in WEIGHTS else None, rule.weight) for rule in self._scorers]
            known = [(bounds, weight) for bounds, weight in made if bounds is not None]
            self._kept = known if len(known) == len(made) else []
            return
        for row in rows:
            for bounds, _ in self._kept:
                bounds.update(row)
