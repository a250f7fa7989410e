"""Pods that a trial has put onto rows, less those that it has taken away: by namespace, those on their way out left aside.

An empty selector of a spread constraint counts no pod that stands, but kube-scheduler counts by it whom it adds and takes away in thought.
"""

from __future__ import annotations

from pumice.model.cluster import Cluster
from pumice.model.index import Index
from pumice.model.task import Task
from pumice.plugins.kube.standing.groups import terminating
from pumice.plugins.kube.standing.row_counts import RowCounts


class Imagined(Index):
    """To be asked for outside of trials first."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._counts: dict[str, RowCounts] = {}

    def counts(self, namespace: str) -> RowCounts:
        return self._counts.get(namespace) or RowCounts()

    def change(self, row: int, task: Task, sign: int) -> None:
        if self.cluster.imagined and not terminating(task):
            self._counts.setdefault(task.namespace, RowCounts()).add(row, sign)
