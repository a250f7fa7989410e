"""The room that pods hold which are not placed yet: nominated pods, and pods of Volcano's gangs that wait for others to leave.
`find_node.py` asks filters with and without them.

The sums of nominated pods are kept for one priority at a time: they hold their room against pods that are not more important. Pods are
tried in order of falling priority, so that this priority only falls and few nominations are counted anew.
"""

from collections.abc import Iterator

import numpy as np

from pumice.scheduler.model import Cluster, Rows, Table, Task


class Nominator:
    """Nominated pods, by node. `stamp[n]` grows when the sums of a row change."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._places: dict[str, tuple[Task, int]] = {}  #: by task uid
        self._by_row: dict[int, dict[str, Task]] = {}
        self.stamp = np.zeros(len(cluster.nodes), int)
        self._begin(float("inf"))

    def __bool__(self) -> bool:
        return bool(self._places)

    def add(self, task: Task, row: int) -> None:
        self.drop(task)
        self._places[task.uid] = (task, row)
        self._by_row.setdefault(row, {})[task.uid] = task
        self._enter(task, row)

    def drop(self, task: Task) -> None:
        _, row = self._places.pop(task.uid, (task, -1))
        if row < 0:
            return
        del self._by_row[row][task.uid]
        if self._below.pop(task.uid, None) is None:
            self._count(task, row, -1)

    def row_of(self, task: Task) -> int:
        """The row to which the pod is nominated; -1 if it is not nominated."""
        return self._places.get(task.uid, (task, -1))[1]

    def on(self, row: int) -> list[Task]:
        return list(self._by_row.get(row, {}).values())

    def held_against(self, task: Task, row: int) -> Iterator[Task]:
        """The pods nominated to a row for which a task must leave room."""
        return (other for other in self.on(row) if other is not task and other.pod_priority >= task.pod_priority)

    def against(self, task: Task) -> tuple[Rows, Table]:
        """The rows where nominated pods hold room against a task, and how much they hold: [r, row]."""
        self._turn_to(task.pod_priority)
        numbers, own = self._numbers, self._places.get(task.uid)
        if own is not None:
            numbers = numbers.copy()
            numbers[own[1]] -= 1
        rows = np.flatnonzero(numbers)
        held = self._held[:, rows]
        if own is not None:
            held[np.ix_(task.template.columns, rows == own[1])] -= task.template.amounts[:, None]
        return rows, held

    # -- sums

    def _begin(self, threshold: float) -> None:
        table = self._cluster.nodes
        self._threshold = threshold
        self._held: Table = np.zeros((table.dimensions.width, len(table)))
        self._numbers = np.zeros(len(table), int)
        self._below = dict(self._places)  #: nominations that are less important than the threshold

    def _turn_to(self, threshold: int) -> None:
        if threshold > self._threshold:
            self._begin(float("inf"))
            self.stamp += 1
        if threshold < self._threshold:
            self._threshold = threshold
            below, self._below = self._below, {}
            for task, row in below.values():
                self._enter(task, row)

    def _enter(self, task: Task, row: int) -> None:
        if task.pod_priority < self._threshold:
            self._below[task.uid] = (task, row)
        else:
            self._count(task, row, 1)

    def _count(self, task: Task, row: int, sign: int) -> None:
        self._held[task.template.columns, row] += task.template.amounts * sign
        self._numbers[row] += sign
        self.stamp[row] += 1
