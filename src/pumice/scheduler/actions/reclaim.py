"""reclaim: a queue that has less than it deserves takes room back from queues that have more.

A job's gang gets all the room it lacks in one statement, or nothing is evicted. Nodes are tried in their order. Room is not only that
of a node: a queue whose parent is full takes from its sisters even if the node has some left.

Which queues have more than they deserve plugins say (`reclaimable`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import partial

import numpy as np
from msgspec import field

from pumice.scheduler.engine import Evaluation
from pumice.scheduler.eviction.candidate_nodes import EvictionCandidates
from pumice.scheduler.eviction.victim_search import Search
from pumice.scheduler.eviction.victims import Budget
from pumice.scheduler.framework.policy import Action
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.startable_jobs import StartableJobs
from pumice.scheduler.model import Job, Mask, Queue, Task, status
from pumice.scheduler.placement.jobs_by_queue import JobsByQueue


class ReclaimArgs(Budget):
    predicate_error_cache_enable: bool = field(name="predicateErrorCacheEnable", default=True)


class Reclaim(Action):
    name = "reclaim"
    Args = ReclaimArgs
    reads_only_state = True

    def run(self, session: Session) -> None:
        everybody = EvictionCandidates(session, session.evictable.exposed("reclaimable"), _may_go, "reclaimable")
        startable = StartableJobs(
            session, partial(self._may_reclaim, session), evictable=everybody.most, hook="reclaimable", takes_room=True
        )
        starving = [alike for alike in session.awake() if self._may_reclaim(session, alike.first)]
        waiting = JobsByQueue(session, starving, startable, each_once=True)
        while queue := waiting.pop_queue():
            if session.overused(queue):
                continue
            waiting.join(queue, startable.of(queue))
            search: ReclaimSearch | None = None
            while job := waiting.pop_job(queue):
                search = search or self._search(session, queue, everybody)
                search.serve(job)

    def _search(self, session: Session, queue: Queue, everybody: EvictionCandidates) -> ReclaimSearch:
        others = everybody.without(queue.jobs.values(), lambda task: _may_go(task, queue))
        return ReclaimSearch(session, others, self.args)

    def _may_reclaim(self, session: Session, job: Job) -> bool:
        return not job.is_pending and session.job_valid(job) is None and session.job_starving(job)


class ReclaimSearch(Search):
    """The search of reclaim: tasks of other queues are evicted."""

    action, hook = Reclaim.name, "reclaimable"

    def may_evict(self, task: Task) -> bool:
        assert task.job is not None and task.job.queue is not None
        return not task.template.never_preempts and self.session.preemptive(task.job.queue, [task])

    def evictor_class(self, task: Task) -> Hashable:
        return self.session.evictable.eviction_cache_key("reclaimable", task)

    def eligible(self, task: Task, row: int) -> list[Task]:
        return self.candidates.victims(row)

    def unspared(self, task: Task, row: int) -> list[Task]:
        assert self.candidates.unspared is not None and task.job is not None
        own = task.job.queue
        return [victim for victim in self.candidates.unspared.ask(task, row) if victim.job is not None and victim.job.queue is not own]

    def in_order(self, evaluation: Evaluation, feasible: Mask, hopeful: Mask) -> Iterable[int]:
        """Only nodes with tasks that may be evicted, even if the room is enough without that."""
        return (row for row in np.flatnonzero(feasible & hopeful).tolist() if self.candidates.victims(row))


def _may_go(task: Task, reclaiming: Queue | None = None) -> bool:
    """Whether a task may be evicted from its queue for another queue. `reclaiming`: that queue, if it is known."""
    if task.status != status.RUNNING or not task.preemptable or task.job is None:
        return False
    queue = task.job.queue
    return queue is not None and queue is not reclaiming and queue.reclaimable
