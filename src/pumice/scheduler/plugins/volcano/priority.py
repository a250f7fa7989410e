"""priority: the more important job and task first; the less important may be preempted."""

from collections.abc import Iterator
from functools import cached_property
from math import inf
from typing import Any

from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.model import Job, SubJob, Task


class Priority(Plugin):
    name = "priority"
    reads_only_state = True

    def job_order(self, job: Job) -> int:
        return -job.priority

    def sub_job_order(self, subjob: SubJob) -> int:
        return -subjob.priority

    def task_order(self, task: Task) -> int:
        return -task.priority

    def preemptable(self, preemptor: Task, candidates: list[Task]) -> list[Task]:
        """The tasks of less important jobs; within the preemptor's own job, the less important tasks."""
        job = preemptor.job
        assert job is not None
        return [
            task
            for task in candidates
            if task.job is not None and (task.priority < preemptor.priority if task.job is job else task.job.priority < job.priority)
        ]

    def exposes(self) -> Iterator[Job] | None:
        """All jobs, if any that runs is less important than one that waits; else only those that might evict their own tasks."""
        cluster, greatest = self.session.cluster, self._greatest
        if any(job.priority < greatest and job.ready_count for job in cluster.jobs.values()):
            return None
        return (job for job in cluster.waiting.values() if len(job.pending) < len(job.tasks))

    @cached_property
    def _greatest(self) -> float:
        """The greatest priority of a job for which others might be evicted in this session."""
        return max((job.priority for job in self.session.cluster.jobs.values() if job.pending or job.waiting_count), default=-inf)

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
