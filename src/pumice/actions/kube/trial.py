"""Changes in thought: pods taken off a node or put onto it for a moment, so that every rule can be asked what it would say then."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from pumice.model import status
from pumice.model.journal import Journal, Operation
from pumice.model.task import Task


class Trial(Journal):
    def __enter__(self) -> Self:
        self._outer = self.cluster.imagined
        self.cluster.imagined = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        super().__exit__(kind, error, trace)
        self.cluster.imagined = self._outer

    def remove(self, task: Task) -> None:
        self.do(_now(task), status.FAILED, -1)

    def place(self, task: Task, row: int) -> None:
        self.do(_now(task), status.ALLOCATED, row)

    def put_back(self, task: Task) -> None:
        """Undo one removal, whatever came after it."""
        removal = next(operation for operation in self.operations if operation.task is task)
        self.do(_now(task), removal.before, removal.row, hide=removal.hidden)


def _now(task: Task) -> Operation:
    return Operation(task, task.status, task.node, task.evicted)
