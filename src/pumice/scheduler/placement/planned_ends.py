"""When running pods are expected to end, and what room they then give back.

The expected ends are kept in columns from cycle to cycle, so that a timetable need not look at every running pod. A pod that has outlived
its estimate is expected to end after one more minute, then two more, then four. How long a pod runs is its estimate, or with
`PlannedByHistory` the usual run of similar pods (`past_runs.py`), if that is less.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from heapq import merge
from itertools import islice
from math import inf, log2, nextafter
from operator import itemgetter
from typing import Any, Protocol, Self

import numpy as np

from pumice.scheduler.model import Cluster, Index, Job, Rows, Table, Task, Vector, status
from pumice.scheduler.placement.past_runs import PastRuns

_time = itemgetter(0)

FIRST_STEP_S = 60.0  #: the first extension of a pod that outlives its estimate; each further one is twice as long


class PlanningCycle(Protocol):
    """What is asked of a cycle."""

    now: float

    @property
    def cluster(self) -> Cluster: ...
    @property
    def moves(self) -> Mapping[Task, Any]: ...  # the tasks that it has moved


class PlannedEnds(Index):
    """The room that pods on nodes give back when they are expected to end, as columns with one entry, a slot, for each pod.

    The start time of a pod may become known only after it came to its node, so it is read when the index is asked for.
    """

    def begin(self) -> None:
        self._unread: dict[str, Task] = {}
        self._slots: dict[str, int] = {}
        self._free: list[int] = []  #: slots that are free again
        self._times: Vector = np.zeros(0)  #: by slot: when the pod is expected to end; inf if the slot is free
        self._rows: Rows = np.zeros(0, np.intp)
        self._amounts: Table = np.zeros((0, self.cluster.dimensions.width))  #: [slot, r]
        self._in_order: list[tuple[float, int, Task]] = []  #: by time: the same pods, with their slots
        self._by_clock: dict[str, Task] = {}  #: pods whose expected end depends on the present time
        self.departures = 0  #: how often a pod has left a node, or might have come to end at another time

    def change(self, row: int, task: Task, sign: int) -> None:
        if sign > 0:
            self._unread[task.uid] = task
            return
        self.departures += 1
        if self._unread.pop(task.uid, None) is None and self._by_clock.pop(task.uid, None) is None:
            slot = self._slots.pop(task.uid)
            del self._in_order[bisect_left(self._in_order, (float(self._times[slot]), slot))]
            self._times[slot] = inf
            self._free.append(slot)

    def reread(self, job: Job) -> None:
        for task in [task for task in job.tasks.values() if task.uid in self._slots or task.uid in self._by_clock]:
            self.change(task.node, task, -1)
            self.change(task.node, task, 1)

    def refresh(self) -> None:
        if not self._unread:
            return
        if (width := self.cluster.dimensions.width) > self._amounts.shape[1]:
            self._amounts = np.pad(self._amounts, ((0, 0), (0, width - self._amounts.shape[1])))
        for task in self._unread.values():
            began, run = _began(task), self.known_run(task)
            if began is None or run is None or task.status == status.RELEASING:
                self._by_clock[task.uid] = task
            else:
                slot = self._slots[task.uid] = self._free.pop() if self._free else len(self._slots)
                if slot == len(self._times):
                    self._grow()
                self._times[slot], self._rows[slot], self._amounts[slot] = began + run, task.node, task.template.taken
                insort(self._in_order, (began + run, slot, task))
        self._unread.clear()

    def _grow(self) -> None:
        more = max(64, len(self._times) // 2)
        self._times = np.pad(self._times, (0, more), constant_values=inf)
        self._rows, self._amounts = np.pad(self._rows, (0, more)), np.pad(self._amounts, ((0, more), (0, 0)))

    def agrees(self, recount: Self) -> bool:
        recount.refresh()
        return self._planned() == recount._planned() and self._by_clock.keys() == recount._by_clock.keys()

    def _planned(self) -> dict[str, tuple[float, int, list[float]]]:
        """By pod uid: when the pod is expected to end, its row, and what it gives back."""
        planned = self._in_order
        return {task.uid: (time, int(self._rows[slot]), self._amounts[slot].tolist()) for time, slot, task in planned}

    def to_come(self, cycle: PlanningCycle, unknown: float) -> tuple[Vector, Rows, Table]:
        """All expected changes: when, on which rows, and how much more room there is from then on [r, change], of all resources that have
        a name. `unknown`: the seconds that a pod without an estimate is expected to run."""
        now, named = cycle.now, len(self.cluster.dimensions.names)
        slots = (self._times < inf).nonzero()[0]
        times, rows, amounts = self._times[slots], self._rows[slots], self._amounts.take(slots, 0)[:, :named]
        for late in (times <= now).nonzero()[0].tolist():
            times[late] = _extended(float(times[late]), now)
        if others := self._others(cycle, unknown):
            times, rows = np.append(times, [end for end, _ in others]), np.append(rows, [task.node for _, task in others])
            amounts = np.concatenate([amounts, [task.template.taken[:named] for _, task in others]])
        return times, rows, amounts.T

    def _others(self, cycle: PlanningCycle, unknown: float) -> list[tuple[float, Task]]:
        """The pods that are expected to end at a time which depends on the present one."""
        evicted = (task for task in cycle.moves if task.evicted and task.node >= 0)  # indexes do not see them
        return [(end, task) for task in (*self._by_clock.values(), *evicted) if (end := self._end(task, cycle.now, unknown)) < inf]

    def one_by_one(self, cycle: PlanningCycle, unknown: float) -> Iterator[tuple[float, Task]]:
        """The pods that are expected to end, and when, the first one first."""
        late = bisect_left(self._in_order, (nextafter(cycle.now, inf),))
        soon = [(_extended(time, cycle.now), task) for time, _, task in self._in_order[:late]] + self._others(cycle, unknown)
        on_time = ((time, task) for time, _, task in islice(self._in_order, late, None))
        return merge(sorted(soon, key=_time), on_time, key=_time) if soon else on_time

    def known_run(self, task: Task) -> float | None:
        """The seconds that a pod is expected to run, if that is known."""
        return stated_run(task)

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
        return {*self._slots, *self._by_clock} == {*recount._slots, *recount._by_clock}


def stated_run(task: Task) -> float | None:
    """The seconds that a pod runs as it says itself: the estimate of its job, else its activeDeadlineSeconds, else None."""
    if task.job is not None and task.job.estimate is not None:
        return task.job.estimate
    return task.template.spec.active_deadline_seconds or None


def _began(task: Task) -> float | None:
    return task.placed_at if task.started is None else task.started


def _extended(end: float, now: float) -> float:
    """The expected end if it is still to come; else the end of the present extension."""
    if now < end:
        return end
    steps = 1 + int(log2((now - end) / FIRST_STEP_S + 1))
    return end + FIRST_STEP_S * (2.0**steps - 1)
