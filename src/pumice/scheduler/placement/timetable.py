"""The room on all nodes from now on, as far as it is known: running pods are expected to end, and waiting jobs are promised room.

The expected ends of pods are kept in order from cycle to cycle (`PlannedEnds`), so that a timetable need not look at every running pod. A
pod that has outlived its estimate is expected to end after one more minute, then two more, then four. How long a pod runs is its estimate,
or with `PlannedByHistory` the usual run of similar pods, if that is less.

`PastRuns` has how long pods ran that have ended, by kind: similar pods are expected to run as long. The narrowest kind are pods of one
owner (pumice.io/user of the PodGroup, else its namespace and queue) with equal requests whose jobs have the same name except for numbers;
then pods of such jobs with any requests; then all pods of the owner. It knows only pods that have ended since it was first asked for.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Sequence
from math import inf, log2
from statistics import median
from typing import NamedTuple, Self, TypeAlias

import numpy as np

from pumice.api.annotations import USER
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import status
from pumice.scheduler.model.index import Index
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.nodes import Table, cells
from pumice.scheduler.model.resources import EPSILON, Mask, Vector
from pumice.scheduler.model.task import Task

ENOUGH = 5  #: runs of a kind that are needed to know the usual run
LATEST = 300  #: runs of a kind that are kept, the latest ones
MOST_KINDS = 3000  #: kinds that are remembered; those that were seen first are forgotten first
MOST_GONE = 1000  #: pods that have left a node, before it is checked which of them have ended

_CHANGING = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+")

Kind: TypeAlias = tuple[object, ...]


def without_numbers(name: str) -> str:
    """The name without numbers and UUIDs: jobs of a sweep, and runs of one job, have it in common."""
    return _CHANGING.sub("", name)


class PastRuns(Index):
    def begin(self) -> None:
        self._gone: dict[str, tuple[Task, list[Kind]]] = {}
        self._runs: dict[Kind, deque[float]] = {}

    def change(self, row: int, task: Task, sign: int) -> None:
        if sign > 0:
            self._gone.pop(task.uid, None)
        elif task.job is not None:
            if len(self._gone) >= MOST_GONE:
                self.refresh()
            self._gone[task.uid] = task, _kinds(task, task.job)

    def refresh(self) -> None:
        for task, kinds in self._gone.values():
            last = self.cluster.tasks.get(task.key, task)  # a pod whose object was updated is another task
            if last.uid == task.uid and last.started is not None and last.ended is not None:
                for kind in kinds:
                    self._runs.setdefault(kind, deque(maxlen=LATEST)).append(last.ended - last.started)
        self._gone.clear()
        while len(self._runs) > MOST_KINDS:
            del self._runs[next(iter(self._runs))]

    def usual(self, task: Task) -> float | None:
        """The median run, in seconds, of the narrowest kind with enough runs; None if there is none."""
        if task.job is None:
            return None
        found = (self._runs.get(kind, ()) for kind in _kinds(task, task.job))
        return next((median(runs) for runs in found if len(runs) >= ENOUGH), None)


def owner_of(job: Job) -> str:
    return job.annotations.get(USER) or f"{job.namespace}/{job.queue.name if job.queue is not None else ''}"


def _kinds(task: Task, job: Job) -> list[Kind]:
    owner, name = owner_of(job), without_numbers(job.name)
    return [(owner, name, *task.template.needs), (owner, name), (owner,)]


FIRST_STEP_S = 60.0  #: the first extension of a pod that outlives its estimate; each further one is twice as long

Usage = tuple[tuple[int, int, float], ...]  #: column, row and amount of each part


class PodSet(NamedTuple):
    """Equal pods that must all find room."""

    amounts: Vector  #: what one pod requests
    copies: int
    where: Mask  #: nodes that may take them


class Promise(NamedTuple):
    """Room for a job from an instant on."""

    start: float
    usage: Usage


class RoomChange(NamedTuple):
    """More room from an instant on, or less. Of the changes at one instant, those that give room back come first."""

    time: float
    is_less: bool
    number: int  #: no two changes at one instant have the same number
    usage: Usage


# When pods are expected to end.


class PlannedEnds(Index):
    """The room that pods on nodes give back when they are expected to end, in order of time.

    The start time of a pod may become known only after it came to its node, so it is read when the index is asked for.
    """

    def begin(self) -> None:
        self._unread: dict[str, Task] = {}
        self._planned: dict[str, RoomChange] = {}
        self._in_order: list[RoomChange] = []  #: the values of `_planned`, by time
        self._by_clock: dict[str, Task] = {}  #: pods whose expected end depends on the present time

    def change(self, row: int, task: Task, sign: int) -> None:
        if sign > 0:
            self._unread[task.uid] = task
        elif self._unread.pop(task.uid, None) is None and self._by_clock.pop(task.uid, None) is None:
            del self._in_order[bisect_left(self._in_order, self._planned.pop(task.uid))]

    def reread(self, job: Job) -> None:
        for task in [task for task in job.tasks.values() if task.uid in self._planned or task.uid in self._by_clock]:
            self.change(task.node, task, -1)
            self.change(task.node, task, 1)

    def refresh(self) -> None:
        for task in self._unread.values():
            began, run = _began(task), self.known_run(task)
            if began is None or run is None or task.status == status.RELEASING:
                self._by_clock[task.uid] = task
            else:
                planned = self._planned[task.uid] = _given_back(task, began + run)
                insort(self._in_order, planned)
        self._unread.clear()

    def agrees(self, recount: Self) -> bool:
        recount.refresh()
        return self._in_order == recount._in_order and self._by_clock.keys() == recount._by_clock.keys()

    def to_come(self, session: Session, unknown: float) -> list[RoomChange]:
        """All expected changes, in order of time. `unknown`: the seconds that a pod without an estimate is expected to run."""
        now = session.now
        evicted = (task for task in session.moves if task.evicted and task.node >= 0)  # indexes do not see them
        others = [_given_back(task, end) for task in (*self._by_clock.values(), *evicted) if (end := self._end(task, now, unknown)) < inf]
        late = bisect_right(self._in_order, now, key=lambda planned: planned.time)
        others += [planned._replace(time=_extended(planned.time, now)) for planned in self._in_order[:late]]
        return sorted(others + self._in_order[late:]) if others else self._in_order[late:]

    def known_run(self, task: Task) -> float | None:
        """The seconds that a pod is expected to run: the estimate of its job, else its activeDeadlineSeconds, else None."""
        if task.job is not None and task.job.estimate is not None:
            return task.job.estimate
        return task.template.spec.active_deadline_seconds or None

    def run(self, task: Task, unknown: float) -> float:
        known = self.known_run(task)
        return unknown if known is None else known

    def _end(self, task: Task, now: float, unknown: float) -> float:
        if task.status == status.RELEASING:
            return now + 1
        began = _began(task)
        return _extended((now if began is None else began) + self.run(task, unknown), now)


class PlannedByHistory(PlannedEnds):
    """The expected ends by the usual runs of similar pods, if less than the estimates. An end expected when a pod began is kept."""

    def known_run(self, task: Task) -> float | None:
        stated, usual = super().known_run(task), self.cluster.index(PastRuns).usual(task)
        return min((run for run in (stated, usual) if run is not None), default=None)

    def agrees(self, recount: Self) -> bool:
        recount.refresh()
        return {*self._planned, *self._by_clock} == {*recount._planned, *recount._by_clock}


def _given_back(task: Task, end: float) -> RoomChange:
    return RoomChange(end, False, task.number, tuple((column, task.node, amount) for column, amount in task.template.needs))


def _began(task: Task) -> float | None:
    return task.placed_at if task.started is None else task.started


def _extended(end: float, now: float) -> float:
    """The expected end if it is still to come; else the end of the present extension."""
    if now < end:
        return end
    steps = 1 + int(log2((now - end) / FIRST_STEP_S + 1))
    return end + FIRST_STEP_S * (2.0**steps - 1)


# The free room over time.


class Timetable:
    """Free room over time, node by node: what is idle now, and how that changes."""

    def __init__(self, session: Session, ends: PlannedEnds, unknown: float, promised: Sequence[tuple[Promise, float]] = ()) -> None:
        """`unknown`: the seconds that a pod without an estimate is expected to run. `promised`: promises with the lengths of their runs."""
        self._now = session.now
        self._idle = session.nodes.idle.copy()
        self._changes = ends.to_come(session, unknown)
        self._less: list[float] = []  #: the instants at which room is taken
        self._promised = 0
        self._free: dict[int, Table] = {}  #: the room free from now on, by the number of times that room is taken meanwhile
        for promise, length in promised:
            self.change(promise, length, -1)

    def change(self, promise: Promise, length: float, sign: int) -> None:
        """Take the promised room (-1), or give it back (+1)."""
        self._add(promise.start, promise.usage, sign)
        if promise.start + length < inf:
            self._add(promise.start + length, promise.usage, -sign)

    def _add(self, time: float, usage: Usage, sign: int) -> None:
        self._promised -= 1  # pods have numbers above 0
        insort(self._changes, RoomChange(time, sign < 0, self._promised, tuple((c, row, sign * amount) for c, row, amount in usage)))
        if sign < 0:
            insort(self._less, time)
        self._free.clear()

    def free_now(self, length: float) -> Table:
        """The room that is free from now on for the whole length of time."""
        drops = self._drops(self._now, length)
        if len(drops) not in self._free:
            walk = RoomOverTime(self._idle, self._changes)
            walk.go_to(self._now)
            self._free[len(drops)] = self._least(walk, drops)
        return self._free[len(drops)].copy()

    def _drops(self, start: float, length: float) -> list[float]:
        """The instants at which room is taken during a run."""
        return self._less[bisect_right(self._less, start) : bisect_left(self._less, start + length)]

    def _least(self, walk: RoomOverTime, drops: list[float]) -> Table:
        """The room that is free at a walk's present instant and at all instants of `drops`."""
        least, ahead = walk.room.copy(), walk.copy() if drops else walk
        for time in drops:
            ahead.go_to(time)
            np.minimum(least, ahead.room, out=least)
        return least

    def earliest(self, pod_sets: list[PodSet], length: float) -> Promise | None:
        """A promise from the first instant at which there is room for all pods for that length of time; None if there never is."""
        walk, time = RoomOverTime(self._idle, self._changes), self._now
        walk.go_to(time)
        counts = [Copies(pod_set, walk) for pod_set in pod_sets]
        while True:
            usage = places(walk.room, pod_sets) if all(count.are_enough for count in counts) else None
            if usage is not None and (drops := self._drops(time, length)):
                usage = places(self._least(walk, drops), pod_sets)
            if usage is not None:
                return promise_of(time, usage)
            if walk.is_over:
                return None
            time = walk.next_time
            touched = walk.go_to(time)
            for count in counts:
                count.again(touched)


