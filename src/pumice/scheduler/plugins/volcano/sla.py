"""sla: no job waits longer than it was promised.

A job's waiting time comes from its annotation, else from the argument. Jobs are served by deadline (creation plus waiting time),
those without one last. Once the time is up the job is let in and its reservations are kept, whatever plugins of later tiers say:
so sla belongs in a tier before overcommit, proportion or capacity, and before gang.
"""

import math
from typing import Annotated

from msgspec import Struct, field

from pumice.api.times import Duration
from pumice.scheduler.framework.hook_answers import Vote
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Job, OneOf


class SlaArgs(Struct):
    waiting_time: Annotated[Duration, OneOf("30m", "1h", "2h", "4h", "8h", "24h")] = field(name="sla-waiting-time", default=Duration(0))


class Sla(Plugin):
    name = "sla"
    tunable = True
    reads_only_state = True
    Args = SlaArgs

    def open(self, session: Session) -> None:
        super().open(session)
        self._default_s = self.args.waiting_time or None

    def job_order(self, job: Job) -> float:
        waiting_s = self._waiting_s(job)
        return math.inf if waiting_s is None else job.created + waiting_s

    def job_enqueueable(self, job: Job) -> Vote:
        waiting_s = self._waiting_s(job)
        if waiting_s is None or self.session.now - job.created < waiting_s:
            return Vote.ABSTAIN
        return Vote.PERMIT

    job_pipelined = job_enqueueable

    def class_key(self, job: Job) -> str:
        """The job's uid if it has a waiting time, so that it is like no other job; else empty."""
        return "" if self._waiting_s(job) is None else job.uid

    def next_turn(self, session: Session) -> float:
        """The next deadline of a waiting job; inf if there is none."""
        cluster = session.cluster
        jobs = {**cluster.waiting, **cluster.not_enqueued}.values()
        ends = (job.created + waiting_s for job in jobs if (waiting_s := self._waiting_s(job)) is not None)
        return min((end for end in ends if end > session.now), default=math.inf)

    def _waiting_s(self, job: Job) -> float | None:
        return self._default_s if job.waiting_time is None else job.waiting_time
