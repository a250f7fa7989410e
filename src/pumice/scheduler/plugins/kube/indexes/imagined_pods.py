"""The pods that a dry run has put onto rows or removed, where the counts do not show it.

A spread constraint with an empty selector counts no existing pod, and no constraint counts a terminating pod; but kube-scheduler counts
both when a dry run adds or removes them.
"""

from __future__ import annotations

from collections.abc import Iterator

from pumice.scheduler.model import Cluster, Index, Task
from pumice.scheduler.plugins.kube.indexes.existing_pods import CountedPods, terminating
from pumice.scheduler.plugins.kube.indexes.pod_counts import PodCounts


class Imagined(Index):
    """Must be asked for once outside a dry run before it is used in one."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._counts: dict[str, PodCounts] = {}
        self._leaving: dict[str, tuple[int, Task, int]] = {}

    def counts(self, namespace: str) -> PodCounts:
        return self._counts.get(namespace) or PodCounts()

    def leaving(self, group: CountedPods) -> Iterator[tuple[int, int]]:
        """The terminating pods of a group: the row of each, and 1 if the dry run has added it, -1 if it has removed it."""
        return ((row, sign) for row, task, sign in self._leaving.values() if all(scope.has(task) for scope in group.scopes))

    def change(self, row: int, task: Task, sign: int) -> None:
        if not self.cluster.imagined:
            return
        self._counts.setdefault(task.namespace, PodCounts()).add(row, sign)
        if terminating(task) and self._leaving.pop(task.uid, None) is None:
            self._leaving[task.uid] = row, task, sign
