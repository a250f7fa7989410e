"""The timetable of a cluster of one node, as an array: the room at each instant at which it changes.

A log of batch jobs is often played on a single node that has all processors; then many jobs wait, and as many runs are expected to end. A
promise is an addition to a part of the array, and the earliest instant for pods is found by a few passes over it. The promises are those of
`Timetable`, which walks from instant to instant.
"""

from collections.abc import Sequence
from math import inf

import numpy as np

from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import EPSILON, Table
from pumice.scheduler.placement.room_over_time import Timetable, places, promise_of
from pumice.scheduler.placement.timetable import PlannedEnds, PodSet, Promise, Usage


class OneNode(Timetable):
    def __init__(self, session: Session, ends: PlannedEnds, unknown: float, promised: Sequence[tuple[Promise, float]] = ()) -> None:
        now, idle = session.now, session.nodes.idle[:, 0]
        changes: list[tuple[float, float, Usage]] = [(change.time, 1.0, change.usage) for change in ends.to_come(session, unknown)]
        for promise, length in promised:
            changes.append((promise.start, -1.0, promise.usage))
            if promise.start + length < inf:
                changes.append((promise.start + length, 1.0, promise.usage))
        self._times = np.array(sorted({now, *(time for time, _, _ in changes)}))
        self._room: Table = np.zeros((len(idle), len(self._times)))  #: [r, instant], from each instant on
        columns = [column.data for column in self._room]
        for place, (_, sign, usage) in zip(self._times.searchsorted([time for time, _, _ in changes]).tolist(), changes, strict=True):
            for column, _, amount in usage:
                columns[column][place] += sign * amount
        np.cumsum(self._room, axis=1, out=self._room)
        self._room += idle[:, None]

    def change(self, promise: Promise, length: float, sign: int) -> None:
        first = self._place(promise.start)
        after = self._place(promise.start + length) if promise.start + length < inf else len(self._times)
        for column, _, amount in promise.usage:
            self._room[column, first:after] += sign * amount

    def _place(self, time: float) -> int:
        """The place of an instant, which is put in if it is not there."""
        place = int(self._times.searchsorted(time))
        if place == len(self._times) or self._times[place] != time:
            self._times = np.insert(self._times, place, time)
            self._room = np.insert(self._room, place, self._room[:, place - 1], axis=1)
        return place

    def free_now(self, length: float) -> Table:
        return self._least_from(0, length)

    def _least_from(self, place: int, length: float) -> Table:
        """What is free from the instant at this place on for the whole length of time."""
        after = max(int(self._times.searchsorted(self._times[place] + length)), place + 1)
        least: Table = self._room[:, place:after].min(axis=1, keepdims=True)
        return least

    def earliest(self, pod_sets: list[PodSet], length: float) -> Promise | None:
        if len(pod_sets) != 1:
            return self._earliest_of_several(pod_sets, length)
        (wanted,) = pod_sets
        needs = [(column, amount) for column, amount in enumerate(wanted.amounts.tolist()) if amount]
        fits = np.logical_and.reduce([(self._room[column] + EPSILON) // amount >= wanted.copies for column, amount in needs])
        full, times = np.flatnonzero(~fits), np.append(self._times, inf)
        firsts = np.concatenate(([0], full + 1))  # the places at which a time with room may begin
        afters = np.append(full, len(fits))  # the first place after each
        enough = (afters > firsts) & (times[afters] >= times[firsts] + length)
        chosen = int(enough.argmax())
        if not enough[chosen] or not wanted.where[0]:
            return None
        return Promise(float(times[firsts[chosen]]), tuple((column, 0, amount * wanted.copies) for column, amount in needs))

    def _earliest_of_several(self, pod_sets: list[PodSet], length: float) -> Promise | None:
        for place, time in enumerate(self._times.tolist()):
            usage = places(self._least_from(place, length), pod_sets)
            if usage is not None:
                return promise_of(time, usage)
        return None
