"""proportion: queues share the cluster by weight; what one does not ask for is lent to the others until it does.

`deserved` is found by water filling: in rounds every unsatisfied queue gets its weight's part of what remains, never more than it
asks for or is capped at, never less than it is guaranteed.
"""

from __future__ import annotations

import numpy as np

from pumice.scheduler.framework.hooks import Vote
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.queue_limits import lacking, refuse, refuse_closed, shortfall, within
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.queue import Queue
from pumice.scheduler.model.resources import EPSILON, PODS, Vector, dominant_share, fits
from pumice.scheduler.model.task import Task


class Share:
    """What a queue deserves, and what limits it, in one session."""

    def __init__(self, queue: Queue, free: Vector) -> None:
        self.queue = queue
        self.limit = np.minimum(free + queue.guarantee, queue.capability)  #: all it may ever hold
        self.request = queue.held + queue.pending
        self.inqueue = queue.inqueue.copy()
        self.elastic = queue.elastic
        self.deserved: Vector = np.zeros_like(queue.held)

    @property
    def share(self) -> float:
        """The greatest part of its deserved that it holds."""
        return dominant_share(self.queue.held, self.deserved)


class Proportion(Plugin):
    name = "proportion"
    reads_only_state = True

    def open(self, session: Session) -> None:
        super().open(session)
        guaranteed = sum((queue.guarantee for queue in session.queues), session.cluster.dimensions.zeros())
        free = np.maximum(session.total - guaranteed, 0.0)
        self._shares = {queue.name: Share(queue, free) for queue in session.queues if queue.jobs}
        self._fill(session.total.copy())

    def _fill(self, remaining: Vector) -> None:
        """Water filling, in rounds until nothing changes: a queue that is short of its last crumb starts no pod that needs it."""
        shares = list(self._shares.values())
        weights = np.array([share.queue.weight for share in shares], float)
        limit, request = np.array([share.limit for share in shares]), np.array([share.request for share in shares])
        guarantee = np.array([share.queue.guarantee for share in shares])
        deserved, unmet = np.zeros_like(request), np.ones(len(shares), bool)
        while weight := weights[unmet].sum():
            before = deserved[unmet]
            offer = before + remaining * (weights[unmet] / weight)[:, None]
            after = np.maximum(np.minimum(np.minimum(offer, limit[unmet]), request[unmet]), guarantee[unmet])
            deserved[unmet] = after
            unmet[unmet] = ~((request[unmet] < after + EPSILON).all(axis=1) | (after == before).all(axis=1))
            rest = np.maximum(remaining - (after - before).sum(axis=0), 0.0)
            if (np.delete(rest, PODS) < EPSILON).all() or (rest == remaining).all():
                break
            remaining = rest
        for share, amounts in zip(shares, deserved, strict=True):
            share.deserved = amounts

    def entitlements(self) -> dict[str, tuple[Vector, Vector]]:
        """Of each queue what it deserves, and all it may hold: for those who measure."""
        return {name: (own.deserved, own.limit) for name, own in self._shares.items()}

    def queue_order(self, queue: Queue) -> tuple[int, float]:
        share = self._shares.get(queue.name)
        return (-queue.priority, share.share if share else 0.0)

    def overused(self, queue: Queue) -> bool:
        """Whether it holds what it deserves in every dimension."""
        share = self._shares[queue.name]
        return fits(share.deserved, queue.held)

    def allocatable(self, queue: Queue, task: Task) -> bool:
        return queue.serving and within(task.template.request, queue.held, self._shares[queue.name].deserved)

    def explain_not_allocatable(self, queue: Queue, task: Task) -> str:
        if not queue.serving:
            return f"queue {queue.name} is {queue.state or 'not open'}"
        return shortfall(self.session, queue.name, task, queue.held, self._shares[queue.name].deserved, "it deserves")

    def preemptive(self, queue: Queue, tasks: list[Task]) -> bool:
        request = np.sum([task.template.request for task in tasks], axis=0)
        return queue.open and within(request, queue.held, self._shares[queue.name].deserved)

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

    def eviction_cache_key(self, evictor: Task) -> None:
        """All are alike."""

    def job_enqueueable(self, job: Job) -> Vote:
        queue = job.queue
        assert queue is not None
        if not queue.open:
            return refuse_closed(self.session, job, queue)
        share = self._shares[queue.name]
        if not job.has_min_resources:
            return Vote.PERMIT
        claimed = queue.held + share.inqueue - share.elastic
        short = lacking(job, claimed, share.limit)
        return refuse(self.session, job, short, queue.name, claimed, share.limit) if short else Vote.PERMIT

    def job_enqueued(self, job: Job) -> None:
        if job.has_min_resources and job.queue is not None:
            self._shares[job.queue.name].inqueue += job.without_gated(job.min_resources)
