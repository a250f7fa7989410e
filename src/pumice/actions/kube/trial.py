"""Changes in thought: pods taken off a node or put onto it for a moment, so that every rule can be asked what it would say then."""

from __future__ import annotations

from types import TracebackType

from pumice.model import status
from pumice.model.cluster import Cluster
from pumice.model.task import Task


class Trial:
    """All that was changed is undone, in reverse order, when the block is left."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._before: list[tuple[Task, int, int, bool]] = []

    def __enter__(self) -> Trial:
        self._outer = self._cluster.imagined
        self._cluster.imagined = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.undo()
        self._cluster.imagined = self._outer

    def remove(self, task: Task) -> None:
        self._move(task, status.FAILED, -1)

    def place(self, task: Task, row: int) -> None:
        self._move(task, status.ALLOCATED, row)

    def put_back(self, task: Task) -> None:
        """Undo one removal, whatever came after it."""
        before, row, evicted = next((s, r, e) for other, s, r, e in self._before if other is task)
        self._move(task, before, row, evicted=evicted)

    def _move(self, task: Task, to: int, row: int, *, evicted: bool = False) -> None:
        self._before.append((task, task.status, task.node, task.evicted))
        self._cluster.move(task, to, row, evicted=evicted)

    def mark(self) -> int:
        return len(self._before)

    def undo(self, mark: int = 0) -> None:
        while len(self._before) > mark:
            task, before, row, evicted = self._before.pop()
            self._cluster.move(task, before, row, evicted=evicted)
