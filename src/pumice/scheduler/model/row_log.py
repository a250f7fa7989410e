"""The log of a cluster: which tasks came to nodes and left them, for readers that catch up later."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from pumice.scheduler.model.task import Task

MOST_ROWS = 4096  #: rows that are remembered of changes before the last session closed


class RowChange(NamedTuple):
    """One entry of `Cluster.log`: a task came to a row (+1) or left it (-1), or filters do not see the task (0)."""

    row: int
    task: Task
    sign: int


row_change: Callable[[tuple[int, Task, int]], RowChange] = partial(tuple.__new__, RowChange)  #: makes one in a third of the usual time


class RowLog(list[RowChange]):
    """The changes since the last session closed. Of earlier changes only the rows are remembered, and only of the last ones.

    A position is the number of all entries that there have ever been.
    """

    def __init__(self) -> None:
        super().__init__()
        self._earlier: list[int] = []  #: the remembered rows of earlier changes
        self.position = 0
        self.tells_rows = True  #: if not, all rows count as changed: for cycles without shortcuts

    def append(self, change: RowChange) -> None:
        list.append(self, change)  # quicker than super(), as each move comes here
        self.position += 1

    def clear(self) -> None:
        self._earlier += [change[0] for change in self]
        if len(self._earlier) > MOST_ROWS:
            del self._earlier[: -MOST_ROWS // 2]
        super().clear()

    def since(self, position: int) -> list[RowChange] | None:
        """The changes after a position; None if the position is before the end of the last session."""
        number = self.position - position
        return self[len(self) - number :] if number <= len(self) else None

    def rows_since(self, position: int) -> set[int] | None:
        """The rows that changed after a position; None if the position is too long ago, or if rows are not told."""
        first = len(self) - (self.position - position)
        if not self.tells_rows or first < -len(self._earlier):
            return None
        rows = {change[0] for change in (self[first:] if first > 0 else self)}
        return rows.union(self._earlier[first:]) if first < 0 else rows
