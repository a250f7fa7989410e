"""Where evictions could make room at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from pumice.scheduler.eviction.victim_cache import held_by
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import EPSILON, Job, Mask, Table, Task
from pumice.scheduler.model.nodes import cells

Eligible = Callable[[Task], bool]


class UnsparedRoom:
    """What those tasks hold that might go now, row by row, as far as this was asked; else infinite. It depends on the jobs and queues of
    the tasks alone, so that each row is asked about once for all who reclaim."""

    def __init__(self, session: Session, eligible: Eligible) -> None:
        self._session = session
        self._eligible = eligible
        self._sums: Table = np.full_like(session.nodes.used, np.inf)
        self._position = len(session.cluster.log)

    def now(self) -> Table:
        """[r, node]. Forgotten are the rows where a task has moved, and those with tasks of a queue that has gained one: the less a queue
        and its jobs hold, the fewer of their tasks may go."""
        log, sums = self._session.cluster.log, self._sums
        if len(log) == self._position:
            return sums
        moved, self._position = log[self._position :], len(log)
        sums[:, [change.row for change in moved]] = np.inf
        jobs = {change.task.job for change in moved if change.sign > 0 and change.task.job is not None}
        for queue in {job.queue for job in jobs if job.queue is not None}:
            if len(queue.jobs) > len(self._session.nodes):
                sums[:] = np.inf
            else:
                placed = (job for job in queue.jobs.values() if len(job.pending) < len(job.tasks))
                sums[:, [task.node for job in placed for task in job.tasks.values() if task.node >= 0]] = np.inf
        return sums

    def ask(self, evictor: Task, row: int) -> list[Task]:
        """The tasks on a row that might go now."""
        eligible = [task for task in self._session.nodes.tasks[row].values() if self._eligible(task)]
        victims = self._session.evictable.unspared("reclaimable", evictor, eligible)
        self.now()[:, row] = held_by(victims, len(self._sums))
        return victims


class EvictionCandidates:
    """Per node, what eligible victims hold: an upper bound of the room that evictions could make.

    Jobs that plugins spare in any case are left out (`exposed`).
    """

    def __init__(self, session: Session, exposed: set[Job], eligible: Eligible, hook: str = "preemptable") -> None:
        """`exposed`: the jobs that may lose tasks, by this hook."""
        self._hook = hook
        self._exposes_any = bool(exposed)
        self._session = session
        self._cluster = session.cluster
        self._nodes = session.nodes
        self._exposed = exposed
        self._eligible = eligible
        self.unspared = UnsparedRoom(session, eligible) if hook == "reclaimable" else None
        self._sums: Table = np.zeros_like(session.nodes.used)
        self._count(exposed, eligible, 1)
        self._position = len(self._cluster.log)

    def without(self, jobs: Iterable[Job], eligible: Eligible) -> EvictionCandidates:
        """The same candidates without the tasks of some jobs, which `eligible` must refuse. Takes time only for those tasks."""
        self._catch_up()
        rest = EvictionCandidates(self._session, set(), eligible, self._hook)
        rest._sums, rest._exposed, rest._exposes_any, rest.unspared = self._sums.copy(), self._exposed, self._exposes_any, self.unspared
        rest._count(self._exposed.intersection(jobs), self._eligible, -1)
        return rest

    def _count(self, jobs: Iterable[Job], eligible: Eligible, sign: int) -> None:
        sums = cells(self._sums)
        for job in jobs:
            for task in job.tasks.values() if len(job.pending) < len(job.tasks) else ():
                if task.node >= 0 and eligible(task):
                    for column, amount in task.template.needs:
                        sums[column][task.node] += amount * sign

    @property
    def most(self) -> Table | None:
        """What all of them hold, [r, node]; None if there are none."""
        return self._sums if self._sums.any() else None

    def _catch_up(self) -> None:
        """Count anew the rows where a task has moved."""
        log = self._cluster.log
        if len(log) == self._position:
            return
        for row in {change.row for change in log[self._position :]}:
            self._recount(row)
        self._position = len(log)
        self._exposes_any = self._session.evictable.exposes_any(self._hook)

    def _recount(self, row: int) -> None:
        self._sums[:, row] = held_by((task for task in self.victims(row) if task.job in self._exposed), len(self._sums))

    def victims(self, row: int) -> list[Task]:
        return [task for task in self._nodes.tasks[row].values() if self._eligible(task)]

    def rows(self, task: Task) -> Mask:
        """The nodes where the task could fit if all eligible victims were evicted that plugins do not spare."""
        self._catch_up()
        enough, sums = self._nodes.alive.copy(), self._sums
        if self._exposes_any and self.unspared is not None:
            sums = np.minimum(sums, self.unspared.now())
        counts = np.logical_not(self._session.evictable.spared_rows(self._hook, task))
        for column, amount in task.template.needs:
            room = self._nodes.future_idle_in(column)
            enough &= (room + sums[column] * counts if self._exposes_any else room) > amount - EPSILON
        return enough
