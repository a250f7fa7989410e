"""Where evictions could make room at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from pumice.scheduler.framework.session import Session
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.nodes import Table
from pumice.scheduler.model.resources import EPSILON, Mask
from pumice.scheduler.model.task import Task

Eligible = Callable[[Task], bool]


class EvictionCandidates:
    """Per node, what eligible victims hold: an upper bound of the room that evictions could make."""

    def __init__(self, session: Session, jobs: Iterable[Job], eligible: Eligible) -> None:
        """`jobs` are those that victims may be taken from."""
        self._session = session
        self._cluster = session.cluster
        self._nodes = session.nodes
        self._eligible = eligible
        self._sums: Table = np.zeros_like(session.nodes.used)
        self._counts = np.zeros(len(session.nodes), int)
        self._count(jobs, eligible, 1)
        self._position = len(self._cluster.log)

    def without(self, jobs: Iterable[Job], eligible: Eligible) -> EvictionCandidates:
        """The same but for all tasks of some jobs: `eligible` names the others. Costs what those jobs do."""
        self._catch_up()
        rest = EvictionCandidates(self._session, (), eligible)
        rest._sums, rest._counts = self._sums.copy(), self._counts.copy()
        rest._count(jobs, self._eligible, -1)
        return rest

    def _count(self, jobs: Iterable[Job], eligible: Eligible, sign: int) -> None:
        for job in jobs:
            for task in job.tasks.values():
                if task.node >= 0 and eligible(task):
                    self._counts[task.node] += sign
                    self._sums[task.template.columns, task.node] += task.template.amounts * sign

    def _catch_up(self) -> None:
        """Count anew where anything has moved."""
        log = self._cluster.log
        for row in {change.row for change in log[self._position :]}:
            self._recount(row)
        self._position = len(log)

    def _recount(self, row: int) -> None:
        victims = self.victims(row)
        self._counts[row] = len(victims)
        self._sums[:, row] = 0.0
        for task in victims:
            self._sums[task.template.columns, row] += task.template.amounts

    def victims(self, row: int) -> list[Task]:
        """Eligible tasks on a node."""
        return [task for task in self._nodes.tasks[row].values() if self._eligible(task)]

    def rows(self, task: Task) -> Mask:
        """Nodes where the task could fit if all eligible victims went."""
        self._catch_up()
        enough = self._nodes.alive.copy()
        template = task.template
        future = self._nodes.future_idle
        for column, amount in zip(template.columns, template.amounts, strict=True):
            enough &= future[column] + self._sums[column] > amount - EPSILON
        return enough

    @property
    def occupied(self) -> Mask:
        """Nodes with any eligible victim."""
        mask: Mask = self._counts > 0
        return mask
