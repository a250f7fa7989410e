"""The statement: the transaction by which actions move tasks in a session; and its undo log, a `Journal`.

Operations act at once on the kept state and are noted in the journal. `commit` turns allocations and evictions into decisions; `keep`
leaves them in place for the rest of the session without deciding them (a reservation); all others are undone in reverse order.

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
    """An operation on a task, and the state of the task before it."""

    task: Task
    before: int  #: status before
    row: int  #: row of its node before, -1 for none
    hidden: bool = False  #: whether the task was hidden from filters before
    beneficiary: str = ""  #: of an eviction: the pod or PodGroup in whose favour it is
    action: str = ""
    evicted: bool = False  #: of a pipelining: whether evictions make the room


class Journal:
    """Moves of tasks in a `with` block. At its end they are undone in reverse order, except those that have been decided."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.operations: list[Operation] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.rollback()

    def do(self, operation: Operation, to: int, row: int, *, hide: bool = False) -> None:
        """Give the operation's task another status and place. `hide`: filters no longer see the task there."""
        self.operations.append(operation)
        self.cluster.move(operation.task, to, row, evicted=hide)

    def undo(self, operation: Operation) -> None:
        """Give the operation's task its status and place from before."""
        self.cluster.move(operation.task, operation.before, operation.row, evicted=operation.hidden)

    def mark(self) -> int:
        return len(self.operations)

    def rollback(self, mark: int = 0) -> None:
        """Undo all operations since the mark, the last one first."""
        while len(self.operations) > mark:
            self.undo(self.operations.pop())


class LastTry(Struct, frozen=True):
    """The place that a task had until its statement was undone. `evicted`: evictions, undone as well, had made the room."""

    status: int
    node: str
    evicted: bool = False


class Statement(Journal):
    def __init__(self, session: Session) -> None:
        super().__init__(session.cluster)
        self.session = session

    # -- operations

    def allocate(self, task: Task, row: int) -> None:
        """Place the task in idle room of a node."""
        self.do(Operation(task, task.status, task.node), status.ALLOCATED, row)

    def pipeline(self, task: Task, row: int, *, evicted: bool = False) -> None:
        """Let the task wait for room on a node that is being released. `evicted`: the room is made by evictions."""
        self.do(Operation(task, task.status, task.node, evicted=evicted), status.PIPELINED, row)

    def evict(self, task: Task, action: str, beneficiary: str = "") -> None:
        self.do(Operation(task, task.status, task.node, False, beneficiary, action), status.RELEASING, task.node, hide=True)

    def terminate(self, task: Task, action: str, beneficiary: str) -> None:
        """Evict the task as kube-scheduler does: until it is gone it keeps its room, and filters see it."""
        self.do(Operation(task, task.status, task.node, False, beneficiary, action), status.RELEASING, task.node)

    def unpipeline(self, task: Task) -> None:
        """Take a pipelined task of this session back to Pending."""
        self.do(Operation(task, task.status, task.node), status.PENDING, -1)

    def do(self, operation: Operation, to: int, row: int, *, hide: bool = False) -> None:
        self.session.origins.setdefault(operation.task, (operation.before, operation.row))
        super().do(operation, to, row, hide=hide)
        self.session.moved(operation.task, operation.before)

    def undo(self, operation: Operation) -> None:
        """Give the operation's task its status and place from before, and inform the plugins."""
        self.session.undo(operation)

    # -- ends

    @property
    def evicts(self) -> bool:
        return any(operation.action for operation in self.operations)

    def keep(self) -> None:
        """Leave the operations in place until the session closes, without deciding them."""
        self.session.changes += len(self.operations)
        self.session.undecided.extend(self.operations)
        self.operations.clear()

    def commit(self) -> None:
        """Decide the operations: Allocated tasks are bound, evicted tasks are deleted. Pipelined tasks wait until the session closes."""
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
