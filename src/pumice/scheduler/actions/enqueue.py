"""enqueue: let waiting jobs in while the cluster and their queues have room for what they will ask.

A job that is let in (phase Inqueue) gets its pods created and its room reserved. One that is not does not block the next. Who reserves
nothing is let in unasked, but not where a queue is closing: that would go on to place it. Of jobs that wait for the same one is asked
for; until another is let in the others are refused as it was.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from pumice.scheduler.framework.decisions import GroupEvent
from pumice.scheduler.framework.job_classes import JobClass, Member
from pumice.scheduler.framework.policy import Action
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import INQUEUE, Job
from pumice.scheduler.placement.pending_tasks import JobsByQueue


class Enqueue(Action):
    name = "enqueue"
    reads_only_state = True

    def run(self, session: Session) -> None:
        jobs = session.jobs(session.cluster.not_enqueued.values())
        for fresh in jobs:
            if fresh.waiting_since is None:
                session.before.set(fresh, waiting_since=session.now)
        doors = Doors(session)
        if len(jobs) <= 1 and session.policy.shortcuts:  # there is no order to find
            for job in jobs:
                self._receive(session, doors, job)
            return
        waiting = JobsByQueue(session, [JobClass.alone(job) for job in jobs])
        while queue := waiting.pop_queue():
            if (next_job := waiting.pop_job(queue)) is not None:
                self._receive(session, doors, next_job)
                waiting.push_queue(queue)
        doors.part()

    def _receive(self, session: Session, doors: Doors, job: Job) -> None:
        """Give a job its turn."""
        queue = job.queue
        assert queue is not None
        is_closing = queue.serving and not queue.open
        if not (job.has_min_resources or is_closing) or doors.let_in(job):
            session.job_enqueued(job)
            session.set_phase(job, INQUEUE)


class RefusedAdmission(NamedTuple):
    """How a job was refused admission."""

    changes: int  #: the session's number of changes at that time
    why: str
    events: list[GroupEvent]


class Doors:
    """The decisions which jobs are admitted. Plugins are asked about one of several alike jobs, as long as nothing changes."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._groups = [alike for alike in session.alike if alike.first.is_pending and len(alike.members) > 1]
        self._of = {member.uid: alike for alike in self._groups for member in alike.members}
        self._refused: dict[JobClass, RefusedAdmission] = {}

    def let_in(self, job: Job) -> bool:
        """Whether the job is admitted. If not, its PodGroup gets the reason."""
        session, alike = self._session, self._of.get(job.uid)
        refused = self._refused.get(alike) if alike is not None else None
        if refused is not None and refused.changes == session.changes:
            session.not_admitted[job.uid] = refused.why
            session.decisions.events += [replace(event, job=job) for event in refused.events]
            return False
        before = len(session.decisions.events)
        if session.job_enqueueable(job):
            return True
        if job.uid not in session.not_admitted:
            session.refuse_admission(job, "a plugin does not let it in, and does not say why")
        if alike is not None:
            self._refused[alike] = RefusedAdmission(session.changes, session.not_admitted[job.uid], session.decisions.events[before:])
        return False

    def part(self) -> None:
        """Split groups of alike jobs whose phases or reasons of refusal now differ: they are no longer alike."""
        session = self._session
        for alike in self._groups:
            fared: dict[tuple[str, str | None], list[Member]] = {}
            for member in alike.members:
                fared.setdefault((member.job.phase, session.not_admitted.get(member.uid)), []).append(member)
            alike.members, *others = fared.values()
            session.alike += map(JobClass, others)
