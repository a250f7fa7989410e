"""Victims whom nobody needs gone any more are put back: what was cleared for one task of a gang may since have become too much."""

from __future__ import annotations

from collections.abc import Set

from pumice.scheduler.eviction.make_room import fits_now
from pumice.scheduler.eviction.needed import needed
from pumice.scheduler.framework.statement import Statement
from pumice.scheduler.model.journal import Operation
from pumice.scheduler.model.resources import EPSILON

Step = tuple[Operation, int]  #: and the row that its task waits on, if it is no eviction


def put_back(statement: Statement) -> None:
    """All that wait in the statement keep their places."""
    steps = [(operation, operation.task.node) for operation in statement.operations]
    victims = [operation for operation, _ in steps if operation.action]
    room = statement.session.nodes.future_idle
    asked = {(column, row) for operation, row in steps if not operation.action for column, _ in operation.task.template.needs}

    def has_room(victim: Operation) -> bool:
        needs = victim.task.template.needs
        return all(amount < room[column, victim.row] + EPSILON for column, amount in needs if (column, victim.row) in asked)

    doubtful = [victim for victim in victims if has_room(victim)]
    others = set(victims).difference(doubtful)
    if doubtful:
        must_go = needed(doubtful, lambda left: _retraced(statement, steps, others.union(left)))
        _retraced(statement, steps, others.union(must_go))


def _retraced(statement: Statement, steps: list[Step], victims: Set[Operation]) -> bool:
    """Do it all again with only these victims, who go first; whether all who wait find their places good."""
    session, good = statement.session, True
    statement.rollback()
    for operation, _ in steps:
        if operation in victims:
            statement.evict(operation.task, operation.action, operation.beneficiary)
    for operation, row in steps:
        if not operation.action:
            task = operation.task
            good = good and fits_now(session, task, row, session.evaluation(task))
            statement.pipeline(task, row, evicted=operation.evicted)
    return good
