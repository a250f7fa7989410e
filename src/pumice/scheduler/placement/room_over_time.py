"""The free room over time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from math import inf

import numpy as np

from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import EPSILON, Table, Vector
from pumice.scheduler.model.nodes import cells
from pumice.scheduler.placement.timetable import PlannedEnds, PodSet, Promise, RoomChange, Usage


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
