"""Evictions tried on one node after the other, without those that turn out not to be needed.

On each node the least important victims go until the task fits; then they are put back, the most important first, as far as the task
still fits.
"""

from pumice.scheduler.engine import Evaluation
from pumice.scheduler.eviction.make_room import fits_now, make_room
from pumice.scheduler.eviction.victims import needed
from pumice.scheduler.framework.statement import Statement
from pumice.scheduler.model import Task


class EvictionDryRun:
    """The dry run of evictions for one task. The statement is left as it was."""

    def __init__(self, statement: Statement, task: Task, action: str, evaluation: Evaluation) -> None:
        self._statement = statement
        self._task = task
        self._action = action
        self._evaluation = evaluation

    def victims(self, row: int, permitted: list[Task]) -> list[Task] | None:
        """The tasks that would have to go from a node, the most important first; None if evictions there do not help."""
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
