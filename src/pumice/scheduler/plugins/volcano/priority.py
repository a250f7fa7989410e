"""priority: the more important job and task first; the less important may be preempted."""

from collections.abc import Iterable
from functools import cached_property
from math import inf
from typing import Any

from pumice.scheduler.framework.moved_jobs import MovedJobs
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Job, SubJob, Task, status

TO_BE_PLACED = status.PENDING | status.PIPELINED | status.ALLOCATED


class Priority(Plugin):
    name = "priority"
    reads_only_state = True
    plain_for_newcomers = True
    plain_in_line = True

    def open(self, session: Session) -> None:
        super().open(session)
        self._least_ready: float = inf  #: the least priority of jobs that have had ready pods in this session
        self._moved = MovedJobs(session.cluster)

    def job_order(self, job: Job) -> int:
        return -job.priority

    order_of_newcomer = job_order

    def sub_job_order(self, subjob: SubJob) -> int:
        return -subjob.priority

    def task_order(self, task: Task) -> int:
        return -task.priority

    def preemptable(self, preemptor: Task, candidates: list[Task]) -> list[Task]:
        """The tasks of less important jobs; within the preemptor's own job, the less important tasks."""
        return [task for task in candidates if not self.spares(preemptor, task)]

    def spares(self, evictor: Task, task: Task) -> bool:
        own, job = evictor.job, task.job
        assert own is not None
        return job is None or (task.priority >= evictor.priority if job is own else job.priority >= own.priority)

    def spares_rows(self, evictor: Task) -> bool:
        """Whether no job with ready pods is less important, and the evictor's own has none."""
        own = evictor.job
        assert own is not None
        least = min((job.priority for job in self._moved.now() if job.ready_count), default=inf)
        self._least_ready = min(self._least_ready, least)
        return own.priority <= self._least_ready and not own.ready_count

    def exposes(self) -> Iterable[Job] | None:
        """All jobs, if any that runs is less important than one that waits; else only those that might evict their own tasks."""
        return None if any(job.ready_count for job in self._less_important) else self._partial

    @cached_property
    def _less_important(self) -> list[Job]:
        """The jobs that are less important than one for which others might be evicted in this session."""
        jobs = self.session.cluster.jobs.values()
        greatest = max((job.priority for job in jobs if job.pending or job.waiting_count), default=-inf)
        return [job for job in jobs if job.priority < greatest]

    @cached_property
    def _partial(self) -> list[Job]:
        """The jobs that have, whatever this session moves, both tasks to be placed and others."""
        jobs = (job for job in self.session.cluster.jobs.values() if job.counts)
        return [job for job in jobs if 0 < job.count(TO_BE_PLACED) < len(job.tasks)]

    def eviction_cache_key(self, evictor: Task) -> tuple[int, int]:
        assert evictor.job is not None
        return evictor.job.priority, evictor.priority

    def unified_evictable(self, context: Any, candidates: list[Task]) -> list[Task]:
        if context.kind == "gangreclaim":
            return candidates
        priority = context.job.priority
        return [task for task in candidates if task.job is not None and task.job.priority < priority]

    def job_starving(self, job: Job) -> bool:
        return job.ready_count + job.waiting_count < len(job.tasks)
