"""Which rows filters admit, kept up to date from the cluster's log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pumice.scheduler.engine.rules import Asking, Filter, Reach
from pumice.scheduler.engine.view import View, touched
from pumice.scheduler.model.arrays import NDArray
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.resources import Mask, Rows

Prepared = Sequence[tuple[Filter, Any]]  #: filters, each with its state for a task

#: What filters say of a row, as bits: 1 if it is refused, and these if for good, or if some filter could say nothing of it.
FINAL, FAILING = np.uint8(2), np.uint8(4)

FEW = 32  #: rows that are sooner kept in mind than asked about


def refusal_bits(filters: Prepared, view: View, asking: Asking) -> NDArray[np.uint8]:
    """The word of filters on the rows of a view."""
    bits = np.zeros(len(view), np.uint8)
    for rule, state in filters:
        for where, reason in asking.refuse(rule, state, view):
            bits |= where
            if reason.final or reason.fails:
                bits |= where * (reason.final * FINAL | reason.fails * FAILING)
    return bits


class FeasibleRows:
    """The word of some filters on all rows. Between two uses only rows that changed are asked about again."""

    def __init__(self, cluster: Cluster, filters: Prepared, asking: Asking) -> None:
        self._cluster = cluster
        self._asking = asking
        self._filters: dict[Reach, list[tuple[Filter, Any]]] = {}
        for pair in filters:
            self._filters.setdefault(pair[0].reach, []).append(pair)
        self._bits: dict[Reach, NDArray[np.uint8]] = {}
        self.failed = False  #: whether there was a row of which some filter could say nothing
        self._position = -1

    def refresh(self) -> None:
        """Take the log's changes in."""
        since, position = self._position, self._cluster.log.position
        if since == position:
            return
        is_new = since < 0
        for reach, filters in self._filters.items():
            if since < 0 or reach is Reach.CLUSTER:
                is_new |= self._judge(reach, filters, None)
            elif reach is Reach.NODE:
                is_new |= self._judge(reach, filters, touched(self._cluster, since))
        if is_new:
            admitted = self._cluster.nodes.alive
            for bits in self._bits.values():
                admitted = admitted & (bits == 0)
            self.admitted: Mask = admitted  #: rows that none of them refuses
        self._position = position

    def admits(self, row: int) -> bool:
        """Whether none of them refuses a row. Others that changed are not asked about for its sake, as long as they are few."""
        changed = self._cluster.log.rows_since(self._position) if self._position >= 0 else None
        if changed is None or row in changed or len(changed) > FEW or Reach.CLUSTER in self._filters:
            self.refresh()
        return bool(self.admitted[row])

    def _judge(self, reach: Reach, filters: Prepared, rows: Rows | slice | None) -> bool:
        """Whether they say something new of some rows."""
        bits = refusal_bits(filters, View(self._cluster.nodes, rows), self._asking)
        if rows is None:
            self._bits[reach] = bits
        elif self._bits[reach][rows].tobytes() == bits.tobytes():
            return False
        else:
            self._bits[reach][rows] = bits
        self.failed = self.failed or bool(np.bitwise_or.reduce(bits) & FAILING)
        return True

    @property
    def final(self) -> Mask:
        """Rows that are gone, or refused for good."""
        return ~self._cluster.nodes.alive | self._with(FINAL)

    @property
    def failing(self) -> Mask:
        """Rows of which some filter could say nothing."""
        return self._with(FAILING)

    def _with(self, bit: np.uint8) -> Mask:
        found = np.zeros(len(self._cluster.nodes), bool)
        for bits in self._bits.values():
            found |= (bits & bit) > 0
        return found
