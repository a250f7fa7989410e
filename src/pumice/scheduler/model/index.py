"""Indexes of the pods on each node, for rules to read: their ports, labels, affinity terms, disks, devices.

`Cluster.index(Ports)` counts all pods at the first call, and calls the index for every move from then on; an index that is never read
costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

from pumice.scheduler.model.task import Task

if TYPE_CHECKING:
    from pumice.scheduler.model.cluster import Cluster
    from pumice.scheduler.model.job import Job

MOST_ROWS = 4096  #: rows that are remembered of changes before the last session closed


class Index:
    """The base class of all indexes. A cluster has one index of each class. `kinds`: the kinds that it reads besides pods and nodes."""

    kinds: tuple[str, ...] = ()

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def begin(self) -> None:
        """Reset the index to a cluster without pods."""

    def recount(self) -> None:
        self.begin()
        for task in self.cluster.existing():
            self.change(task.node, task, 1)

    def change(self, row: int, task: Task, sign: int) -> None:
        """Take in that a pod came to a row (+1) or left it (-1), as filters see it. The task has its labels and status of that row."""

    def reread(self, job: Job) -> None:
        """Take in that the PodGroup of a job with tasks was added or changed."""

    def refresh(self) -> None:
        """Take in what else has changed. Called whenever `Cluster.index` returns the index."""

    def agrees(self, recount: Self) -> bool:
        """Whether an index that was counted just now has the same content. For tests."""
        return True

    def versions(self, *kinds: str) -> tuple[int, ...]:
        """Version numbers, which change when nodes or objects of these kinds (by default the index's own `kinds`) change."""
        cluster = self.cluster
        return cluster.nodes.static_version, len(cluster.nodes), *(cluster.versions.get(kind, 0) for kind in kinds or self.kinds)


# The log of a cluster: which tasks came to nodes and left them, for readers that catch up later.


class RowChange(NamedTuple):
    """One entry of `Cluster.log`: a task came to a row (+1) or left it (-1), or filters do not see the task (0)."""

    row: int
    task: Task
    sign: int


class RowLog(list[RowChange]):
    """The changes since the last session closed. Of earlier changes only the rows are remembered, and only of the last ones.

    A position is the number of all entries that there have ever been.
    """

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[int] = []  #: rows of the entries, and before them the remembered rows of earlier changes
        self.position = 0

    def append(self, change: RowChange) -> None:
        super().append(change)
        self._rows.append(change.row)
        self.position += 1

    def clear(self) -> None:
        if len(self._rows) > MOST_ROWS:
            del self._rows[: -MOST_ROWS // 2]
        super().clear()

    def since(self, position: int) -> list[RowChange] | None:
        """The changes after a position; None if the position is before the end of the last session."""
        number = self.position - position
        return self[len(self) - number :] if number <= len(self) else None

    def rows_since(self, position: int) -> set[int] | None:
        """The rows that changed after a position; None if the position is too long ago."""
        first = len(self._rows) - (self.position - position)
        return None if first < 0 else set(self._rows[first:])
