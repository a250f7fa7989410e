"""Who stands on each node, the most important first, as padded arrays: what preemption walks over, all nodes at a time.

Kept from cycle to cycle: a row is read anew once anything moved on it. Importance: priority, then how long it runs, then arrival.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from pumice.scheduler.eviction.pick_node import Numbers
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.index import Index
from pumice.scheduler.model.nodes import Table
from pumice.scheduler.model.resources import Rows
from pumice.scheduler.model.task import Task

NOBODY = 2**62  #: the priority of a place that is empty: nobody is above it


def importance(task: Task) -> tuple[int, float, int]:
    """A key, the most important first. Who has no start counts as started just now."""
    return (-task.pod_priority, float("inf") if task.started is None else task.started, task.number)


def standing(tasks: Iterable[Task]) -> Iterator[Task]:
    """Without those that only hold a place for the rest of the session: there is nobody to evict."""
    return (task for task in tasks if not task.status & (status.ALLOCATED | status.PIPELINED))


class VictimsTable(Index):
    """See the module. `stamp[n]` grows when a row is read anew. Arrays are [place, row], [place, r, row]."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._dirty: set[int] = set()  #: rows that changed
        self._shape = (0, 0, 0)

    def change(self, row: int, task: Task, sign: int) -> None:
        self._dirty.add(row)

    def refresh(self) -> None:
        nodes, width = len(self.cluster.nodes), self.cluster.dimensions.width
        if self._shape[1:] != (width, nodes):
            self._clear(max(8, *(len(tasks) for tasks in self.cluster.nodes.tasks)) if nodes else 8, width, nodes)
        if not self._dirty:
            return
        rows, self._dirty = self._dirty, set()
        for row in rows:
            self._read(row)

    def _clear(self, places: int, width: int, nodes: int) -> None:
        self._shape = (places, width, nodes)
        self.tasks: list[list[Task]] = [[] for _ in range(nodes)]
        self.priority: Numbers = np.full((places, nodes), NOBODY, np.int64)
        self.started: Table = np.full((places, nodes), np.inf)
        self.requests = np.zeros((places, width, nodes))
        self.numbers: Numbers = np.zeros(nodes, np.int64)
        self.stamp: Numbers = np.zeros(nodes, np.int64)
        self._dirty = set(range(nodes))

    def _read(self, row: int) -> None:
        tasks = self.tasks[row] = sorted(standing(self.cluster.nodes.tasks[row].values()), key=importance)
        if len(tasks) > self._shape[0]:
            self._deepen(2 * len(tasks))
        self.priority[:, row], self.started[:, row], self.requests[:, :, row] = NOBODY, np.inf, 0.0
        for place, task in enumerate(tasks):
            self.priority[place, row] = task.pod_priority
            self.requests[place, task.template.columns, row] = task.template.amounts
            if task.started is not None:
                self.started[place, row] = task.started
        self.numbers[row] = len(tasks)
        self.stamp[row] += 1

    def _deepen(self, places: int) -> None:
        before, width, nodes = self._shape
        more = places - before
        self.priority = np.concatenate([self.priority, np.full((more, nodes), NOBODY, np.int64)])
        self.started = np.concatenate([self.started, np.full((more, nodes), np.inf)])
        self.requests = np.concatenate([self.requests, np.zeros((more, width, nodes))])
        self._shape = (places, width, nodes)

    def depth(self, rows: Rows) -> int:
        """Places in use on any of the rows."""
        return int(self.numbers[rows].max(initial=0))

    def lower(self, row: int, priority: int) -> list[Task]:
        """Who is less important than a priority, the most important first."""
        return [task for task in self.tasks[row] if task.pod_priority < priority]
