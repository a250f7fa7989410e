"""Evicting one victim after the other until a task fits on a node, and when that is worth it."""

from __future__ import annotations

from collections.abc import Iterable

from pumice.scheduler.engine.evaluation import Evaluation
from pumice.scheduler.eviction.needed import needed
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.statement import Statement
from pumice.scheduler.model.resources import EPSILON
from pumice.scheduler.model.task import Task


def make_room(statement: Statement, task: Task, row: int, victims: list[Task], action: str, evaluation: Evaluation) -> int:
    """Evict in the given order until the task fits on the node; the number evicted, or -1 with everything undone if it never does."""
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
    """Whether the node would have the room with the victims gone."""
    room = session.nodes.row_future_idle(row)
    for victim in victims:
        room[victim.template.columns] += victim.template.amounts
    return bool((task.template.amounts < room[task.template.columns] + EPSILON).all())


def fits_now(session: Session, task: Task, row: int, evaluation: Evaluation) -> bool:
    """Whether the task may wait on the node as it now is: its queue allows it, there is room, and every filter lets it in."""
    assert task.job is not None and task.job.queue is not None
    if not session.allocatable(task.job.queue, task) or not could_fit(session, task, row, ()):
        return False
    evaluation.refresh()
    return bool(evaluation.admitted[row])


# -- before allocate


def is_worth_it(statement: Statement, action: str) -> bool:
    """Whether what waits in the statement should. If it needed no eviction and allocate is still to come, that can place it at once."""
    return statement.evicts or not statement.session.policy.comes_later("allocate", than=action)


def pipeline_if_it_fits(statement: Statement, task: Task, action: str, evaluation: Evaluation) -> bool:
    """If allocate is still to come: let the task wait where it fits as things are, so that nobody goes for what is free elsewhere."""
    session = statement.session
    assert task.job is not None and task.job.queue is not None
    if not session.policy.comes_later("allocate", than=action) or not session.allocatable(task.job.queue, task):
        return False
    row = session.best_node(task, evaluation, evaluation.admitted & evaluation.fits_future)
    if row >= 0:
        statement.pipeline(task, row)
    return row >= 0


# Evictions tried on one node after the other, without those that turn out not to be needed.
#
# On each node the least important victims go until the task fits; then they are put back, the most important first, as far as the task
# still fits.


class DryRun:
    """For one task. The statement is left as it was."""

    def __init__(self, statement: Statement, task: Task, action: str, evaluation: Evaluation) -> None:
        self._statement = statement
        self._task = task
        self._action = action
        self._evaluation = evaluation

    def victims(self, row: int, permitted: list[Task]) -> list[Task] | None:
        """Who would have to go on a node, the most important first; None where that does not help."""
        mark = self._statement.mark()
        gone = make_room(self._statement, self._task, row, permitted, self._action, self._evaluation)
        self._statement.rollback(mark)
        if gone < 0:
            return None
        return needed(permitted[:gone], lambda left: self._fits_without(row, left))[::-1]

    def _fits_without(self, row: int, victims: list[Task]) -> bool:
        mark = self._statement.mark()
        for victim in victims:
            self._statement.evict(victim, self._action, self._task.key)
        fits = fits_now(self._statement.session, self._task, row, self._evaluation)
        self._statement.rollback(mark)
        return fits
