"""gangreclaim: a queue that has less than it deserves takes room back for a gang, from queues that have more, as whole gangs if need be."""

from collections.abc import Callable, Hashable
from typing import Any

from pumice.scheduler.eviction.gang_eviction import GangEviction
from pumice.scheduler.eviction.victims import victim_queues
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Job, Queue, Task, status


class GangReclaim(GangEviction):
    name = "gangreclaim"
    reads_only_state = True
    frees_queues = False

    def has_victims(self, session: Session) -> Callable[[Job], bool]:
        return lambda job: True

    def may_take(self, session: Session, queue: Queue, tasks: list[Task]) -> bool:
        return not session.overused(queue) and session.preemptive(queue, tasks)

    def evictor_class(self, job: Job) -> Hashable:
        return job.queue

    def may_go(self, job: Job, victim: Task, its_job: Job) -> bool:
        queue = its_job.queue
        return victim.status == status.RUNNING and queue is not None and queue is not job.queue and queue.reclaimable

    def rank_key(self, session: Session, its_job: Job) -> Hashable:
        assert its_job.queue is not None
        return its_job.queue.name

    def in_order(self, session: Session, task: Task, rank_keys: list[Any]) -> list[Any]:
        return [queue.name for queue in victim_queues(session, task, sorted(rank_keys))]
