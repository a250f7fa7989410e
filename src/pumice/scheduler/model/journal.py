"""The one undo log: moves of tasks, taken back in reverse order when its block is left, unless they are decided before."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from msgspec import Struct

from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.task import Task


class Operation(Struct, frozen=True):
    """What was done to a task, and what it was before."""

    task: Task
    before: int  #: status
    row: int  #: place before, -1 for none
    hidden: bool = False  #: from filters, before
    beneficiary: str = ""  #: of an eviction
    action: str = ""
    evicted: bool = False  #: a place was made by evictions (of a pipelining)


class Journal:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.operations: list[Operation] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.rollback()

    def do(self, operation: Operation, to: int, row: int, *, hide: bool = False) -> None:
        """Give its task another status and place. `hide`: filters no longer see it there."""
        self.operations.append(operation)
        self.cluster.move(operation.task, to, row, evicted=hide)

    def undo(self, operation: Operation) -> None:
        """Put a task back where it was."""
        self.cluster.move(operation.task, operation.before, operation.row, evicted=operation.hidden)

    def mark(self) -> int:
        return len(self.operations)

    def rollback(self, mark: int = 0) -> None:
        """Undo everything since the mark."""
        while len(self.operations) > mark:
            self.undo(self.operations.pop())
