"""gangreclaim: a queue that has less than it deserves takes room back for a gang, from queues that have more, as whole gangs if need be."""

from __future__ import annotations

from pumice.actions.gang_eviction import GangEviction
from pumice.eviction.bundles import Bundle
from pumice.eviction.victims import victim_queues
from pumice.framework.session import Session
from pumice.model import status
from pumice.model.job import Job
from pumice.model.queue import Queue
from pumice.model.task import Task


class GangReclaim(GangEviction):
    name = "gangreclaim"

    def may_take(self, session: Session, queue: Queue, tasks: list[Task]) -> bool:
        return not session.overused(queue) and session.preemptive(queue, tasks)

    def may_go(self, job: Job, victim: Task, its_job: Job) -> bool:
        queue = its_job.queue
        return victim.status == status.RUNNING and queue is not None and queue is not job.queue and queue.reclaimable

    def precedence(self, session: Session, task: Task, bundles: list[Bundle]) -> list[Bundle]:
        names = {bundle.job.queue.name for bundle in bundles if bundle.job.queue is not None}
        ranks = {queue: rank for rank, queue in enumerate(victim_queues(session, task, sorted(names)))}
        return sorted(bundles, key=lambda bundle: ranks[bundle.job.queue] if bundle.job.queue is not None else -1)
