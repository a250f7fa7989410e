"""overcommit: let in jobs as long as what they promise to ask fits into the cluster times a factor."""

from functools import cached_property
from typing import Annotated

from msgspec import Struct, field

from pumice.scheduler.framework.hook_answers import Vote
from pumice.scheduler.framework.newcomer import Newcomer
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.queue_limits import asked_and_allowed, lacking
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Job, Queue, Range, Vector
from pumice.scheduler.model.resources import as_vector

DEFAULT_FACTOR = 1.2


class OvercommitArgs(Struct):
    factor: Annotated[float, Range(1, 4)] = field(name="overcommit-factor", default=DEFAULT_FACTOR)


class Overcommit(Plugin):
    name = "overcommit"
    tunable = True
    reads_only_state = True
    Args = OvercommitArgs

    def open(self, session: Session) -> None:
        super().open(session)
        self.factor = self.args.factor if self.args.factor >= 1 else DEFAULT_FACTOR
        self._used: Vector = session.total - session.nodes.room_in_sums(session.nodes.idle).sum(axis=1)
        self._limit: Vector = session.total * self.factor

    @cached_property
    def _promised(self) -> Vector:
        nothing = self.session.cluster.dimensions.nothing()
        return as_vector(sum((queue.promised for queue in self.session.queues if queue.jobs), nothing))

    def welcomes(self, newcomer: Newcomer) -> bool:
        return newcomer.takes_little

    def job_enqueueable(self, job: Job) -> Vote:
        if not job.has_min_resources:
            return Vote.PERMIT
        short = lacking(job, self._promised, self._limit - self._used)
        if not short:
            return Vote.PERMIT
        names = ", ".join(f"overused {self.session.cluster.dimensions.names[column]}" for column in short)
        numbers = asked_and_allowed(self.session, job, short, "", self._promised + self._used, self._limit)
        self.session.refuse_admission(job, f"resource in cluster is overused: {names}. {self.factor:g} times the cluster: {numbers}")
        return Vote.REJECT

    def admission_room(self, queue: Queue) -> Vector:
        return self._limit - self._used - self._promised

    def job_enqueued(self, job: Job) -> None:
        if job.has_min_resources:
            self._promised += job.without_gated(job.min_resources)