def promise_of(start: float, usage: Table) -> Promise:
    rows, columns = np.nonzero(usage.T)
    return Promise(start, tuple(zip(columns.tolist(), rows.tolist(), usage[columns, rows].tolist(), strict=True)))


class RoomOverTime:
    """A walk through time: the room at one instant after another."""

    def __init__(self, room: Table, changes: list[RoomChange], position: int = 0) -> None:
        self.room = room.copy()
        self.cells = cells(self.room)
        self._changes = changes
        self._position = position

    def copy(self) -> RoomOverTime:
        return RoomOverTime(self.room, self._changes, self._position)

    @property
    def is_over(self) -> bool:
        return self._position == len(self._changes)

    @property
    def next_time(self) -> float:
        return self._changes[self._position].time

    def go_to(self, time: float) -> set[int]:
        """Go on to an instant. Return the rows that have changed on the way."""
        touched, cells = set(), self.cells
        while self._position < len(self._changes) and self._changes[self._position].time <= time:
            for column, row, amount in self._changes[self._position].usage:
                cells[column][row] += amount
                touched.add(row)
            self._position += 1
        return touched


class Copies:
    """The number of equal pods that have room on each node, and whether all of them have."""

    def __init__(self, pod_set: PodSet, walk: RoomOverTime) -> None:
        self._needs = [(column, amount) for column, amount in enumerate(pod_set.amounts.tolist()) if amount]
        self._where = pod_set.where
        self._wanted = pod_set.copies
        self._cells = walk.cells
        self._counts: list[int] = copies_on(walk.room, pod_set).astype(int).tolist()
        self._total: int = sum(self._counts)

    @property
    def are_enough(self) -> bool:
        return self._total >= self._wanted

    def again(self, rows: set[int]) -> None:
        """Count anew the pods on rows that have changed."""
        for row in rows:
            if self._where[row]:
                most = min((self._cells[column][row] + EPSILON) // amount for column, amount in self._needs)
                count = int(min(max(most, 0), self._wanted))
                self._total += count - self._counts[row]
                self._counts[row] = count


def copies_on(free: Table, pod_set: PodSet) -> Vector:
    """The number of the pods that have room on each node; no more are counted than are wanted."""
    amounts, wanted, where = pod_set
    needed = np.flatnonzero(amounts)
    copies = ((free[needed] + EPSILON) // amounts[needed, None]).min(axis=0)
    counted: Vector = np.where(where, np.clip(copies, 0, wanted), 0)
    return counted


def places(free: Table, pod_sets: list[PodSet]) -> Table | None:
    """What the pods take of each node, filling the first nodes first; None if there is no room for all of them."""
    usage = np.zeros_like(free)
    for pod_set in pod_sets:
        copies = copies_on(free - usage, pod_set)
        before = np.cumsum(copies) - copies
        if before[-1] + copies[-1] < pod_set.copies:
            return None
        usage += pod_set.amounts[:, None] * np.clip(pod_set.copies - before, 0, copies)
    return usage
