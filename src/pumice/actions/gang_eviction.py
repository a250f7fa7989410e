"""What gangpreempt and gangreclaim share: clear a domain of the network of other gangs so that a waiting gang finds room in it.

Domains are tried one after the other. In each, the pods that may go are put into bundles, the plugins say which of them go, and
bundles are evicted until the gang could wait on the domain's nodes for the room: part by part, each with all its pending pods, until
the gang has what it needs; else everything is undone. What was cleared for a gang is remembered until it is placed there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from msgspec import Struct, field

from pumice.actions.outlook import Outlook, missing
from pumice.actions.worksheet import Parts
from pumice.engine.evaluation import Evaluation
from pumice.eviction.bundles import Bundle, approved, in_order, split
from pumice.framework.policy import Action
from pumice.framework.session import Session
from pumice.framework.statement import Statement
from pumice.framework.topology import Purpose
from pumice.model import status
from pumice.model.hypernodes import HyperNode
from pumice.model.job import Job
from pumice.model.queue import Queue
from pumice.model.resources import Vector, fits
from pumice.model.subjob import SubJob
from pumice.model.task import Task

DEFAULT_DOMAINS = 8

Wanted = list[tuple[SubJob, list[Task]]]


class GangEvictionArgs(Struct):
    domains: int = field(name="maxDomains", default=DEFAULT_DOMAINS)
    whole: bool = field(name="allowWholeBundle", default=True)


class Context(NamedTuple):
    """What plugins are told of an eviction (hook `unified_evictable`)."""

    kind: str  #: gangpreempt or gangreclaim
    job: Job
    task: Task
    hyper_node: HyperNode


class GangEviction(Action):
    Args = GangEvictionArgs

    def run(self, session: Session) -> None:
        by_queue: dict[str, list[Job]] = {}
        for job in session.jobs(session.cluster.waiting.values()):
            if not job.is_pending and self._usable(session, job) and session.job_valid(job) is None and session.job_starving(job):
                assert job.queue is not None
                by_queue.setdefault(job.queue.name, []).append(job)
        session.topology.trials_count = False
        for queue in session.in_queue_order(session.cluster.queues[name] for name in by_queue):
            for job in sorted(by_queue[queue.name], key=session.job_key):
                self._serve(session, queue, job)
        session.topology.trials_count = True

    @staticmethod
    def _usable(session: Session, job: Job) -> bool:
        return session.topology.tree.ready or not job.asks_for_topology

    # -- what the two differ in

    def may_take(self, session: Session, queue: Queue, tasks: list[Task]) -> bool:
        """Whether the queue may take room from others for these tasks."""
        return True

    def may_go(self, job: Job, victim: Task, its_job: Job) -> bool:
        """Whether a task that runs in the domain may be evicted for the job."""
        raise NotImplementedError

    def precedence(self, session: Session, task: Task, bundles: list[Bundle]) -> list[Bundle]:
        """The bundles, sorted (stably) by whose jobs lose theirs first."""
        raise NotImplementedError

    # -- one gang

    def _serve(self, session: Session, queue: Queue, job: Job) -> None:
        wanted = self._wanted(session, job)
        tasks = [task for _, part in wanted for task in part]
        if not tasks or not self.may_take(session, queue, tasks):
            return
        domains = self._domains(session, job)
        if session.policy.comes_later("allocate", than=self.name):
            with session.statement() as statement:
                if any(Attempt(session, self, job, queue, wanted, domain).finds_room(statement, whole=False) for domain in domains):
                    return  # it needs no eviction, allocate can place it
        for domain in domains:
            with session.statement() as statement:
                attempt = Attempt(session, self, job, queue, wanted, domain)
                if attempt.clear(statement) and session.job_pipelined(job):
                    statement.commit()
                    job.nominated_hypernodes = attempt.places
                    return

    @staticmethod
    def _wanted(session: Session, job: Job) -> Wanted:
        """The tasks that are to get places, by part: all, or those of the first part if the gang itself already has its own."""
        parts = Parts(session, job)
        wanted: Wanted = []
        while parts:
            part, sheet = parts.pop()
            tasks = [task for task in reversed(sheet.tasks) if not (task.template.never_preempts or task.gated)]
            if tasks:
                wanted.append((part, tasks))
        return wanted[:1] if session.job_ready(job) else wanted

    def _domains(self, session: Session, job: Job) -> list[HyperNode]:
        root = session.topology.tree.root
        found = [domain for group in session.gradients(job, root, Purpose.EVICT) for domain in group]
        if not found and session.topology.limit(job) is None:
            found = [root]
        return found[: self.args.domains if self.args.domains > 0 else DEFAULT_DOMAINS]


class Attempt:
    """One gang, one domain. `places` tells in the end which HyperNode each part of the gang waits in."""

    def __init__(self, session: Session, action: GangEviction, job: Job, queue: Queue, wanted: Wanted, domain: HyperNode) -> None:
        self.session = session
        self.action = action
        self.job = job
        self.queue = queue
        self.wanted = wanted
        self.domain = domain
        self.tasks = [task for _, part in wanted for task in part]
        self.need: Vector = sum((task.template.request for task in self.tasks), session.cluster.dimensions.zeros())
        self.places: dict[str, str] = {}

    def clear(self, statement: Statement) -> bool:
        """Evict and place. If that fails, evictions are left in the statement for its owner to undo."""
        nodes, rows = self.session.nodes, self.domain.rows
        bundles = self._bundles()
        room = nodes.room_in_sums(nodes.idle + nodes.releasing)[:, rows].sum(axis=1)
        sizes = [bundle.size for bundle in bundles]
        if not fits(self.need, sum(sizes, room)):
            return False
        for bundle, size in zip(bundles, sizes, strict=True):
            for victim in bundle.tasks:
                statement.evict(victim, self.action.name, self.job.uid)
            room = room + size
            if fits(self.need, room) and self.finds_room(statement, whole=True):
                return True
        return False

    def finds_room(self, statement: Statement, *, whole: bool) -> bool:
        """Place the gang in the domain as it is, with all pods of a part or with what the part needs; undone if that does not do."""
        return self._has_room(whole) and self._place(statement, whole)

    # -- who goes

    def _bundles(self) -> list[Bundle]:
        """Bundles that may go, in the order in which they do."""
        session, action = self.session, self.action
        by_job: dict[str, list[Task]] = {}
        for row in np.flatnonzero(self.domain.rows):
            for task in session.nodes.tasks[row].values():
                if self._may_go(task):
                    assert task.job is not None
                    by_job.setdefault(task.job.uid, []).append(task)
        bundles = self._sorted([bundle for uid, tasks in by_job.items() for bundle in split(session.cluster.jobs[uid], tasks)])
        offered = [task for bundle in bundles for task in bundle.tasks]
        context = Context(action.name, self.job, self.tasks[0], self.domain)
        left = self._sorted(approved(bundles, session.unified_evictable(context, offered))) if offered else []
        return left if action.args.whole else [bundle for bundle in left if bundle.safe]

    def _may_go(self, task: Task) -> bool:
        its_job = task.job
        if its_job is None or its_job is self.job or its_job.never_preempted or not task.preemptable:
            return False
        return bool(task.status & status.PREEMPTABLE) and self.action.may_go(self.job, task, its_job)

    def _sorted(self, bundles: list[Bundle]) -> list[Bundle]:
        session = self.session
        return in_order(bundles, self.need, lambda found: self.action.precedence(session, self.tasks[0], found))

    # -- where the gang waits

    def _has_room(self, whole: bool) -> bool:
        """Whether enough tasks could fit, node by node: saves most hopeless tries."""
        least = len(self.wanted[0][1]) if whole else 1
        return Outlook(self.session, self.tasks).most(self.domain) >= max(least, missing(self.session, self.job))

    def _place(self, statement: Statement, whole: bool) -> bool:
        """Let part after part wait somewhere in the domain, until the gang has what it needs. Undone if it does not get that."""
        mark = statement.mark()
        self.places = {}
        for part, tasks in self.wanted:
            if not self._place_part(part, tasks, statement, whole) and whole:
                break
            if self.places and self.session.job_pipelined(self.job):
                return True
        statement.rollback(mark)
        return False

    def _place_part(self, part: SubJob, tasks: list[Task], statement: Statement, whole: bool) -> bool:
        for place in self._places(part):
            mark = statement.mark()
            placed = self._place_tasks(tasks, place, statement)
            if placed == len(tasks) or (not whole and self.session.sub_job_pipelined(self.job, part)):
                self.places[part.uid] = place.name
                return True
            statement.rollback(mark)
        return False

    def _places(self, part: SubJob) -> list[HyperNode]:
        session = self.session
        if session.topology.sub_limit(self.job, part) is None:
            return [self.domain]
        groups = session.sub_gradients(self.job, part, self.domain, Purpose.EVICT)
        return [place for group in groups for place in group]

    def _place_tasks(self, tasks: list[Task], place: HyperNode, statement: Statement) -> int:
        """How many of them found a node."""
        session = self.session
        hopeless: set[Evaluation] = set()  #: those of tasks that found no node
        placed = 0
        for task in tasks:
            if not session.allocatable(self.queue, task) or session.pre_predicate(task) is not None:
                continue
            evaluation = session.evaluation(task)
            if evaluation in hopeless or evaluation.rejected is not None:
                continue
            feasible = evaluation.admitted & evaluation.fits_future & place.rows
            idle = feasible & evaluation.fits_idle
            row = session.best_node(task, evaluation, idle if idle.any() else feasible)
            if row < 0:
                hopeless.add(evaluation)
            else:
                statement.pipeline(task, row, evicted=True)
                placed += 1
        return placed
