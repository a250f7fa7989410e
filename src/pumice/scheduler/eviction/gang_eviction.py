"""What gangpreempt and gangreclaim share: evict other gangs from a network domain (a HyperNode) so that a waiting gang finds room there.

Domains are tried group by group. Of a group, the domain whose victims cost least is cleared (`gang_attempt.py`). The domain that was
cleared for a gang is remembered until the gang is placed there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, ClassVar

from msgspec import Struct, field

from pumice.scheduler.eviction.gang_attempt import GangAttempt, GangPlan, Wanted
from pumice.scheduler.eviction.gang_choice import is_cheaper
from pumice.scheduler.eviction.gang_roster import Roster
from pumice.scheduler.framework.job_class_turns import Turns
from pumice.scheduler.framework.network_topology import Purpose
from pumice.scheduler.framework.policy import Action
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.startable_jobs import StartableJobs
from pumice.scheduler.model import HyperNode, Job, Queue, Task, status
from pumice.scheduler.placement.jobs_by_queue import by_queue
from pumice.scheduler.placement.pending_tasks import PendingParts

DEFAULT_DOMAINS = 8


class GangEvictionArgs(Struct):
    domains: int = field(name="maxDomains", default=DEFAULT_DOMAINS)
    whole: bool = field(name="allowWholeBundle", default=True)
    spare: bool = field(name="spareVictims", default=True)  #: an argument of Pumice alone; without it the victims are those of Volcano


class GangEviction(Action):
    Args = GangEvictionArgs

    def run(self, session: Session) -> None:
        starving = by_queue(alike for alike in session.awake() if self._is_starving(session, alike.first))
        startable = self._startable(session)
        session.topology.trials_count = False
        rosters = Rosters(session)
        for queue in session.orders.in_queue_order(
            session.cluster.queues[name] for name in dict.fromkeys([*starving, *startable.queues()])
        ):
            turns = Turns(session, [*starving.get(queue.name, ()), *startable.of(queue)], session.orders.job_key)
            while job := turns.pop():
                self._serve(session, queue, job, rosters)
        session.topology.trials_count = True

    def _startable(self, session: Session) -> StartableJobs:
        """The jobs at rest that evictions might help, or that a later action can place: these have a turn before."""
        nodes, has_victims = session.nodes, self.has_victims(session)
        places_later = session.policy.places_after(self.name)
        evicts = any(map(has_victims, session.cluster.waiting.values()))
        return StartableJobs(
            session,
            lambda job: (places_later or has_victims(job)) and self._is_starving(session, job),
            evictable=nodes.allocatable - nodes.future_idle if evicts else None,
            frees_queues=self.frees_queues,
            takes_for_all=not self.frees_queues,
        )

    @staticmethod
    def _is_starving(session: Session, job: Job) -> bool:
        if job.is_pending or (job.asks_for_topology and not session.topology.tree.ready):
            return False
        return session.job_valid(job) is None and session.job_starving(job)

    # -- what differs between gangpreempt and gangreclaim

    frees_queues: ClassVar[bool]  #: whether its victims are of the queue for which they are evicted

    def has_victims(self, session: Session) -> Callable[[Job], bool]:
        """The function that says whether any job might lose tasks for a job."""
        raise NotImplementedError

    def may_take(self, session: Session, queue: Queue, tasks: list[Task]) -> bool:
        """Whether the queue may take room from others for these tasks."""
        return True

    def evictor_class(self, job: Job) -> Hashable:
        """A key that is equal for jobs for which the same tasks may be evicted."""
        raise NotImplementedError

    def may_go(self, job: Job, victim: Task, its_job: Job) -> bool:
        """Whether a task that runs in the domain may be evicted for the job."""
        raise NotImplementedError

    def rank_key(self, session: Session, its_job: Job) -> Hashable:
        """The key of a victim's job that decides when the job loses its tasks: `in_order` sorts such keys."""
        raise NotImplementedError

    def in_order(self, session: Session, task: Task, rank_keys: list[Any]) -> list[Any]:
        """The keys that `rank_key` returned, sorted: first the key of the jobs that lose their tasks first."""
        raise NotImplementedError

    # -- one gang

    def _serve(self, session: Session, queue: Queue, job: Job, rosters: Rosters) -> None:
        wanted = self._wanted(session, job)
        tasks = [task for _, part in wanted for task in part]
        if not tasks or not self.may_take(session, queue, tasks):
            return
        groups = self._domains(session, job)
        attempts = [[GangAttempt(session, self, job, queue, wanted, domain) for domain in group] for group in groups]
        if session.policy.places_after(self.name):
            with session.statement() as statement:
                if any(attempt.finds_room(statement, whole=False) for group in attempts for attempt in group):
                    return  # it needs no eviction: the later action can place it
        for group in attempts:
            with session.statement() as statement:
                plan = self._cheapest(session, (attempt.plan(statement, rosters.of(self, attempt)) for attempt in group))
                if plan is not None:
                    plan.carry_out(statement, self.name, job)
                    statement.commit()
                    return

    def _cheapest(self, session: Session, plans: Iterator[GangPlan | None]) -> GangPlan | None:
        """The first plan, or with `spareVictims` the plan whose victims cost least; None if there is none."""
        best: GangPlan | None = None
        for plan in plans:
            if plan is not None and (best is None or is_cheaper(plan.victims, best.victims, session.now)):
                best = plan
            if best is not None and not (self.args.spare and best.victims.tasks):
                break
        return best

    @staticmethod
    def _wanted(session: Session, job: Job) -> Wanted:
        """The tasks that need nodes, by part: those of all parts, or only those of the first part if the gang itself is already ready."""
        parts = PendingParts(session, job)
        wanted: Wanted = []
        while parts:
            part, pending = parts.pop()
            tasks = [task for task in reversed(pending.tasks) if not (task.template.never_preempts or task.gated)]
            if tasks:
                wanted.append((part, tasks))
        return wanted[:1] if session.job_ready(job) else wanted

    def _domains(self, session: Session, job: Job) -> list[list[HyperNode]]:
        """Groups of HyperNodes to try, the best group first; together no more HyperNodes than `maxDomains`."""
        root = session.topology.tree.root
        groups = session.gradients(job, root, Purpose.EVICT)
        if not any(groups) and session.topology.limit(job) is None:
            groups = [[root]]
        left = iter(range(self.args.domains if self.args.domains > 0 else DEFAULT_DOMAINS))
        return [[domain for domain, _ in zip(group, left, strict=False)] for group in groups]


class Rosters:
    """The tasks that may be evicted, as one roster per domain. Rosters are kept while the next gangs may evict the same tasks."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._evictors: Hashable = None
        self._known: dict[str, Roster] = {}

    def of(self, action: GangEviction, attempt: GangAttempt) -> Roster:
        session, job = self._session, attempt.job
        evictors = action.evictor_class(job)
        if evictors != self._evictors:
            self._evictors, self._known = evictors, {}

        def may_go(task: Task) -> bool:
            its_job = task.job
            if its_job is None or its_job.never_preempted or not task.preemptable or not task.status & status.PREEMPTABLE:
                return False
            return action.may_go(job, task, its_job)

        name = attempt.domain.name
        if name not in self._known:
            self._known[name] = Roster(session.cluster, attempt.domain.rows, may_go, lambda its_job: action.rank_key(session, its_job))
        return self._known[name]
