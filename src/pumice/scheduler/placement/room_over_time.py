"""The free room over time, as arrays: of each node, the room from each instant on at which it changes.

The entries of all nodes stand one after the other. A promise is an addition to some of them, and the earliest instant for pods is found by
a few passes over all. So it costs little even if thousands of pods run and thousands of jobs are promised room.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import chain, groupby
from math import inf
from operator import itemgetter

import numpy as np

from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import EPSILON, Mask, Table, Vector
from pumice.scheduler.placement.timetable import PlannedEnds, PodSet, Promise

_row = itemgetter(1)  #: of a part of a usage


class Timetable:
    """Free room over time, node by node: what is idle now, and how that changes."""

    def __init__(self, session: Session, ends: PlannedEnds, unknown: float, promised: Sequence[tuple[Promise, float]] = ()) -> None:
        """`unknown`: the seconds that a pod without an estimate is expected to run. `promised`: promises with the lengths of their runs."""
        idle = session.nodes.idle
        self._now, self._count = session.now, idle.shape[1]
        self._less = sorted(promise.start for promise, _ in promised)  #: the instants at which room is taken
        self._free: dict[int, Table] = {}  #: the room free from now on, by the number of times that room is taken meanwhile
        changes = [(change.time, *part) for change in ends.to_come(session, unknown) for part in change.usage]
        for promise, length in promised:
            changes += [(promise.start, column, row, -amount) for column, row, amount in promise.usage]
            if promise.start + length < inf:
                changes += [(promise.start + length, *part) for part in promise.usage]
        times, columns, rows, amounts = np.fromiter(chain.from_iterable(changes), float).reshape(-1, 4).T
        times, rows = np.append(np.full(self._count, self._now), times), np.append(np.arange(self._count), rows.astype(np.intp))
        order = np.lexsort((times, rows))
        is_new = np.append(True, (np.diff(rows[order]) > 0) | (np.diff(times[order]) != 0))[: len(order)]
        entries = np.empty(len(order), np.intp)
        entries[order] = np.cumsum(is_new) - 1
        self._times, self._rows = times[order[is_new]], rows[order[is_new]]
        self._room: Table = np.zeros((len(idle), len(self._times)))  #: [r, entry], from the entry's instant on
        self._room[:, entries[: self._count]] = idle
        np.add.at(self._room, (columns.astype(np.intp), entries[self._count :]), amounts)
        self._index()
        for first, after in zip(self._firsts.tolist(), self._firsts[1:].tolist(), strict=False):
            np.cumsum(self._room[:, first:after], axis=1, out=self._room[:, first:after])

    def _index(self) -> None:
        self._firsts = self._rows.searchsorted(np.arange(self._count + 1))  #: by row: its first entry
        self._goes_on: Mask = self._times[1:] > self._now  #: by entry: whether the next one is of the same node
        self._until: Vector = np.append(np.where(self._goes_on, self._times[1:], inf), inf)  #: by entry: when the next one follows

    def change(self, promise: Promise, length: float, sign: int) -> None:
        """Take the promised room (-1), or give it back (+1)."""
        if sign < 0:
            insort(self._less, promise.start)
        self._free.clear()
        for row, parts in groupby(promise.usage, _row):
            first = self._entry(row, promise.start)
            after = self._entry(row, promise.start + length) if promise.start + length < inf else self._firsts[row + 1]
            for column, _, amount in parts:
                self._room[column, first:after] += sign * amount

    def _entry(self, row: int, time: float) -> int:
        """The entry of a node and an instant, which is put in if it is not there."""
        first, after = int(self._firsts[row]), int(self._firsts[row + 1])
        entry = first + int(self._times[first:after].searchsorted(time))
        if entry == after or self._times[entry] != time:
            self._times, self._rows, self._room = (
                np.concatenate([old[..., :entry], old[..., entry - 1 : entry], old[..., entry:]], axis=-1)
                for old in (self._times, self._rows, self._room)
            )
            self._times[entry] = time
            self._index()
        return entry

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
        alone = [self._earliest_of(pod_set, length) for pod_set in pod_sets]
        if len(alone) == 1:
            return alone[0]
        starts = [promise.start for promise in alone if promise is not None]
        if len(starts) < len(alone):
            return None
        for time in np.unique(self._times[self._times >= max(starts, default=self._now)]).tolist():
            usage = places(self._least(time, length), pod_sets)
            if usage is not None:
                rows, columns = np.nonzero(usage.T)
                return Promise(time, tuple(zip(columns.tolist(), rows.tolist(), usage[columns, rows].tolist(), strict=True)))
        return None

    def _earliest_of(self, pods: PodSet, length: float) -> Promise | None:
        """The promise for equal pods. It comes from spans: times in which a node has room for one more of them, long enough to run."""
        needs = [(column, amount) for column, amount in enumerate(pods.amounts.tolist()) if amount]
        fits = pods.where[self._rows]
        begins, ends, rows = [], [], []
        for copies in range(1, pods.copies + 1):
            for column, amount in needs:
                fits &= self._room[column] + EPSILON >= copies * amount
            goes_on = fits[1:] & fits[:-1] & self._goes_on
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
                return Promise(float(self._times[entry]), tuple((column, int(self._rows[entry]), amount) for column, amount in needs))
            begins.append(self._times[firsts])
            ends.append(self._until[lasts])
            rows.append(self._rows[firsts])
        if not begins:
            return None
        begin, end, row = np.concatenate(begins), np.concatenate(ends), np.concatenate(rows)
        starts = np.sort(begin)
        there = starts.searchsorted(starts, "right") - np.sort(end).searchsorted(starts + length)  # spans that are long enough from then on
        possible = np.flatnonzero(there >= pods.copies)
        if not len(possible):
            return None
        start = float(starts[possible[0]])
        room = np.bincount(row[(begin <= start) & (end >= start + length)])
        counts = np.clip(pods.copies - (np.cumsum(room) - room), 0, room)
        taken = [(row, int(counts[row])) for row in np.flatnonzero(counts).tolist()]
        return Promise(start, tuple((column, row, amount * count) for row, count in taken for column, amount in needs))


def places(free: Table, pod_sets: list[PodSet]) -> Table | None:
    """What the pods take of each node, filling the first nodes first; None if there is no room for all of them."""
    usage = np.zeros_like(free)
    for amounts, wanted, where in pod_sets:
        needed = np.flatnonzero(amounts)
        room = ((free[needed] - usage[needed] + EPSILON) // amounts[needed, None]).min(axis=0)
        copies = np.where(where, np.clip(room, 0, wanted), 0)
        before = np.cumsum(copies) - copies
        if before[-1] + copies[-1] < wanted:
            return None
        usage += amounts[:, None] * np.clip(wanted - before, 0, copies)
    return usage
