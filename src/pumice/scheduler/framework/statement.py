"""The statement: the transaction by which actions move tasks in a session.

Operations act at once on the kept state and are noted (journal.py). `commit` turns allocations and evictions into decisions; `keep`
leaves them in place for the rest of the session without deciding them (a reservation); all others are undone in reverse order.
Which gang is worth a commit the actions decide.

    with session.statement() as statement:
        mark = statement.mark()
        statement.allocate(task, row)
        statement.rollback(mark)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.scheduler.framework.decisions import Bind, Evict
from pumice.scheduler.framework.journal import Moves, Operation
from pumice.scheduler.model import Task, status

if TYPE_CHECKING:
    from pumice.scheduler.framework.session import Session


class Statement(Moves):
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

    def displace(self, task: Task) -> None:
        """Take a task off its node, back to Pending: one that was pipelined, or one that runs and whose move is tried."""
        self.do(Operation(task, task.status, task.node), status.PENDING, -1)

    def do(self, operation: Operation, to: int, row: int, *, hide: bool = False) -> None:
        self.session.begins(operation)
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
            self.session.last_try.pop(task.uid, None)
            if task.status == status.ALLOCATED:
                decisions.binds.append(Bind(task, task.node_name, self.session.annotations.pop(task.uid, {})))
                self.cluster.decide(task)
            elif operation.action:
                permitted_by = self.session.evictable.permitted_by(task)
                decisions.evictions.append(Evict(task, task.node_name, operation.beneficiary, operation.action, permitted_by))
            elif task.status == status.PIPELINED:
                self.session.undecided.append(operation)
        self.operations.clear()
