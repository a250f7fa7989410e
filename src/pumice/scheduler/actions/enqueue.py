"""enqueue: let waiting jobs in while the cluster and their queues have room for what they will ask.

A job that is let in (phase Inqueue) gets its pods created and its room reserved. One that is not does not block the next. Who reserves
nothing is let in unasked, but not where a queue is closing: that would go on to place it.
"""

from __future__ import annotations

from pumice.scheduler.framework.alike import Alike
from pumice.scheduler.framework.policy import Action
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model.job import INQUEUE
from pumice.scheduler.placement.pending_tasks import JobsByQueue


class Enqueue(Action):
    name = "enqueue"
    reads_only_state = True

    def run(self, session: Session) -> None:
        jobs = session.jobs(session.cluster.not_enqueued.values())
        for fresh in jobs:
            fresh.waiting_since = session.now if fresh.waiting_since is None else fresh.waiting_since
        waiting = JobsByQueue(session, [Alike.alone(job) for job in jobs])
        while queue := waiting.pop_queue():
            job = waiting.pop_job(queue)
            if job is None:
                continue
            is_closing = queue.serving and not queue.open
            if not (job.has_min_resources or is_closing) or session.job_enqueueable(job):
                session.job_enqueued(job)
                session.set_phase(job, INQUEUE)
            elif job.uid not in session.not_admitted:
                session.refuse_admission(job, "a plugin does not let it in, and does not say why")
            waiting.push_queue(queue)
