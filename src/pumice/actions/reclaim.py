"""reclaim: a queue that has less than it deserves takes room back from queues that have more.

A job's gang gets all the room it lacks in one statement, or nothing is evicted. Nodes are tried in their order. Room is not only that
of a node: a queue whose parent is full takes from its sisters even if the node has some left.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from pumice.actions.allocate import AllocateArgs
from pumice.actions.waiting import JobsByQueue
from pumice.engine.evaluation import Evaluation
from pumice.framework.approvals import Approvals, Approved
from pumice.framework.eviction import Prospects, agreed, could_fit, is_worth_it, likeness, make_room, takes, waits_in_peace
from pumice.framework.policy import Action
from pumice.framework.session import Session
from pumice.framework.statement import Statement
from pumice.model import status
from pumice.model.job import Job
from pumice.model.queue import Queue
from pumice.model.task import Task


class Reclaim(Action):
    name = "reclaim"
    Args = AllocateArgs

    def run(self, session: Session) -> None:
        waiting = JobsByQueue(session, [job for job in session.jobs(session.cluster.waiting.values()) if self._may_reclaim(session, job)])
        everybody: Prospects | None = None
        while queue := waiting.pop_queue():
            if session.overused(queue):
                continue
            everybody = everybody or Prospects(session, session.cluster.jobs.values(), _may_go)
            others = everybody.without(queue.jobs.values(), lambda task, queue=queue: _may_go(task, queue))  # type: ignore[misc]
            search = Search(session, others)
            while job := waiting.pop_job(queue):
                before = search.approvals.now()
                if not self._serve(session, queue, job, search):
                    search.approvals.undone_to(before)

    def _may_reclaim(self, session: Session, job: Job) -> bool:
        return not job.is_pending and session.job_valid(job) is None and session.job_starving(job)

    def _serve(self, session: Session, queue: Queue, job: Job, search: Search) -> bool:
        """Whether the job got the room that it lacks; else nothing has changed."""
        with session.statement() as statement:
            hopeless: set[Hashable] = set()  #: kinds of task that found nothing since the last success
            for task in sorted((t for t in job.pending.values() if not t.gated), key=session.task_key):
                if not session.job_starving(job):
                    break
                kind = likeness(session, task)
                if task.template.never_preempts or kind in hopeless or not session.preemptive(queue, [task]):
                    continue
                if search.reclaim(task, statement):
                    hopeless.clear()
                else:
                    hopeless.add(kind)
            succeeds = session.job_pipelined(job) and is_worth_it(statement, self.name)
            if succeeds:
                statement.commit()
            return succeeds


class Search:
    """Finds a node where a task fits once pods of other queues are gone, and makes it so in a statement."""

    def __init__(self, session: Session, prospects: Prospects) -> None:
        self.session = session
        self.prospects = prospects
        self.approvals = Approvals(session)

    def reclaim(self, task: Task, statement: Statement) -> bool:
        """Whether the task now waits on a node."""
        session = self.session
        if session.pre_predicate(task) is not None:
            return False
        evaluation = session.evaluation(task)
        if evaluation.rejected is not None:
            return False
        if waits_in_peace(statement, task, Reclaim.name, evaluation):
            return True
        before, approved = self.approvals.now(), self.approvals.of(session.evictor_kind("reclaimable", task))
        candidates = evaluation.resolvable & self.prospects.rows(task) & self.prospects.occupied & approved.hopeful(task)
        errors = session.fit_errors.get(task.uid)
        if errors is not None:
            candidates &= ~errors.final
        if any(self._make_room(task, row, statement, evaluation, approved) for row in np.flatnonzero(candidates).tolist()):
            return True
        self.approvals.undone_to(before)
        return False

    def _make_room(self, task: Task, row: int, statement: Statement, evaluation: Evaluation, approved: Approved) -> bool:
        session = self.session
        victims = agreed(session, task, self.prospects.victims(row), session.reclaimable)
        approved.note(row, victims)
        if not could_fit(session, task, row, victims):
            return False
        evicted = make_room(statement, task, victims, Reclaim.name, lambda: takes(session, task, row, evaluation))
        if evicted < 0:
            return False
        statement.pipeline(task, row, evicted=evicted > 0)
        return True


def _may_go(task: Task, reclaiming: Queue | None = None) -> bool:
    """Whether a task may be taken from its queue for another."""
    if task.status != status.RUNNING or not task.preemptable or task.job is None:
        return False
    queue = task.job.queue
    return queue is not None and queue is not reclaiming and queue.reclaimable
