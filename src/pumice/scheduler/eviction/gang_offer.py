"""The bundles of tasks that may be evicted from one domain for one gang, in order. A bundle is known by its place in this order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from pumice.scheduler.model import Mask, NDArray, Table, Task, Vector

Numbers = NDArray[np.intp]


class Columns(NamedTuple):
    """What counts of each task: arrays with one entry per task."""

    rows: Numbers
    template: Numbers  #: the number of the task's template
    importance: Vector  #: the task's priority, or that of its job if that is greater
    started: Vector  #: infinite for a task without a start time

    def at(self, entries: Numbers) -> Columns:
        return Columns(self.rows[entries], self.template[entries], self.importance[entries], self.started[entries])


class Ranks(NamedTuple):
    """The first keys of the order of bundles. Bundles with equal `whole` and `place_of_job` are ordered by what they give and cost."""

    whole: Mask  #: whether the bundle breaks its gang
    place_of_job: Numbers
    job: Numbers  #: the number of the bundle's job

    def at(self, places: Numbers) -> Ranks:
        return Ranks(self.whole[places], self.place_of_job[places], self.job[places])


class Offer:
    """Columns with one entry per task, bundle after bundle.

    The tasks that a gang has above its minimum are of no use without it: where a Whole bundle goes, the Safe one of its job goes too.
    """

    def __init__(self, tasks: list[Task], columns: Columns, place: Numbers, requests: Table, ranks: Ranks) -> None:
        """`place`: of each task, the place of its bundle. `requests`: [r, template], by the numbers of templates."""
        self.tasks = tasks
        self.rows = columns.rows
        self.place = place
        self.whole = ranks.whole  #: of each bundle
        self._columns = columns
        self._requests = requests
        self._ranks = ranks
        safe = np.full(int(ranks.job.max(initial=0)) + 1, -1)
        safe[ranks.job[~ranks.whole]] = np.flatnonzero(~ranks.whole)
        self.safe = np.where(ranks.whole, safe[ranks.job], -1)  #: of each Whole bundle, the place of its job's Safe bundle, else -1
        self._begins = np.searchsorted(place, np.arange(len(ranks.whole) + 1))

    def __len__(self) -> int:
        return len(self.whole)

    def amounts(self, column: int, entries: Numbers | slice = slice(None)) -> Vector:
        """The amounts of one resource that tasks request."""
        amounts: Vector = self._requests[column, self._columns.template[entries]]
        return amounts

    def request(self, entry: int) -> Vector:
        request: Vector = self._requests[:, self._columns.template[entry]]
        return request

    def entries(self, place: int) -> range:
        """The entries of a bundle's tasks."""
        return range(int(self._begins[place]), int(self._begins[place + 1]))

    def weights(self, now: float) -> Table:
        """Three sums for each bundle: the number of its tasks, their importance, and the seconds that they have run."""
        ages = now - np.minimum(self._columns.started, now)
        return np.array([np.bincount(self.place, values) for values in (np.ones(len(self.tasks)), self._columns.importance, ages)])

    def hangs_together(self, places: Iterable[int]) -> bool:
        """Whether no Whole bundle goes without the Safe one of its job."""
        gone = set(places)
        return all(safe < 0 or safe in gone for safe in self.safe[list(gone)].tolist())

    def bundle(self, place: int) -> list[Task]:
        return self.tasks[self._begins[place] : self._begins[place + 1]]

    def alike(self, place: int) -> int:
        """The place after the last bundle with the same rank (`whole` and `place_of_job`) as this one."""
        same = (self._ranks.whole == self._ranks.whole[place]) & (self._ranks.place_of_job == self._ranks.place_of_job[place])
        return int(np.flatnonzero(same)[-1]) + 1

    def approved(self, tasks: Iterable[Task], *, whole: bool) -> Offer:
        """The offer that is left when only these tasks may go. A Safe bundle may shrink; a Whole one goes in full or not at all (never
        without `whole`)."""
        if tasks == self.tasks and whole:
            return self
        allowed = {task.uid for task in tasks}
        stays = np.array([task.uid not in allowed for task in self.tasks], bool)
        spoilt = self.whole & (np.bincount(self.place[stays], minlength=len(self)) > 0) if whole else self.whole
        left = np.flatnonzero(~stays & ~spoilt[self.place])
        places, place = np.unique(self.place[left], return_inverse=True)
        tasks = [self.tasks[entry] for entry in left.tolist()]
        return Offer(tasks, self._columns.at(left), place, self._requests, self._ranks.at(places))


def importance(task: Task) -> int:
    return max(task.pod_priority, task.job.priority if task.job is not None else 0)
