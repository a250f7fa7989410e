"""preempt: within a queue, tasks of less important jobs give way to a job that lacks places to start.

Between jobs a job's whole gang must find room, else nothing is evicted; then each job that still lacks places may give its more
important tasks the room of its less important ones.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np
from msgspec import Struct, field

from pumice.actions.dry_run import DryRun
from pumice.engine.evaluation import NOTHING, Evaluation
from pumice.framework.approvals import Approvals, Approved
from pumice.framework.eviction import Prospects, agreed, could_fit, is_worth_it, likeness, make_room, takes, waits_in_peace
from pumice.framework.policy import Action
from pumice.framework.session import Session
from pumice.framework.statement import Statement
from pumice.model import status
from pumice.model.job import Job
from pumice.model.queue import Queue
from pumice.model.resources import Mask
from pumice.model.task import Task


class PreemptArgs(Struct):
    predicate_error_cache_enable: bool = field(name="predicateErrorCacheEnable", default=True)
    topology_aware: bool = field(name="enableTopologyAwarePreemption", default=False)
    workers: int = field(name="topologyAwarePreemptWorkerNum", default=16)
    candidates_percent: int = field(name="minCandidateNodesPercentage", default=10)
    candidates_least: int = field(name="minCandidateNodesAbsolute", default=1)
    candidates_most: int = field(name="maxCandidateNodesAbsolute", default=100)


class Preempt(Action):
    name = "preempt"
    Args = PreemptArgs

    def run(self, session: Session) -> None:
        starving = [job for job in session.jobs(session.cluster.waiting.values()) if self._may_preempt(session, job)]
        by_queue: dict[str, list[Job]] = {}
        for job in starving:
            assert job.queue is not None
            by_queue.setdefault(job.queue.name, []).append(job)
        for queue in session.in_queue_order(session.cluster.queues[name] for name in by_queue):
            jobs = sorted(by_queue[queue.name], key=session.job_key)
            self._between_jobs(session, queue, jobs)
            self._within_jobs(session, by_queue[queue.name])

    def _may_preempt(self, session: Session, job: Job) -> bool:
        if job.is_pending or session.job_valid(job) is not None or not session.job_starving(job):
            return False
        return not (job.asks_for_topology)

    def _between_jobs(self, session: Session, queue: Queue, jobs: list[Job]) -> None:
        prospects = Prospects(session, queue.jobs.values(), lambda task: _may_go(task) and task.job is not None and task.job.queue is queue)
        search = Search(session, self.args, prospects)
        for job in jobs:
            before = search.approvals.now()
            with session.statement() as statement:
                hopeless: set[Hashable] = set()  #: kinds of task that found nothing since the last success
                for task in sorted(_tasks(job), key=session.task_key):
                    if not session.job_starving(job):
                        break
                    kind = likeness(session, task)
                    if kind in hopeless:
                        continue
                    if search.preempt(task, statement, lambda victim, job=job: victim.job is not job):  # type: ignore[misc]
                        hopeless.clear()
                    else:
                        hopeless.add(kind)
                succeeds = session.job_pipelined(job) and is_worth_it(statement, self.name)
                if succeeds:
                    statement.commit()
            if not succeeds:
                search.approvals.undone_to(before)

    def _within_jobs(self, session: Session, jobs: list[Job]) -> None:
        for job in jobs:
            prospects = Prospects(session, [job], lambda task, job=job: _may_go(task) and task.job is job)  # type: ignore[misc]
            search = Search(session, self.args, prospects)
            for task in sorted(_tasks(job), key=session.task_key):
                with session.statement() as statement:
                    if search.has_room_promised(task) or not search.preempt(task, statement, lambda victim: True):
                        break
                    if not is_worth_it(statement, self.name):
                        break
                    statement.commit()


def _tasks(job: Job) -> list[Task]:
    return [task for task in job.pending.values() if not task.gated]


def _may_go(task: Task) -> bool:
    return bool(task.status & status.PREEMPTABLE) and task.preemptable


class Search:
    """Finds a node where a task fits once less important ones are gone, and makes it so in a statement."""

    def __init__(self, session: Session, args: PreemptArgs, prospects: Prospects) -> None:
        self.session = session
        self.args = args
        self.prospects = prospects
        self.approvals = Approvals(session)

    def preempt(self, task: Task, statement: Statement, wanted: Callable[[Task], bool]) -> bool:
        """Whether the task now waits on a node. `wanted` says which of the prospective victims count for it."""
        session = self.session
        if not self._eligible(task) or session.pre_predicate(task) is not None:
            return False
        evaluation = session.evaluation(task)
        if evaluation.rejected is not None:
            return False
        if waits_in_peace(statement, task, Preempt.name, evaluation):
            return True
        before, approved = self.approvals.now(), self.approvals.of(self._kind(task))
        feasible, hopeful = self._feasible(task, evaluation), self.prospects.rows(task) & approved.hopeful(task)
        if self.args.topology_aware:
            return DryRun(session, self.args).preempt(task, statement, feasible & hopeful, lambda row: self._victims(task, row, wanted))
        scores = np.where(hopeful, evaluation.totals(feasible), NOTHING)
        while len(scores) and scores[row := int(scores.argmax())] > NOTHING:
            scores[row] = NOTHING
            if self._make_room(task, row, statement, evaluation, wanted, approved):
                return True
        self.approvals.undone_to(before)
        return False

    def _kind(self, task: Task) -> Hashable:
        """Equal for tasks that have the same victims."""
        job = task.job
        assert job is not None
        return self.session.evictor_kind("preemptable", task), task.best_effort, job.uid if job.count(status.PREEMPTABLE) else ""

    def _feasible(self, task: Task, evaluation: Evaluation) -> Mask:
        """Nodes that evictions might open, as far as the filters go: what they score is compared among them all."""
        errors = self.session.fit_errors.get(task.uid)
        return evaluation.resolvable & ~errors.final if errors is not None else evaluation.resolvable

    def _victims(self, task: Task, row: int, wanted: Callable[[Task], bool]) -> list[Task]:
        """Tasks on a node that may go for this one, those that plugins agree on, the least important first."""
        candidates = [v for v in self.prospects.victims(row) if wanted(v) and (v.best_effort or not task.best_effort)]
        return agreed(self.session, task, candidates, self.session.preemptable)

    def _make_room(
        self, task: Task, row: int, statement: Statement, evaluation: Evaluation, wanted: Callable[[Task], bool], approved: Approved
    ) -> bool:
        victims = self._victims(task, row, wanted)
        approved.note(row, victims)
        if not could_fit(self.session, task, row, victims):
            return False
        evicted = make_room(statement, task, victims, "preempt", lambda: takes(self.session, task, row, evaluation))
        if evicted < 0:
            return False
        statement.pipeline(task, row, evicted=evicted > 0)
        return True

    def has_room_promised(self, task: Task) -> bool:
        """Whether the node that it is promised takes it now: what it waits for are other pods of its job."""
        row = self.session.nodes.rows.get(task.nominated, -1) if task.nominated else -1
        return row >= 0 and bool(self.session.evaluation(task).admitted[row])

    def _eligible(self, task: Task) -> bool:
        """Not if it never preempts, nor while what was evicted for it is still leaving the node it is promised."""
        if task.template.never_preempts:
            return False
        row = self.session.nodes.rows.get(task.nominated, -1) if task.nominated else -1
        if row < 0 or not self.session.evaluation(task).resolvable[row]:
            return True
        tasks = self.session.nodes.tasks[row].values()
        return not any(_leaves_for_another(t) and t.pod_priority < task.pod_priority for t in tasks)


def _leaves_for_another(task: Task) -> bool:
    """Whether it was evicted by an earlier session; what this one evicts may yet be undone, and was not for who asks now."""
    return task.status == status.RELEASING and task.disrupted and not task.evicted
