"""proportion: queues share the cluster by weight; what one does not ask for is lent to the others until it does.

`deserved` is found by water filling: in rounds every unsatisfied queue gets its weight's part of what remains, never more than it
asks for or is capped at, never less than it is guaranteed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from msgspec import Struct

from pumice.scheduler.framework.hook_answers import Vote
from pumice.scheduler.framework.moved_jobs import MovedJobs
from pumice.scheduler.framework.newcomer import Newcomer
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.queue_limits import lacking, refuse, refuse_closed, room_within, shortfall, within
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import EPSILON, PODS, Job, Queue, Table, Task, Vector, dominant_share
from pumice.scheduler.model.resources import as_vectors, fits


class Share:
    """What a queue deserves, and what limits it, in one session."""

    def __init__(self, queue: Queue, limit: Vector, deserved: Vector) -> None:
        self.queue = queue
        self.limit = limit  #: all it may ever hold
        self.deserved = deserved
        self._share: tuple[Vector | None, float] = (None, 0.0)  #: what the queue held when its share was computed, and the share

    @cached_property
    def inqueue(self) -> Vector:
        return self.queue.inqueue

    @cached_property
    def elastic(self) -> Vector:
        return self.queue.elastic

    @property
    def claimed(self) -> Vector:
        return self.queue.held + self.inqueue - self.elastic

    @property
    def share(self) -> float:
        """The queue's share: the greatest ratio of what it holds to what it deserves, over all resources."""
        held = self.queue.held
        if self._share[0] is not held:
            self._share = held, dominant_share(held, self.deserved)
        return self._share[1]


class QueueBounds(Struct, frozen=True):
    """The bounds of the queues with jobs, one row each, which do not depend on requests. They are kept from session to session until a
    queue or a node changes."""

    guarantee: Table
    limit: Table
    weight: Vector

    @classmethod
    def of(cls, session: Session, queues: list[Queue]) -> QueueBounds:
        memory = session.memory(Proportion.name)
        basis = session.cluster.nodes.version, len(session.total), [queue.wire for queue in session.queues], queues
        if memory.get("basis") != basis or not session.policy.shortcuts:
            memory["basis"], memory["bounds"] = basis, cls._found(session, queues)
        bounds: QueueBounds = memory["bounds"]
        return bounds

    @classmethod
    def _found(cls, session: Session, queues: list[Queue]) -> QueueBounds:
        guaranteed = np.sum([queue.guarantee for queue in session.queues], axis=0)
        guarantee, capability = np.array([queue.guarantee for queue in queues]), np.array([queue.capability for queue in queues])
        limit = np.minimum(np.maximum(session.total - guaranteed, 0.0) + guarantee, capability)
        return cls(guarantee, limit, np.array([queue.weight for queue in queues], float))

    def deserved(self, remaining: Vector, request: Table) -> Table:
        """What each queue deserves, by water filling in rounds until nothing changes: even a small rest may be what a pod needs."""
        guarantee, wanted, weight = self.guarantee, np.minimum(self.limit, request), self.weight.sum()
        if weight and (remaining * (self.weight / weight)[:, None] >= wanted).all():
            return np.maximum(wanted, guarantee)
        deserved, unmet, others = np.zeros_like(request), self.weight.copy(), np.arange(len(remaining)) != PODS
        while weight := unmet.sum():  # a queue that is met has no weight any more, so that it is offered nothing
            before = deserved
            deserved = np.maximum(np.minimum(before + remaining * (unmet / weight)[:, None], wanted), guarantee)
            gained = deserved - before
            unmet[(request < deserved + EPSILON).all(axis=1) | ~gained.any(axis=1)] = 0.0
            rest = np.maximum(remaining - gained.sum(axis=0), 0.0)
            if (rest[others] < EPSILON).all() or (rest == remaining).all():
                break
            remaining = rest
        return deserved


def _with_all_pods(queue: Queue) -> Vector:
    """What the queue holds, with the number of pods that it would have if no pod waited."""
    held = queue.held.copy()
    held[PODS] += queue.pending[PODS]
    return held


