"""enqueue: let waiting jobs in while the cluster and their queues have room for what they will ask.

A job that is let in (phase Inqueue) gets its pods created and its room reserved. One that is not does not block the next. Who reserves
nothing is let in unasked, but not where a queue is closing: that would go on to place it. Of jobs that wait for the same one is asked
for; until another is let in the others are refused as it was. Jobs for which there is certainly no room stay at rest.

Whether there is room plugins say (`job_enqueueable`): overcommit for the cluster, proportion and capacity for a queue.
"""

from pumice.scheduler.framework.enqueueable_jobs import EnqueueableJobs
from pumice.scheduler.framework.hook_answers import UNSCHEDULABLE
from pumice.scheduler.framework.policy import Action
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import INQUEUE, Job
from pumice.scheduler.placement.jobs_by_queue import JobsByQueue


class Enqueue(Action):
    name = "enqueue"
    reads_only_state = True
    plain_for_newcomers = True

    def run(self, session: Session) -> None:
        outside, why = session.cluster.not_enqueued, session.not_admitted
        for job in outside.values():
            if job.waiting_since is None and job.queue is not None and job.queue.exists:
                session.before.set(job, waiting_since=session.now)
        groups = [alike for alike in session.looked_at(outside) if alike.first.is_pending]
        groups += EnqueueableJobs(session).groups()
        if session.is_alone(groups):
            self._receive(session, groups[0].first)
        else:
            self._receive_all(session, JobsByQueue(session, groups))
        for alike in session.alike:
            if alike.first.uid in why:
                why.update((member.uid, why[alike.first.uid]) for member in alike.members[1:])
        for job in session.jobs(job for job in outside.values() if job.uid in why):
            session.event(job, "Normal", UNSCHEDULABLE, why[job.uid])

    def _receive_all(self, session: Session, waiting: JobsByQueue) -> None:
        while queue := waiting.pop_queue():
            if (job := waiting.pop_job(queue)) is not None:
                self._receive(session, job)
                waiting.push_queue(queue)

    def _receive(self, session: Session, job: Job) -> None:
        """Give a job its turn."""
        queue = job.queue
        assert queue is not None
        is_closing = queue.serving and not queue.open
        if not (job.has_min_resources or is_closing) or session.job_enqueueable(job):
            session.job_enqueued(job)
            session.set_phase(job, INQUEUE)
        elif job.uid not in session.not_admitted:
            session.refuse_admission(job, "a plugin does not let it in, and does not say why")
