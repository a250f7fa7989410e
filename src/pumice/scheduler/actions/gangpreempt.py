"""gangpreempt: within a queue, less important gangs give way to a gang that lacks places to start, as whole gangs if need be."""

from collections.abc import Callable, Hashable
from math import inf
from typing import Any

from pumice.scheduler.eviction.gang_eviction import GangEviction
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Job, Queue, Task


class GangPreempt(GangEviction):
    name = "gangpreempt"
    reads_only_state = True
    frees_queues = True

    def has_victims(self, session: Session) -> Callable[[Job], bool]:
        least: dict[Queue | None, int] = {}  #: by queue: the lowest priority of a job with pods on nodes
        for job in session.cluster.jobs.values():
            if job.ready_count and job.priority < least.get(job.queue, inf):
                least[job.queue] = job.priority
        return lambda job: least.get(job.queue, inf) < job.priority

    def evictor_class(self, job: Job) -> Hashable:
        return job.queue, job.priority

    def may_go(self, job: Job, victim: Task, its_job: Job) -> bool:
        return its_job.queue is job.queue and its_job.priority < job.priority

    def rank_key(self, session: Session, its_job: Job) -> Hashable:
        """With `spareVictims`, jobs that plugins rank alike are told apart by what their tasks give and cost; else by age, as upstream."""
        return session.orders.job_plugin_key(its_job) if self.args.spare else session.orders.job_key(its_job)

    def in_order(self, session: Session, task: Task, rank_keys: list[Any]) -> list[Any]:
        return sorted(rank_keys, reverse=True)
