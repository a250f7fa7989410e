"""extender: a service over HTTP is asked what a plugin of its own would decide.

Each question has a verb, a path below `extender.urlPrefix`; without a verb it is not asked. If the service fails, an ignorable one is
left out of account as far as that goes, any other is taken to have said no. With `extender.managedResources` it is asked only about
tasks, and jobs with tasks, that name one of these resources.
"""

from collections.abc import Hashable
from typing import Any

from msgspec import Struct, field

from pumice.api.times import Duration
from pumice.scheduler.engine import Filter, Scorer
from pumice.scheduler.framework.hook_answers import Vote
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Job, Queue, Task
from pumice.scheduler.plugins.volcano.extender import request_bodies, service
from pumice.scheduler.plugins.volcano.extender.client import MAX_BYTES, ExtenderClient, ServiceFailure

TIMEOUT_S = 1.0


class ExtenderArgs(Struct):
    url: str = field(name="extender.urlPrefix", default="")
    timeout: Duration = field(name="extender.httpTimeout", default=Duration(TIMEOUT_S))
    open_verb: str = field(name="extender.onSessionOpenVerb", default="")
    close_verb: str = field(name="extender.onSessionCloseVerb", default="")
    predicate_verb: str = field(name="extender.predicateVerb", default="")
    prioritize_verb: str = field(name="extender.prioritizeVerb", default="")
    preemptable_verb: str = field(name="extender.preemptableVerb", default="")
    reclaimable_verb: str = field(name="extender.reclaimableVerb", default="")
    overused_verb: str = field(name="extender.queueOverusedVerb", default="")
    enqueueable_verb: str = field(name="extender.jobEnqueueableVerb", default="")
    enqueued_verb: str = field(name="extender.jobEnqueuedVerb", default="")
    ready_verb: str = field(name="extender.jobReadyVerb", default="")
    allocate_verb: str = field(name="extender.allocateFuncVerb", default="")
    deallocate_verb: str = field(name="extender.deallocateFuncVerb", default="")
    ignorable: bool = field(name="extender.ignorable", default=False)
    managed: list[str] = field(name="extender.managedResources", default_factory=list)