class Proportion(Plugin):
    name = "proportion"
    reads_only_state = True

    def open(self, session: Session) -> None:
        super().open(session)
        self._shares: dict[str, Share] = {}
        self._owing: set[Queue] = set()  #: those that held more than they deserve when they were last asked about
        self._moved = MovedJobs(session.cluster)
        queues = [queue for queue in session.queues if queue.jobs]
        if queues:
            bounds = QueueBounds.of(session, queues)
            requests = np.array([queue.held for queue in queues]) + as_vectors(queue.asking for queue in queues)
            parts = zip(queues, bounds.limit, self._deserved(bounds, requests), strict=True)
            self._shares = {queue.name: Share(queue, limit, deserved) for queue, limit, deserved in parts}

    def welcomes(self, newcomer: Newcomer) -> bool:
        """Whether no queue has bounds of its own, and all get what they ask for: then each deserves just that."""
        cluster = newcomer.cluster
        return newcomer.takes_little and cluster.knows_all_nodes and True not in [queue.is_bounded for queue in cluster.queues.values()]

    def _deserved(self, bounds: QueueBounds, requests: Table) -> Table:
        """What each queue deserves. It stays the same while pods only move from what their queue asks for to what it holds."""
        memory = self.session.memory(self.name)
        known: tuple[QueueBounds, Table, Table] | None = memory.get("deserved")
        if known is None or known[0] is not bounds or not np.array_equal(known[1], requests):
            known = memory["deserved"] = bounds, requests, bounds.deserved(self.session.total, requests)
        return known[2]

    def entitlements(self) -> dict[str, tuple[Vector, Vector]]:
        """By queue what it deserves, and all it may hold. For metrics and for answers about quota."""
        return {name: (own.deserved, own.limit) for name, own in self._shares.items()}

    def queue_order(self, queue: Queue) -> tuple[int, float]:
        share = self._shares.get(queue.name)
        return (-queue.priority, share.share if share else 0.0)

    def overused(self, queue: Queue) -> bool:
        """Whether the queue holds what it deserves in every dimension."""
        share = self._shares[queue.name]
        return fits(share.deserved, queue.held)

    def allocatable(self, queue: Queue, task: Task) -> bool:
        return queue.serving and within(task.template.request, queue.held, self._shares[queue.name].deserved)

    def queue_room(self, queue: Queue) -> Vector:
        return room_within(queue.held, self._shares[queue.name].deserved) if queue.serving else np.full_like(queue.held, -np.inf)

    def explain_not_allocatable(self, queue: Queue, task: Task) -> str:
        if not queue.serving:
            return f"queue {queue.name} is {queue.state or 'not open'}"
        return shortfall(self.session, queue.name, task, queue.held, self._shares[queue.name].deserved, "it deserves")

    def preemptive(self, queue: Queue, tasks: list[Task]) -> bool:
        request = np.sum([task.template.request for task in tasks], axis=0)
        return queue.open and within(request, queue.held, self._shares[queue.name].deserved)

    def preemptive_room(self, queue: Queue) -> Vector:
        return room_within(queue.held, self._shares[queue.name].deserved) if queue.open else np.full_like(queue.held, -np.inf)

    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> list[Task]:
        """Tasks of queues that hold more than they deserve in some dimension, until they no longer do."""
        left: dict[str, Vector] = {}
        victims = []
        for task in candidates:
            queue = task.job.queue if task.job else None
            if queue is None or queue.name not in self._shares:
                continue
            held = left.get(queue.name, queue.held)
            if not fits(held, self._shares[queue.name].deserved):
                left[queue.name] = held - task.template.request
                victims.append(task)
        return victims

    def spares(self, evictor: Task, task: Task) -> bool:
        queue = task.job.queue if task.job else None
        return queue is None or queue.name not in self._shares or fits(queue.held, self._shares[queue.name].deserved)

    def spares_rows(self, evictor: Task) -> bool:
        """Whether no queue holds more than it deserves."""
        for queue in {job.queue for job in self._moved.now()}:
            if queue is not None and (share := self._shares.get(queue.name)) is not None:
                (self._owing.discard if fits(queue.held, share.deserved) else self._owing.add)(queue)
        return not self._owing

    def exposes(self) -> Iterable[Job] | None:
        """Those of queues that hold more than they deserve. `allocatable` takes no queue beyond that, but in the number of pods."""
        if all(method.__self__ is not self for method in self.session.plugins.flat["allocatable"]):  # type: ignore[attr-defined]
            return None
        owners = (own.queue for own in self._shares.values() if not fits(_with_all_pods(own.queue), own.deserved))
        return (job for queue in owners for job in queue.jobs.values())

    def eviction_cache_key(self, evictor: Task) -> None:
        """All evictors get the same answers."""

    def job_enqueueable(self, job: Job) -> Vote:
        queue = job.queue
        assert queue is not None
        if not queue.open:
            return refuse_closed(self.session, job, queue)
        share = self._shares[queue.name]
        if not job.has_min_resources:
            return Vote.PERMIT
        claimed = share.claimed
        short = lacking(job, claimed, share.limit)
        return refuse(self.session, job, short, queue.name, claimed, share.limit) if short else Vote.PERMIT

    def admission_room(self, queue: Queue) -> Vector:
        share = self._shares[queue.name]
        return share.limit - share.claimed if queue.open else np.full_like(queue.held, -np.inf)

    def job_enqueued(self, job: Job) -> None:
        if job.has_min_resources and job.queue is not None:
            self._shares[job.queue.name].inqueue += job.without_gated(job.min_resources)
