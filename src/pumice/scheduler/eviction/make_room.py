"""Evicting one victim after the other until a task fits on a node, and when that is worth it."""

from collections.abc import Iterable

from pumice.scheduler.engine import Evaluation
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.statement import Statement
from pumice.scheduler.model import EPSILON, Task


def make_room(statement: Statement, task: Task, row: int, victims: list[Task], action: str, evaluation: Evaluation) -> int:
    """Evict victims in order until the task fits on the node. Return the number evicted; -1, with everything undone, if it never fits."""
    session, mark = statement.session, statement.mark()
    if not could_fit(session, task, row, victims):
        return -1
    for evicted, victim in enumerate(victims):
        if fits_now(session, task, row, evaluation):
            return evicted
        statement.evict(victim, action, task.key)
    if fits_now(session, task, row, evaluation):
        return len(victims)
    statement.rollback(mark)
    return -1


def could_fit(session: Session, task: Task, row: int, victims: Iterable[Task]) -> bool:
    """Whether the node would have room for the task once the victims have gone."""
    room: list[float] = session.nodes.row_future_idle(row).tolist()
    for victim in victims:
        for column, amount in victim.template.needs:
            room[column] += amount
    return all(amount < room[column] + EPSILON for column, amount in task.template.needs)


def fits_now(session: Session, task: Task, row: int, evaluation: Evaluation) -> bool:
    """Whether the task may be pipelined on the node as it is now: its queue allows it, there is room, and every filter admits it."""
    assert task.job is not None and task.job.queue is not None
    if not session.allows(task.job.queue, task) or not could_fit(session, task, row, ()):
        return False
    evaluation.refresh()
    return bool(evaluation.admitted[row])


def is_worth_it(statement: Statement, action: str) -> bool:
    """Whether to commit the statement. If it evicts nothing, an action that comes later may place its tasks at once."""
    return statement.evicts or not statement.session.policy.places_after(action)


def pipeline_if_it_fits(statement: Statement, task: Task, action: str, evaluation: Evaluation) -> bool:
    """If an action that places pods comes later: pipeline the task where it fits without evictions, so that no task is evicted for room
    that is free elsewhere. Return whether it was pipelined."""
    session = statement.session
    assert task.job is not None and task.job.queue is not None
    if not session.policy.places_after(action) or not session.allocatable(task.job.queue, task):
        return False
    row = session.best_node(task, evaluation, evaluation.admitted & evaluation.fits_future)
    if row >= 0:
        statement.pipeline(task, row)
    return row >= 0
