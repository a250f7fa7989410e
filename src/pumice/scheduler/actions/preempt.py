"""preempt: within a queue, tasks of less important jobs give way to a job that lacks places to start.

Between jobs a job's whole gang must find room, else nothing is evicted; then each job that still lacks places may give its more
important tasks the room of its less important ones.
"""

from collections.abc import Hashable, Iterable
from functools import partial

import numpy as np
from msgspec import field

from pumice.scheduler.engine import Evaluation
from pumice.scheduler.engine.evaluation import NOTHING
from pumice.scheduler.eviction.candidate_nodes import EvictionCandidates
from pumice.scheduler.eviction.make_room import is_worth_it
from pumice.scheduler.eviction.victim_cache import PermittedVictims
from pumice.scheduler.eviction.victim_search import Search, in_task_order
from pumice.scheduler.eviction.victims import Budget
from pumice.scheduler.framework.job_class_turns import Turns
from pumice.scheduler.framework.job_classes import age
from pumice.scheduler.framework.policy import Action
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.startable_jobs import StartableJobs
from pumice.scheduler.framework.statement import Statement
from pumice.scheduler.model import Job, Mask, Queue, Task, status
from pumice.scheduler.placement.jobs_by_queue import by_queue


class PreemptArgs(Budget):
    predicate_error_cache_enable: bool = field(name="predicateErrorCacheEnable", default=True)
    topology_aware: bool = field(name="enableTopologyAwarePreemption", default=False)
    workers: int = field(name="topologyAwarePreemptWorkerNum", default=16)


class Preempt(Action):
    name = "preempt"
    reads_only_state = True
    Args = PreemptArgs

    def run(self, session: Session) -> None:
        starving = by_queue(alike for alike in session.awake() if self._may_preempt(session, alike.first))
        exposed = session.evictable.exposed("preemptable")
        most = EvictionCandidates(session, exposed, _may_go).most
        among = partial(StartableJobs, session, partial(self._may_preempt, session), evictable=most, hook="preemptable", frees_queues=True)
        between, within = among(), among(one_by_one=True)
        names = dict.fromkeys([*starving, *between.queues(), *within.queues()])
        for queue in session.orders.in_queue_order(session.cluster.queues[name] for name in names):
            turns = Turns(session, [*starving.get(queue.name, ()), *between.of(queue)], session.orders.job_key)
            self._between_jobs(session, queue, turns, exposed)
            session.rest_again()
            again = Turns(session, [*(alike for alike in turns.groups if alike.wakes is None), *within.of(queue)], age)
            while job := again.pop():
                self._within(session, job, exposed)

    def _may_preempt(self, session: Session, job: Job) -> bool:
        if job.is_pending or session.job_valid(job) is not None or not session.job_starving(job):
            return False
        return not (job.asks_for_topology)

    def _between_jobs(self, session: Session, queue: Queue, turns: Turns, exposed: set[Job]) -> None:
        its = exposed.intersection(queue.jobs.values())
        of_queue = EvictionCandidates(session, its, lambda task: _may_go(task) and task.job is not None and task.job.queue is queue)
        search = PreemptSearch(session, of_queue, self.args)
        while job := turns.pop():
            search.serve(job)

    def _within(self, session: Session, job: Job, exposed: set[Job]) -> None:
        own = EvictionCandidates(session, exposed & {job}, lambda task: _may_go(task) and task.job is job)
        search = PreemptSearch(session, own, self.args, within=job)
        for task in in_task_order(session, job):
            with session.statement() as statement:
                if search.has_room_promised(task) or not search.find(task, statement) or not is_worth_it(statement, self.name):
                    break
                statement.commit()


def _may_go(task: Task) -> bool:
    return bool(task.status & status.PREEMPTABLE) and task.preemptable


class PreemptSearch(Search):
    """The search of preempt: tasks of other jobs are evicted, or with `within` tasks of that job. The best node is tried first."""

    action, hook = Preempt.name, "preemptable"

    def __init__(self, session: Session, candidates: EvictionCandidates, args: PreemptArgs, *, within: Job | None = None) -> None:
        super().__init__(session, candidates, args)
        self.args = args
        self.within = within

    def may_evict(self, task: Task) -> bool:
        """False if the task never preempts, or while less important pods that were evicted before still leave its nominated node."""
        if task.template.never_preempts:
            return False
        row = self.session.nodes.rows.get(task.nominated, -1) if task.nominated else -1
        if row < 0 or not self.session.evaluation(task).resolvable[row]:
            return True
        tasks = self.session.nodes.tasks[row].values()
        return not any(_leaves_for_another(t) and t.pod_priority < task.pod_priority for t in tasks)

    def has_room_promised(self, task: Task) -> bool:
        """Whether the filters admit the task to its nominated node now: then it waits only for other pods of its job."""
        row = self.session.nodes.rows.get(task.nominated, -1) if task.nominated else -1
        return row >= 0 and bool(self.session.evaluation(task).admitted[row])

    def evictor_class(self, task: Task) -> Hashable:
        job = task.job
        assert job is not None
        return (
            self.session.evictable.eviction_cache_key("preemptable", task),
            task.best_effort,
            job.uid if job.count(status.PREEMPTABLE) else "",
        )

    def eligible(self, task: Task, row: int) -> list[Task]:
        return [victim for victim in self.candidates.victims(row) if self._concerns(task, victim)]

    def _concerns(self, task: Task, victim: Task) -> bool:
        return (self.within is not None or victim.job is not task.job) and (victim.best_effort or not task.best_effort)

    def in_order(self, evaluation: Evaluation, feasible: Mask, hopeful: Mask) -> Iterable[int]:
        among = feasible & hopeful
        if self.args.topology_aware or not among.any():
            yield from np.flatnonzero(among).tolist()
            return
        scores = np.where(hopeful, evaluation.totals(feasible), NOTHING)  # scores are brought to scale among all feasible nodes
        while len(scores) and scores[row := int(scores.argmax())] > NOTHING:
            scores[row] = NOTHING
            yield row

    def try_nodes(self, task: Task, statement: Statement, evaluation: Evaluation, rows: Iterable[int], known: PermittedVictims) -> bool:
        """With topology-aware preemption: compare nodes, and take the one whose victims matter least."""
        if self.args.topology_aware:
            return self.try_cheapest(task, statement, evaluation, rows, known, without_victims=False)
        return super().try_nodes(task, statement, evaluation, rows, known)


def _leaves_for_another(task: Task) -> bool:
    """Whether an earlier session evicted the task. Evictions of this session may still be undone, and were for other tasks."""
    return task.status == status.RELEASING and task.disrupted and not task.evicted
