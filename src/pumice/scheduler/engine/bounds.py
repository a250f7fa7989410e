"""The best node for a task that comes once, by what its scores are at most.

Scores that are whole numbers take many passes over all nodes. What they are at most takes few, in float32, for a little is added to what is
rounded down. The first of the highest bounds is the best node if it is a score for certain, as nothing was near a whole number there: then
no node has more, and none before it as much. Else that node is scored, and if it has less, the next one is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from pumice.scheduler.engine.rules import Scorer, weighted
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.resources import Mask, NDArray
from pumice.scheduler.model.template import Template

Singles = NDArray[np.float32]

SLACK = 2.0**-14  #: more than float32 is wrong by after a few operations on numbers up to 100
LOOKS = 4  #: at single nodes, before all are sooner scored
WEIGHTS = range(1, 1000)  #: with these, sums of scores are exact in float32


class Bound(NamedTuple):
    """What a score is at most on each node, and [k, n] what was rounded down for it, with SLACK added."""

    most: Singles
    rounded: Singles


class Bounds:
    """What the bounds of one scorer are made of, whatever the task."""

    def of(self, template: Template) -> Bound | None:
        """For a task; None if its scores are made of more."""
        raise NotImplementedError

    def update(self, rows: int | slice = slice(None)) -> None:
        """Look at nodes as they are now."""
        raise NotImplementedError


class BestByBounds:
    """For tasks about which no scorers but these tell nodes apart."""

    def __init__(self, cluster: Cluster, scorers: Sequence[Scorer]) -> None:
        self._cluster = cluster
        self._scorers = scorers
        self._kept: list[tuple[Bounds, float]] = []  #: of all scorers, with their weights, or none
        self._position = -1
        self.foremost = -1  #: the row of the highest bound of all nodes for the last task, whether it was a candidate or not

    def find(self, template: Template, score_of: Callable[[int], float], candidates: Mask | None = None) -> int:
        """The row of the highest score among candidates (None: all nodes), the first of equals; -1 if bounds do not tell it soon."""
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
        """Take the log's changes in."""
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
