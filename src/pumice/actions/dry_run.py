"""Topology-aware preemption: try every node in thought, spare whom it can, and take the node whose victims matter least.

On each node the least important victims go until the task fits; then they are put back, the most important first, as far as the
task still fits. Of the nodes tried the one whose victims matter least is taken, by kube-scheduler's rules without budgets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pumice.framework.eviction import could_fit, make_room, takes
from pumice.framework.session import Session
from pumice.framework.statement import Statement
from pumice.model.resources import Mask
from pumice.model.task import Task

if TYPE_CHECKING:
    from pumice.actions.preempt import PreemptArgs

SHIFT = 2**31  #: makes every priority count as positive, so that more victims never weigh less


class Candidate(NamedTuple):
    row: int
    victims: list[Task]  #: the most important first


class DryRun:
    """See the module."""

    def __init__(self, session: Session, args: PreemptArgs) -> None:
        self.session = session
        self.args = args

    def preempt(self, task: Task, statement: Statement, candidates: Mask, victims_on: Callable[[int], list[Task]]) -> bool:
        rows = np.flatnonzero(candidates).tolist()
        wanted = self._enough(len(self.session.nodes))
        found: list[Candidate] = []
        for row in rows:
            victims = self._try(task, row, statement, victims_on(row))
            if victims:
                found.append(Candidate(row, victims))
                if len(found) >= wanted:
                    break
        if not found:
            return False
        best = min(found, key=self._cost)
        for victim in best.victims:
            statement.evict(victim, "preempt", task.key)
        statement.pipeline(task, best.row, evicted=True)
        return True

    def _enough(self, nodes: int) -> int:
        """How many nodes that would do are compared."""
        args = self.args
        wanted = max(nodes * args.candidates_percent // 100, args.candidates_least)
        return min(wanted, args.candidates_most, nodes)

    def _try(self, task: Task, row: int, statement: Statement, victims: list[Task]) -> list[Task]:
        """Who would have to go on this node, the most important first; the statement is left as it was."""
        session = self.session
        if not could_fit(session, task, row, victims):
            return []
        mark = statement.mark()
        evaluation = session.evaluation(task)
        gone = make_room(statement, task, victims, "preempt", lambda: takes(session, task, row, evaluation))
        statement.rollback(mark)
        return self._spare(task, row, statement, victims[:gone]) if gone > 0 else []

    def _spare(self, task: Task, row: int, statement: Statement, victims: list[Task]) -> list[Task]:
        """Those of the victims that must go: the most important are tried first whether they can stay."""
        session, evaluation = self.session, self.session.evaluation(task)
        must_go: list[Task] = []
        undecided = list(reversed(victims))
        while undecided:
            first = undecided.pop(0)
            mark = statement.mark()
            for victim in (*must_go, *undecided):
                statement.evict(victim, "preempt", task.key)
            if not takes(session, task, row, evaluation):
                must_go.append(first)
            statement.rollback(mark)
        return must_go

    def _cost(self, candidate: Candidate) -> tuple[Any, ...]:
        priorities = [victim.pod_priority for victim in candidate.victims]
        highest = max(priorities)
        starts = [v.started if v.started is not None else self.session.now for v in candidate.victims if v.pod_priority == highest]
        return (priorities[0], sum(p + SHIFT for p in priorities), len(priorities), -min(starts))
