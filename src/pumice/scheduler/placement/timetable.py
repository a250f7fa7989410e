"""The room on all nodes from now on, as far as it is known: running pods are expected to end, and waiting jobs are promised room.

It is kept as arrays: of each node, the room from each instant on at which it changes. The entries of all nodes stand one after the other.
A promise is an addition to some of them, and the earliest instant for pods is found by a few passes over all. So it costs little even if
thousands of pods run and thousands of jobs are promised room.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from math import inf, nextafter
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from pumice.scheduler.model import EPSILON, Mask, Rows, Table, Vector
from pumice.scheduler.placement.planned_ends import PlannedEnds, PlanningCycle

Usage = tuple[tuple[int, int, float], ...]  #: column, row and amount of each part

_row = itemgetter(1)  #: of a part of a usage


class PodSet:
    """Equal pods that must all find room."""

    def __init__(self, amounts: Vector, copies: int, where: Mask) -> None:
        self.amounts = amounts  #: what one pod requests
        self.copies = copies
        self.where = where  #: nodes that may take them
        #: the resources that one of them requests, with the amounts
        self.needs = [(column, amount) for column, amount in enumerate(amounts.tolist()) if amount]


class Promise(NamedTuple):
    """Room for a job from an instant on."""

    start: float
    usage: Usage

    def is_of_one(self, pod_sets: list[PodSet]) -> bool:
        """Whether it is of one pod, as these are, on a node that may take it."""
        if len(pod_sets) != 1 or pod_sets[0].copies != 1 or not self.usage:
            return False
        (pods,), row = pod_sets, self.usage[0][1]
        return bool(pods.where[row]) and self.usage == tuple([(column, row, amount) for column, amount in pods.needs])


class KeptPromises:
    """Promises to jobs of one pod, as columns. None of a job stands for one that is always looked at."""

    def __init__(self, promises: Sequence[Promise | None], width: int) -> None:
        #: until when other room would be better: until the start, and if it is not on the first node, at the start, too
        self.until = np.zeros(len(promises))
        self.amounts: Table = np.zeros((width, len(promises)))
        for number, promise in enumerate(promises):
            if promise is not None:
                self.until[number] = promise.start if promise.usage[0][1] == 0 else nextafter(promise.start, inf)
                for column, _, amount in promise.usage:
                    self.amounts[column, number] = amount


class Timetable:
    """Free room over time, node by node: what is idle now, and how that changes."""

    def __init__(self, cycle: PlanningCycle, ends: PlannedEnds, unknown: float, promised: Sequence[tuple[Promise, float]] = ()) -> None:
        """`unknown`: the seconds that a pod without an estimate is expected to run. `promised`: promises with the lengths of their runs."""
        idle = cycle.cluster.nodes.idle[: len(cycle.cluster.dimensions.names)]  # all that have a name
        self._now, self._count = cycle.now, idle.shape[1]
        self._less = sorted(promise.start for promise, _ in promised)  #: the instants at which room is taken
        self._free: dict[int, Table] = {}  #: the room free from now on, by the number of times that room is taken meanwhile
        at_first = np.full(self._count, self._now), np.arange(self._count), np.zeros_like(idle)
        parts = zip(at_first, ends.to_come(cycle, unknown), _changes(promised, len(idle)), strict=True)
        times, rows, amounts = (np.concatenate(each, axis=-1) for each in parts)
        order = np.lexsort((times, rows))
        times, rows = times[order], rows[order]
        is_last = np.ones(len(order), bool)  # of the changes at one instant
        is_last[:-1] = (rows[1:] != rows[:-1]) | (times[1:] != times[:-1])
        last = is_last.nonzero()[0]
        self._times, self._rows = times[last], rows[last]
        self._firsts = self._rows.searchsorted(np.arange(self._count + 1))  #: by row: its first entry
        self._until: Vector = np.full_like(self._times, inf)  #: by entry: when the next one of its node follows
        np.copyto(self._until[:-1], self._times[1:], where=self._times[1:] > self._now)
        sums = amounts.take(order, 1).astype(np.int64).cumsum(axis=1).take(last, 1)  # over all nodes, one after the other
        before = sums.take(self._firsts[:-1] - 1, 1)
        before[:, :1] = 0
        #: [r, entry], from the entry's instant on
        self._room: Table = idle.take(self._rows, 1) + (sums - before.take(self._rows, 1))

    def change(self, promise: Promise, length: float, sign: int) -> None:
        """Take the promised room (-1), or give it back (+1)."""
        if sign < 0:
            insort(self._less, promise.start)
        self._add(self._parts(promise, length), sign)

    def better(self, own: Promise, pod_sets: list[PodSet], length: float) -> Promise | None:
        """Give a promise back, and find the earliest one for its pods. If that is the same, everything is as before."""
        parts = self._parts(own, length)
        before, self._room = self._room, self._room.copy()
        self._add(parts, 1)
        found = self.earliest(pod_sets, length)
        if found == own:
            self._room = before
        return found

    def _add(self, parts: list[tuple[slice, int, float]], sign: int) -> None:
        self._free.clear()
        for during, column, amount in parts:
            self._room[column, during] += sign * amount

    def _parts(self, promise: Promise, length: float) -> list[tuple[slice, int, float]]:
        """The entries at which a promise takes room, with resource and amount. As its rows are in order, entries stay where they are."""
        spans = {row: self._entries(row, promise.start, length) for row in dict.fromkeys(map(_row, promise.usage))}
        return [(spans[row], column, amount) for column, row, amount in promise.usage]

    def _entries(self, row: int, start: float, length: float) -> slice:
        """The entries of a node from an instant on for a length of time."""
        first = self._entry(row, start)
        return slice(first, self._entry(row, start + length) if start + length < inf else int(self._firsts[row + 1]))

    def _entry(self, row: int, time: float) -> int:
        """The entry of a node and an instant, which is put in if it is not there."""
        after = int(self._firsts[row + 1])
        entry = bisect_left(self._times, time, int(self._firsts[row]), after)
        if entry == after or self._times[entry] != time:
            self._times, self._rows, self._until, self._room = (
                np.concatenate([old[..., :entry], old[..., entry - 1 :]], axis=-1)
                for old in (self._times, self._rows, self._until, self._room)
            )
            self._times[entry] = self._until[entry - 1] = time
            self._firsts[row + 1 :] += 1
        return entry

    @property
    def has_room(self) -> bool:
        """Whether no node ever lacks room for what is expected and promised."""
        return bool(self._room.min() >= -EPSILON)

    def free_now(self, length: float) -> Table:
        """The room that is free from now on for the whole length of time."""
        drops = bisect_left(self._less, self._now + length)
        if drops not in self._free:
            self._free[drops] = self._least(self._now, length)
        return self._free[drops].copy()

    def _least(self, start: float, length: float) -> Table:
        """The room that is free on each node from an instant on for the whole length of time."""
        during = ((self._times <= start) | (self._times < start + length)) & (self._until > start)
        least: Table = np.minimum.reduceat(np.where(during, self._room, inf), self._firsts[:-1], axis=1)
        return least

    def earliest(self, pod_sets: list[PodSet], length: float) -> Promise | None:
        """A promise from the first instant at which there is room for all pods for that length of time; None if there never is."""
        if len(pod_sets) == 1:
            return self._earliest_of(pod_sets[0], length)
        alone = [self._earliest_of(pod_set, length) for pod_set in pod_sets]
        starts = [promise.start for promise in alone if promise is not None]
        if len(starts) < len(alone):
            return None
        for time in np.unique(self._times[self._times >= max(starts, default=self._now)]).tolist():
            usage = places(self._least(time, length), pod_sets)
            if usage is not None:
                rows, columns = np.nonzero(usage.T)
                return Promise(time, tuple(zip(columns.tolist(), rows.tolist(), usage[columns, rows].tolist(), strict=True)))
        return None

    def surely_earliest(self, kept: KeptPromises) -> Mask:
        """Which of these promises `earliest` would surely find again if their room were given back: at no instant before has any node room,
        nor at the same instant one that comes first. None if some node ever lacks room."""
        if not self.has_room:
            return np.zeros(len(kept.until), bool)
        order = self._times.argsort()
        times, most = self._times[order], np.maximum.accumulate(self._room.take(order, 1), axis=1)  # by resource, on any node until then
        found: Mask = np.logical_or.reduce(most.take(times.searchsorted(kept.until) - 1, 1) + EPSILON < kept.amounts)
        return found

    def _earliest_of(self, pods: PodSet, length: float) -> Promise | None:
        """The promise for equal pods. It comes from spans: times in which a node has room for one more of them, long enough to run."""
        needs = pods.needs
        fits, has_next = pods.where[self._rows], self._until[:-1] < inf
        begins, ends, rows = [], [], []
        for copies in range(1, pods.copies + 1):
            for column, amount in needs:
                fits &= self._room[column] >= copies * amount - EPSILON
            goes_on = fits[1:] & fits[:-1] & has_next
            is_first, is_last = fits.copy(), fits.copy()
            is_first[1:] ^= goes_on
            is_last[:-1] ^= goes_on
            firsts, lasts = is_first.nonzero()[0], is_last.nonzero()[0]
            enough = self._until[lasts] >= self._times[firsts] + length
            firsts, lasts = firsts[enough], lasts[enough]
            if not len(firsts):
                break
            if pods.copies == 1:
                entry = firsts[self._times[firsts].argmin()]
                node = int(self._rows[entry])
                return Promise(float(self._times[entry]), tuple([(column, node, amount) for column, amount in needs]))
            begins.append(self._times[firsts])
            ends.append(self._until[lasts])
            rows.append(self._rows[firsts])
        if not begins:
            return None
        begin, end, row = np.concatenate(begins), np.concatenate(ends), np.concatenate(rows)
        starts = np.sort(begin)
        over = np.sort(end).searchsorted(starts + length, "left" if length else "right")  # who runs for no time needs room at its instant
        there = starts.searchsorted(starts, "right") - over  # spans that are long enough from then on
        possible = np.flatnonzero(there >= pods.copies)
        if not len(possible):
            return None
        start = float(starts[possible[0]])
        most = np.bincount(row[(begin <= start) & (end >= start + length) & (end > start)])
        counts = np.clip(pods.copies - (np.cumsum(most) - most), 0, most)
        taken = [(row, int(counts[row])) for row in np.flatnonzero(counts).tolist()]
        return Promise(start, tuple((column, row, amount * count) for row, count in taken for column, amount in needs))


def _changes(promised: Sequence[tuple[Promise, float]], width: int) -> tuple[Vector, Rows, Table]:
    """What promises with the lengths of their runs take and give back: when, on which rows, and how much [r, change]."""
    parts = [(promise.start, promise.start + length, *part) for promise, length in promised for part in promise.usage]
    begins, ends, columns, rows, amounts = np.array(parts, float).reshape(-1, 5).T
    ending = (ends < inf).nonzero()[0]
    table = np.zeros((width, len(parts)))
    table[columns.astype(np.intp), np.arange(len(parts))] = amounts
    row = rows.astype(np.intp)
    times, changes = np.concatenate([begins, ends[ending]]), np.concatenate([-table, table.take(ending, 1)], axis=1)
    return times, np.concatenate([row, row[ending]]), changes


def places(free: Table, pod_sets: list[PodSet]) -> Table | None:
    """What the pods take of each node, filling the first nodes first; None if there is no room for all of them."""
    usage = np.zeros_like(free)
    for pods in pod_sets:
        amounts, wanted = pods.amounts[: len(free)], pods.copies
        needed = np.flatnonzero(amounts)
        room = ((free[needed] - usage[needed] + EPSILON) // amounts[needed, None]).min(axis=0)
        copies = np.where(pods.where, np.clip(room, 0, wanted), 0)
        before = np.cumsum(copies) - copies
        if before[-1] + copies[-1] < wanted:
            return None
        usage += amounts[:, None] * np.clip(wanted - before, 0, copies)
    return usage
