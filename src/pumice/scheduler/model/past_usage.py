"""What queues and users used before now: the mean of what they held, in which earlier times count less.

    mean(t) = ln 2 / halfLife * integral over all s before t of held(s) * 2 ** ((s - t) / halfLife)

A queue that held 8 GPUs for one half-life and nothing before has a mean of 4; one half-life after it has released them, 2. Between two
changes the mean approaches what is held, exponentially, so it is computed only when something changes. For the time before the first
question the running pods are counted: each has held its resources since it was placed. Pods that had ended by then are not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from pumice.api.annotations import USER
from pumice.scheduler.model import status
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.resources import Dimensions, Vector
from pumice.scheduler.model.task import Task

HolderOf = Callable[[Job], str]  #: the name of the queue or user that a job counts for


def queue_of(job: Job) -> str:
    return f"queue {job.queue.name}" if job.queue is not None else ""


def user_of(job: Job) -> str:
    """The name of the user that a job counts for: from its annotation, else from its namespace."""
    user = job.annotations.get(USER)
    return f"user {user}" if user else f"namespace {job.namespace}"


class Holder:
    """What one queue or user has held since an instant, and its mean at that instant."""

    __slots__ = ("before", "held", "mean", "since")

    def __init__(self, held: Vector, mean: Vector, since: float) -> None:
        self.held = held
        self.mean = mean
        self.since = since
        self.before: Holder | None = None  #: as it was before the changes at this instant

    def mean_at(self, now: float, half_life_s: float) -> Vector:
        return self.held + (self.mean - self.held) * _left(now - self.since, half_life_s)


class PastUsage:
    """The past usage of all holders, with one half-life. The cluster calls it when a task begins or ceases to hold resources."""

    def __init__(self, dimensions: Dimensions, half_life_s: float, holder_of: HolderOf) -> None:
        self._dimensions = dimensions
        self._half_life_s = half_life_s
        self._holder_of = holder_of
        self._holders: dict[str, Holder] = {}
        self._holding: dict[str, str] = {}  #: by task uid: the holder that it counts for

    def count(self, tasks: Iterable[Task], now: float) -> None:
        """Begin with the tasks that hold resources now."""
        for task in tasks:
            if task.job is not None and task.status & status.HELD:
                self.begins(task, task.job, now)
                holder, since = self._holders[self._holding[task.uid]], task.placed_at if task.placed_at is not None else now
                holder.mean = holder.mean + task.template.request * (1.0 - _left(now - since, self._half_life_s))

    def begins(self, task: Task, job: Job, now: float) -> None:
        name = self._holding[task.uid] = self._holder_of(job)
        self._change(name, task.template.request, now)

    def ends(self, task: Task, now: float) -> None:
        self._change(self._holding.pop(task.uid), -task.template.request, now)

    def _change(self, name: str, amounts: Vector, now: float) -> None:
        nothing = self._dimensions.zeros()
        holder = self._holders.setdefault(name, Holder(nothing, nothing, now))
        fitted = self._dimensions.fitted
        if now > holder.since:
            holder.before = Holder(holder.held, holder.mean, holder.since)
            holder.mean, holder.since = holder.mean_at(now, self._half_life_s), now
        holder.held, holder.mean = fitted(holder.held) + amounts, fitted(holder.mean)
        if holder.before is not None and (holder.held == fitted(holder.before.held)).all():  # what was only tried leaves no rounding error
            self._holders[name] = holder.before

    def mean(self, name: str, now: float) -> Vector:
        holder = self._holders.get(name)
        return self._dimensions.fitted(holder.mean_at(now, self._half_life_s)) if holder else self._dimensions.zeros()

    def check(self, tasks: Iterable[Task]) -> None:
        """Assert that what each holder holds is what a recount says. For tests."""
        recount = PastUsage(self._dimensions, self._half_life_s, self._holder_of)
        recount.count(tasks, 0.0)
        assert self._holding == recount._holding
        for name, holder in self._holders.items():
            counted = recount._holders[name].held if name in recount._holders else 0.0
            assert (holder.held == counted).all(), f"held by {name}"

    def copy(self) -> PastUsage:
        fresh = PastUsage(self._dimensions, self._half_life_s, self._holder_of)
        fresh._holders = {name: Holder(its.held, its.mean, its.since) for name, its in self._holders.items()}
        fresh._holding = self._holding.copy()
        return fresh


def _left(elapsed_s: float, half_life_s: float) -> float:
    """The share of its weight that the past keeps after a time."""
    return math.pow(2.0, -max(0.0, elapsed_s) / half_life_s)
