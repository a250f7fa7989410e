"""A queue and the sums of its jobs: what they hold, what they request, and what they are promised beyond that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.api.defaults import ROOT_QUEUE
from pumice.api.volcano import Queue as QueueObject
from pumice.scheduler.model.resources import CPU, MEMORY, Dimensions, Mask, Sum, Vector, as_vector

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
        self.promisees = 0  #: to how many of them it is promised
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
        #: whether it is guaranteed some resource, or never has more than some amount of one, or no part of what is shared by weight
        self.is_bounded = bool(self.guarantee.any() or (capability < np.inf).any()) or self.weight <= 0
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

    def hold(self, more: Sum) -> None:
        self._holding += more
        self._held = None

    def release(self, less: Sum) -> None:
        self._holding -= less
        self._held = None

    @property
    def held(self) -> Vector:
        """`holding` as a vector. It is another object whenever `holding` has changed."""
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

    def add(self, job: Job) -> None:
        """Count what a job holds and asks for."""
        self.hold(job.holding)
        if job.pending:
            self.asking += job.asking

    def take(self, job: Job) -> None:
        """Undo add()."""
        self.release(job.holding)
        if job.pending:
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
