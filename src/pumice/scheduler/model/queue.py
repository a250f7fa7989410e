"""A queue and the sums of its jobs: what they hold, what they request, and what they are promised beyond that."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pumice.api.meta import ROOT_QUEUE
from pumice.api.volcano import Queue as QueueObject
from pumice.scheduler.model.resources import CPU, MEMORY, PODS, Dimensions, Mask, Sum, Vector, as_sum, as_vector

if TYPE_CHECKING:
    from pumice.scheduler.model.job import Job


class Queue:
    """A queue, under the name that PodGroups refer to. Without a Queue object (`wire` None) its jobs wait for the object."""

    def __init__(self, name: str, dimensions: Dimensions) -> None:
        self.name = name
        self.wire: QueueObject | None = None
        self.jobs: dict[str, Job] = {}
        self.holding = dimensions.nothing()
        self.asking: Sum = dimensions.nothing()  #: requests of all Pending tasks of its jobs
        self.reserved: Sum = dimensions.nothing()  #: what admitted jobs may still request (Promises.reserve)
        self.surplus: Sum = dimensions.nothing()  #: what its jobs hold above their minimum (Promises.surplus)
        self.promised: Sum = dimensions.nothing()  #: what overcommit counts as promised to its jobs (Promises.admitted)
        self.read(dimensions)

    def read(self, dimensions: Dimensions) -> None:
        """Take over the object's fields."""
        spec = self.wire.spec if self.wire else None
        self.weight = spec.weight if spec and spec.weight is not None else 1
        self.priority = (spec.priority if spec else None) or 0
        self.parent = (spec.parent if spec else None) or ("" if self.name == ROOT_QUEUE else ROOT_QUEUE)
        self.reclaimable = self.wire is not None and (spec is None or spec.reclaimable is not False)
        self.state = (self.wire.status.state if self.wire else None) or ""
        self.created = self.wire.metadata.created if self.wire else 0.0
        capability = dimensions.vector(spec.capability if spec else None, missing=np.inf)
        capability[[column for column in (CPU, MEMORY) if capability[column] <= 0]] = np.inf
        self.capability: Vector = capability  #: the most that it may hold; inf for resources not named, and for cpu or memory of 0
        self.guarantee: Vector = dimensions.vector(spec.guarantee.resource if spec and spec.guarantee else None)
        self.deserved: Vector = dimensions.vector(spec.deserved if spec else None)  #: from the object; for the plugin capacity
        self.deserves: Mask = ~np.isnan(dimensions.vector(spec.deserved if spec else None, missing=np.nan))  #: what `deserved` names
        self.annotations = (self.wire.metadata.annotations if self.wire else None) or {}

    @property
    def exists(self) -> bool:
        return self.wire is not None

    @property
    def open(self) -> bool:
        """Whether the queue admits jobs."""
        return self.state == "Open"

    @property
    def serving(self) -> bool:
        """Whether admitted jobs get room. They do in a closing queue, too; else their pods would wait for ever."""
        return self.state in ("Open", "Closing")

    # -- the sums as vectors

    @property
    def holding(self) -> Sum:
        """The requests of all tasks of its jobs that hold a place or wait for one that is being released."""
        return self._holding

    @holding.setter
    def holding(self, total: Sum) -> None:
        self._holding = total
        self._held: Vector | None = None

    @property
    def held(self) -> Vector:
        """`holding` as a vector. It is another object whenever `holding` was set."""
        if self._held is None:
            self._held = as_vector(self._holding)
        return self._held

    @property
    def pending(self) -> Vector:
        return as_vector(self.asking)

    @property
    def inqueue(self) -> Vector:
        return as_vector(self.reserved)

    @property
    def elastic(self) -> Vector:
        return as_vector(self.surplus)

    @property
    def admitted(self) -> Vector:
        return as_vector(self.promised)

    def add(self, job: Job) -> None:
        """Count what a job holds and asks for."""
        self.holding += job.holding
        self.asking += job.asking

    def take(self, job: Job) -> None:
        """Undo add()."""
        self.holding -= job.holding
        self.asking -= job.asking

    def widen(self, dimensions: Dimensions) -> None:
        self.holding, self.asking = dimensions.fitted(self.holding), dimensions.fitted(self.asking)
        self.reserved, self.surplus = dimensions.fitted(self.reserved), dimensions.fitted(self.surplus)
        self.promised = dimensions.fitted(self.promised)
        self.guarantee, self.deserved = dimensions.fitted(self.guarantee), dimensions.fitted(self.deserved)
        self.capability = dimensions.fitted(self.capability, missing=np.inf)
        self.deserves = np.pad(self.deserves, (0, dimensions.width - len(self.deserves)))

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"


# What admitted jobs are promised beyond what they hold: the sums of queues that depend on a job as a whole.
#
# A job's part in these sums is kept with the job, so that a change of one job costs one subtraction and one addition.


class Promises(NamedTuple):
    """A job's part in the sums of its queue. None stands for zero."""

    reserve: Sum | None = None  #: in Queue.reserved: what it may still request
    surplus: Sum | None = None  #: in Queue.surplus: what it holds above its minimum
    admitted: Sum | None = None  #: in Queue.promised: what overcommit counts

    def fitted(self, dimensions: Dimensions) -> Promises:
        return Promises(*(None if part is None else dimensions.fitted(part) for part in self))


#: Promises by what they depend on. The key has the `id` of a vector of minimum resources, so that vector is kept with them.
KnownPromises = dict[tuple[bytes, int, bool, str], tuple[Vector, Promises]]
MOST_KNOWN = 4096


def refresh_promises(job: Job, known: KnownPromises) -> None:
    """Bring the job's part in the sums of its queue up to date. `known`: parts that were computed before, for jobs that are alike."""
    if any(task.gated for task in job.pending.values()):
        _replace(job, _promises(job))
        return
    holding, reserves = job.holding.tobytes(), job.reserves and not job.beyond
    counts_minimum = reserves or holding.strip(b"\0")  # a job that neither holds nor reserves anything has no part in any sum
    question = holding, id(job.min_resources) if counts_minimum else 0, reserves, job.phase
    if question not in known:
        if len(known) >= MOST_KNOWN:
            known.clear()
        known[question] = job.min_resources, _promises(job)
    _replace(job, known[question][1])


def _promises(job: Job) -> Promises:
    held = job.held
    rest = job.without_gated(job.outstanding(held)) if job.reserves and not job.beyond else None
    surplus = np.maximum(held - job.min_resources, 0.0)
    surplus[PODS] = 0.0  # queues do not count pods
    counted = job.without_gated(job.min_resources) if rest is not None and job.phase != "Running" else rest
    return Promises(_kept(rest), _kept(surplus if surplus.any() else None), _kept(counted))


def _kept(amounts: Vector | None) -> Sum | None:
    return None if amounts is None else as_sum(amounts)


def withdraw_promises(job: Job) -> None:
    """Take the job's part out of the sums of its queue."""
    _replace(job, Promises())


def _replace(job: Job, promises: Promises) -> None:
    queue = job.queue
    assert queue is not None
    if promises is job.promises:
        return
    for total, before, after in zip((queue.reserved, queue.surplus, queue.promised), job.promises, promises, strict=True):
        if before is not None:
            total -= before
        if after is not None:
            total += after
    job.promises = promises
