"""A transaction: the only way to change a session.

Operations act at once on the kept state and are journalled. `commit` makes allocations and evictions decisions; `keep` leaves
them standing for the rest of the session without deciding them (a reservation); anything else is undone in reverse order.

    with session.statement() as statement:
        mark = statement.mark()
        statement.allocate(task, row)
        statement.rollback(mark)
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from pumice.framework.decisions import Bind, Evict
from pumice.model import status
from pumice.model.task import Task

if TYPE_CHECKING:
    from pumice.framework.session import Session


class Operation(NamedTuple):
    """What was done to a task, and what it was before."""

    task: Task
    before: int  #: status
    row: int  #: place before, -1 for none
    beneficiary: str = ""  #: of an eviction
    action: str = ""
    evicted: bool = False  #: a place was made by evictions (of a pipelining)


class LastTry(NamedTuple):
    """A place that a task had until its statement was undone. `evicted`: made by evictions, undone as well."""

    status: int
    node: str
    evicted: bool = False


class Statement:
    """See the module."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.cluster = session.cluster
        self.operations: list[Operation] = []

    def __enter__(self) -> Statement:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.rollback()

    # -- operations

    def allocate(self, task: Task, row: int) -> None:
        """Take idle room."""
        self._do(Operation(task, task.status, task.node), status.ALLOCATED, row)

    def pipeline(self, task: Task, row: int, *, evicted: bool = False) -> None:
        """Wait for room that is being released."""
        self._do(Operation(task, task.status, task.node, evicted=evicted), status.PIPELINED, row)

    def evict(self, task: Task, action: str, beneficiary: str = "") -> None:
        self._do(Operation(task, task.status, task.node, beneficiary, action), status.RELEASING, task.node, hidden=True)

    def terminate(self, task: Task, action: str, beneficiary: str) -> None:
        """Evict as kube-scheduler does: it leaves, but takes its room, and filters see it, until it is gone."""
        self._do(Operation(task, task.status, task.node, beneficiary, action), status.RELEASING, task.node)

    def unpipeline(self, task: Task) -> None:
        """Take a pipelined task of this session back to Pending."""
        self._do(Operation(task, task.status, task.node), status.PENDING, -1)

    def _do(self, operation: Operation, to: int, row: int, *, hidden: bool = False) -> None:
        """`hidden`: filters no longer see the task."""
        self.operations.append(operation)
        self.session.origins.setdefault(operation.task, (operation.before, operation.row))
        self.cluster.move(operation.task, to, row, evicted=hidden)
        self.session.moved(operation.task, operation.before)

    # -- ends

    @property
    def evicts(self) -> bool:
        return any(operation.action for operation in self.operations)

    def mark(self) -> int:
        return len(self.operations)

    def rollback(self, mark: int = 0) -> None:
        """Undo everything since the mark."""
        while len(self.operations) > mark:
            self.session.undo(self.operations.pop())

    def keep(self) -> None:
        """Let it stand until the session closes, undecided."""
        self.session.undecided.extend(self.operations)
        self.operations.clear()

    def commit(self) -> None:
        """Decide: allocated tasks are bound, evicted ones go. What is pipelined stands until the session closes."""
        decisions = self.session.decisions
        for operation in self.operations:
            task = operation.task
            if task.status == status.ALLOCATED:
                decisions.binds.append(Bind(task, task.node_name, self.session.annotations.pop(task.uid, {})))
                self.cluster.decide(task)
            elif operation.action:
                decisions.evictions.append(Evict(task, task.node_name, operation.beneficiary, operation.action))
            elif task.status == status.PIPELINED:
                self.session.undecided.append(operation)
        self.operations.clear()