class ExtenderPlugin(Plugin):
    name = "extender"
    Args = ExtenderArgs

    def open(self, session: Session) -> None:
        super().open(session)
        args = self.args
        self.service = ExtenderClient(session.world.extender(args.url, args.timeout or TIMEOUT_S, {"max_bytes": MAX_BYTES}))
        self._ratings: dict[Hashable, service.Ratings] = {}
        self._silent = False  #: whether the service is not called in this session
        if args.open_verb and session.world.acts:
            try:
                self.service.ask(args.open_verb, request_bodies.session_body(session))
            except ServiceFailure:
                self._silent = not args.ignorable

    def close(self, session: Session) -> None:
        self._tell(self.args.close_verb, {})

    # -- about which tasks the service is asked

    def _verb(self, verb: str, *tasks: Task) -> str:
        """The verb if the service is to be asked about these tasks; else empty."""
        return "" if self._silent or not all(map(self.interested, tasks)) else str(verb)

    def interested(self, task: Task) -> bool:
        """Whether the task requests a managed resource; True if no resources are managed."""
        managed = self.args.managed
        if not managed:
            return True
        spec = task.template.spec
        parts = [c.resources for c in (*(spec.containers or ()), *(spec.init_containers or ())) if c.resources]
        return any(name in (part.requests or {}) or name in (part.limits or {}) for part in parts for name in managed)

    def _interested_in(self, job: Job) -> bool:
        return not self.args.managed or any(map(self.interested, job.tasks.values()))

    def kin(self, task: Task) -> Hashable:
        """A key: tasks with equal keys and equal templates get the same answer. None if the service is not asked about the task."""
        return (task.labels, task.annotations, task.job and task.job.uid) if self.interested(task) else None

    def ratings(self, task: Task, verb: str) -> service.Ratings | None:
        """The ratings of nodes, shared by all rules that ask about equal tasks; None if the service is not asked."""
        if not self.interested(task):
            return None
        return self._ratings.setdefault((task.template, self.kin(task)), service.Ratings(self, verb, task))

    def _task(self, task: Task) -> request_bodies.Body:
        return request_bodies.task_body(task, self.session.cluster.dimensions)

    def _job(self, job: Job) -> request_bodies.Body:
        return request_bodies.job_body(job, self.session.cluster.dimensions)

    def _tell(self, verb: str, body: request_bodies.Body) -> None:
        """Notify the service, unless nothing is carried out. Its answer is ignored, and so is a failure."""
        if verb and not self._silent and self.session.world.acts:
            try:
                self.service.ask(verb, body)
            except ServiceFailure:
                return

    # -- which node

    def filters(self) -> list[Filter]:
        args = self.args
        asked: list[Filter] = []
        if self._verb(args.predicate_verb):
            asked.append(service.AskedFilter(self, args.predicate_verb))
        if self._verb(args.prioritize_verb) and not args.ignorable:
            asked.append(service.AskedFailure(self, args.prioritize_verb))
        return asked

    def scorers(self) -> list[Scorer]:
        verb = self._verb(self.args.prioritize_verb)
        return [service.AskedScorer(self, verb)] if verb else []

    # -- which tasks are evicted

    def preemptable(self, evictor: Any, candidates: list[Task]) -> list[Task] | Vote | None:
        return self._victims(self.args.preemptable_verb, evictor, candidates)

    def reclaimable(self, evictor: Any, candidates: list[Task]) -> list[Task] | Vote | None:
        return self._victims(self.args.reclaimable_verb, evictor, candidates)

    def _victims(self, verb: str, evictor: Task, candidates: list[Task]) -> list[Task] | Vote | None:
        if not self._verb(verb, evictor):
            return None
        body = {"evictor": self._task(evictor), "evictees": [self._task(task) for task in candidates]}
        try:
            vote, uids = self.service.victims(verb, body)
        except ServiceFailure:
            return [] if self.args.ignorable else Vote.REJECT
        if vote == Vote.ABSTAIN:
            return None
        return Vote.REJECT if vote < 0 else [task for task in candidates if task.uid in uids]

    # -- what jobs and queues may do

    def overused(self, queue: Queue) -> bool:
        if not (verb := self._verb(self.args.overused_verb)):
            return False
        try:
            return self.service.flag(verb, {"queue": request_bodies.queue_body(queue)}, "overused")
        except ServiceFailure:
            return not self.args.ignorable

    def job_enqueueable(self, job: Job) -> Vote:
        verb = self._verb(self.args.enqueueable_verb)
        if not verb or not self._interested_in(job):
            return Vote.ABSTAIN
        try:
            vote, reason = self.service.vote(verb, {"job": self._job(job)})
        except ServiceFailure as failure:
            vote, reason = 1 if self.args.ignorable else -1, f"it could not be asked: {failure}"
        if vote < 0:
            self.session.refuse_admission(job, f"extender {self.args.url} does not let it in" + (f": {reason}" if reason else ""))
        return Vote((vote > 0) - (vote < 0))

    def job_enqueued(self, job: Job) -> None:
        if self.args.enqueued_verb and self._interested_in(job):
            self._tell(self.args.enqueued_verb, {"job": self._job(job)})

    def job_ready(self, job: Job) -> bool:
        verb = self._verb(self.args.ready_verb)
        if not verb or not self._interested_in(job):
            return True
        try:
            return self.service.flag(verb, {"job": self._job(job)}, "status")
        except ServiceFailure:
            return bool(self.args.ignorable)

    # -- notifications

    def on_allocate(self, task: Task) -> None:
        if self.args.allocate_verb and self.interested(task):
            self._tell(self.args.allocate_verb, {"task": self._task(task)})

    def on_deallocate(self, task: Task) -> None:
        if self.args.deallocate_verb and self.interested(task):
            self._tell(self.args.deallocate_verb, {"task": self._task(task)})
