"""What is kept of the pods on each node for rules to ask about: their ports, labels, terms, disks, devices.

`Cluster.index(Ports)` counts once, when it is first asked for, and tells the index of every move from then on; what nobody asks for costs
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

from pumice.scheduler.model.task import Task

if TYPE_CHECKING:
    from pumice.scheduler.model.cluster import Cluster
    from pumice.scheduler.model.job import Job

MOST_ROWS = 4096  #: that are remembered of what was before the last session closed


class Index:
    """One of a kind for each cluster. `kinds` are those of the objects that it reads besides pods and nodes."""

    kinds: tuple[str, ...] = ()

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def begin(self) -> None:
        """Know of no pod."""

    def recount(self) -> None:
        self.begin()
        for task in self.cluster.existing():
            self.change(task.node, task, 1)

    def change(self, row: int, task: Task, sign: int) -> None:
        """A pod came to a row (+1) or left it (-1), as filters see it; its labels and status hold for both."""

    def reread(self, job: Job) -> None:
        """The PodGroup of some pods was put anew."""

    def refresh(self) -> None:
        """Take in what else has changed. Called whenever it is asked for."""

    def agrees(self, recount: Self) -> bool:
        """Whether one that was counted just now says the same. For tests."""
        return True

    def versions(self, *kinds: str) -> tuple[int, ...]:
        """Other numbers once nodes or objects of the kinds (by default its own) have changed."""
        cluster = self.cluster
        return cluster.nodes.static_version, len(cluster.nodes), *(cluster.versions.get(kind, 0) for kind in kinds or self.kinds)


# How the cluster tells who comes and goes: entries of its log, for those who catch up later.


class RowChange(NamedTuple):
    """One entry of `Cluster.log`: a task came to a row (+1) or left it (-1), as filters see it."""

    row: int
    task: Task
    sign: int


class RowLog(list[RowChange]):
    """Since the last session closed, who came and went. Of what was before, the last rows are remembered.

    A position counts all entries that there ever were.
    """

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[int] = []  #: of its entries, and before them the last ones of what was before
        self.position = 0

    def append(self, change: RowChange) -> None:
        super().append(change)
        self._rows.append(change.row)
        self.position += 1

    def clear(self) -> None:
        if len(self._rows) > MOST_ROWS:
            del self._rows[: -MOST_ROWS // 2]
        super().clear()

    def rows_since(self, position: int) -> set[int] | None:
        """The rows that changed after a position; None if that is too long ago."""
        first = len(self._rows) - (self.position - position)
        return None if first < 0 else set(self._rows[first:])
