"""The room on all nodes from now on, as far as it is known: running pods are expected to end, waiting jobs are promised places.

Between two of its times nothing changes. What has outlived its estimate is expected to end after one more minute, then two more, then four.
"""

from __future__ import annotations

from math import inf, log2
from typing import NamedTuple

import numpy as np

from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import status
from pumice.scheduler.model.nodes import Table
from pumice.scheduler.model.resources import EPSILON, Mask, Vector
from pumice.scheduler.model.task import Task

FIRST_STEP_S = 60.0  #: of the time given to a job that outlives its estimate; each further step is twice as long


class PodSet(NamedTuple):
    """Equal pods that must all have a place."""

    amounts: Vector  #: of one
    copies: int
    where: Mask  #: nodes that may have them


class Promise(NamedTuple):
    """Room for a job from an instant on."""

    start: float
    usage: Table  #: [r, n]


class Timetable:
    """Free room over time, node by node."""

    def __init__(self, session: Session, unknown: float) -> None:
        """`unknown`: how long those run of whom nothing is told."""
        nodes, now = session.nodes, session.now
        standing = [task for tasks in nodes.tasks for task in tasks.values()]
        ends = np.array([expected_end(task, now, unknown) for task in standing])
        times = np.unique(ends[np.isfinite(ends)])
        released = np.zeros((len(times) + 1, *nodes.idle.shape))
        released[0] = nodes.idle
        for step, task in zip(np.searchsorted(times, ends).tolist(), standing, strict=True):
            if step < len(times):
                for column, amount in task.template.needs:  # so few numbers are quicker one by one
                    released[step + 1, column, task.node] += amount
        self.times = np.array([now, *times])
        self.room = np.cumsum(released, axis=0)  #: [time, r, n]

    def free(self, start: float, length: float) -> Table:
        """What is free all the time from `start` on."""
        first = int(np.searchsorted(self.times, start, "right")) - 1
        last = int(np.searchsorted(self.times, start + length, "left"))
        free: Table = self.room[max(first, 0) : max(last, first + 1)].min(axis=0)
        return free

    def earliest(self, pod_sets: list[PodSet], length: float) -> Promise | None:
        """The first instant from which there is room for so long; None if there never is."""
        for step, time in enumerate(self.times.tolist()):
            if places(self.room[step], pod_sets) is not None:
                usage = places(self.free(time, length), pod_sets)
                if usage is not None:
                    return Promise(time, usage)
        return None

    def change(self, promise: Promise, length: float, sign: int) -> None:
        """Take the promised room (-1), or give it back (+1)."""
        first, last = self._step(promise.start), self._step(promise.start + length)
        self.room[first:last] += sign * promise.usage

    def _step(self, time: float) -> int:
        """Where something changes at this time."""
        step = int(np.searchsorted(self.times, time))
        if time < inf and (step == len(self.times) or self.times[step] != time):
            before = self.room[max(step - 1, 0)]
            self.times = np.insert(self.times, step, time)
            self.room = np.insert(self.room, step, before, axis=0)
        return step


def places(free: Table, pod_sets: list[PodSet]) -> Table | None:
    """What the pods take of each node, the first nodes first; None if there is no room for all of them."""
    usage = np.zeros_like(free)
    for amounts, wanted, where in pod_sets:
        needed = np.flatnonzero(amounts)
        copies = ((free[needed] - usage[needed] + EPSILON) // amounts[needed, None]).min(axis=0)
        copies = np.where(where, np.clip(copies, 0, wanted), 0)
        before = np.cumsum(copies) - copies
        if before[-1] + copies[-1] < wanted:
            return None
        usage += amounts[:, None] * np.clip(wanted - before, 0, copies)
    return usage


def expected_run(task: Task, unknown: float) -> float:
    """By the estimate of its job, else by its own limit."""
    if task.job is not None and task.job.estimate is not None:
        return task.job.estimate
    return task.template.spec.active_deadline_seconds or unknown


def expected_end(task: Task, now: float, unknown: float) -> float:
    if task.status == status.RELEASING:
        return now + 1
    began = next((since for since in (task.started, task.placed_at) if since is not None), now)
    over = now - (end := began + expected_run(task, unknown))
    if over < 0:
        return end
    steps = 1 + int(log2(over / FIRST_STEP_S + 1))
    return end + FIRST_STEP_S * (2.0**steps - 1)
