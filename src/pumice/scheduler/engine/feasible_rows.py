"""Which rows filters admit, kept up to date from the cluster's log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pumice.scheduler.engine.rules import Asking, Filter, Reach
from pumice.scheduler.engine.view import View, touched
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.resources import Mask, Rows

Prepared = Sequence[tuple[Filter, Any]]  #: filters, each with its state for a task


class RefusedRows(NamedTuple):
    """Masks over the rows of a view."""

    refused: Mask
    final: Mask  #: refused for good
    failing: Mask  #: some filter could say nothing of them

    @classmethod
    def of(cls, filters: Prepared, view: View, asking: Asking) -> RefusedRows:
        refused, final, failing = view.nothing(), view.nothing(), view.nothing()
        for rule, state in filters:
            for where, reason in asking.refuse(rule, state, view):
                refused |= where
                if reason.final:
                    final |= where
                if reason.fails:
                    failing |= where
        return cls(refused, final, failing)

    def revise(self, rows: Rows, masks: RefusedRows) -> None:
        """Some of the rows are judged anew."""
        for mask, part in zip(self, masks, strict=True):
            mask[rows] = part


class FeasibleRows:
    """The word of some filters on all rows. Between two uses only rows that changed are asked about again."""

    def __init__(self, cluster: Cluster, filters: Prepared, asking: Asking) -> None:
        self._cluster = cluster
        self._asking = asking
        self._filters: dict[Reach, list[tuple[Filter, Any]]] = {}
        for pair in filters:
            self._filters.setdefault(pair[0].reach, []).append(pair)
        self._refused: dict[Reach, RefusedRows] = {}
        self.failed = False  #: whether there was a row of which some filter could say nothing
        self._position = -1

    def refresh(self) -> None:
        """Take the log's changes in."""
        position = self._cluster.log.position
        if self._position == position:
            return
        for reach, filters in self._filters.items():
            if self._position < 0 or reach is Reach.CLUSTER:
                self._judge(reach, filters, None)
            elif reach is Reach.NODE:
                self._judge(reach, filters, touched(self._cluster, self._position))
        admitted = self._cluster.nodes.alive
        for masks in self._refused.values():
            admitted = admitted > masks.refused  # that is: and not
        self.admitted: Mask = admitted  #: rows that none of them refuses
        self._position = position

    def _judge(self, reach: Reach, filters: Prepared, rows: Rows | None) -> None:
        masks = RefusedRows.of(filters, View(self._cluster.nodes, rows), self._asking)
        self.failed = self.failed or bool(masks.failing.any())
        if rows is None:
            self._refused[reach] = masks
        else:
            self._refused[reach].revise(rows, masks)

    @property
    def final(self) -> Mask:
        """Rows that are gone, or refused for good."""
        final: Mask = ~self._cluster.nodes.alive
        for masks in self._refused.values():
            final |= masks.final
        return final

    @property
    def failing(self) -> Mask:
        """Rows of which some filter could say nothing."""
        failing = np.zeros(len(self._cluster.nodes), bool)
        for masks in self._refused.values():
            failing |= masks.failing
        return failing
