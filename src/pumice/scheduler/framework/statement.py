"""A transaction: the only way to change a session; and the one undo log under it, a `Journal`.

Operations act at once on the kept state and are journalled. `commit` makes allocations and evictions decisions; `keep` leaves
them standing for the rest of the session without deciding them (a reservation); anything else is undone in reverse order.

    with session.statement() as statement:
        mark = statement.mark()
        statement.allocate(task, row)
        statement.rollback(mark)
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from msgspec import Struct

from pumice.scheduler.framework.decisions import Bind, Evict
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.task import Task

if TYPE_CHECKING:
    from pumice.scheduler.framework.session import Session


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
    """Moves of tasks, taken back in reverse order when its block is left, unless they are decided before."""

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


class LastTry(Struct, frozen=True):
    """A place that a task had until its statement was undone. `evicted`: made by evictions, undone as well."""

    status: int
    node: str
    evicted: bool = False


class Statement(Journal):
    def __init__(self, session: Session) -> None:
        super().__init__(session.cluster)
        self.session = session

    # -- operations

    def allocate(self, task: Task, row: int) -> None:
        """Take idle room."""
        self.do(Operation(task, task.status, task.node), status.ALLOCATED, row)

    def pipeline(self, task: Task, row: int, *, evicted: bool = False) -> None:
        """Wait for room that is being released."""
        self.do(Operation(task, task.status, task.node, evicted=evicted), status.PIPELINED, row)

    def evict(self, task: Task, action: str, beneficiary: str = "") -> None:
        self.do(Operation(task, task.status, task.node, False, beneficiary, action), status.RELEASING, task.node, hide=True)

    def terminate(self, task: Task, action: str, beneficiary: str) -> None:
        """Evict as kube-scheduler does: it leaves, but takes its room, and filters see it, until it is gone."""
        self.do(Operation(task, task.status, task.node, False, beneficiary, action), status.RELEASING, task.node)

    def unpipeline(self, task: Task) -> None:
        """Take a pipelined task of this session back to Pending."""
        self.do(Operation(task, task.status, task.node), status.PENDING, -1)

    def do(self, operation: Operation, to: int, row: int, *, hide: bool = False) -> None:
        self.session.origins.setdefault(operation.task, (operation.before, operation.row))
        super().do(operation, to, row, hide=hide)
        self.session.moved(operation.task, operation.before)

    def undo(self, operation: Operation) -> None:
        """Put a task back where it was, and tell the plugins."""
        self.session.undo(operation)

    # -- ends

    @property
    def evicts(self) -> bool:
        return any(operation.action for operation in self.operations)

    def keep(self) -> None:
        """Let it stand until the session closes, undecided."""
        self.session.changes += len(self.operations)
        self.session.undecided.extend(self.operations)
        self.operations.clear()

    def commit(self) -> None:
        """Decide: allocated tasks are bound, evicted ones go. What is pipelined stands until the session closes."""
        decisions = self.session.decisions
        self.session.changes += len(self.operations)
        for operation in self.operations:
            task = operation.task
            if task.status == status.ALLOCATED:
                decisions.binds.append(Bind(task, task.node_name, self.session.annotations.pop(task.uid, {})))
                self.cluster.decide(task)
            elif operation.action:
                decisions.evictions.append(
                    Evict(task, task.node_name, operation.beneficiary, operation.action, self.session.permitting(operation.action))
                )
            elif task.status == status.PIPELINED:
                self.session.undecided.append(operation)
        self.operations.clear()
