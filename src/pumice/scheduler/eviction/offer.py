"""The bundles that may go for one gang from one domain, in the order in which they go: a bundle is known by its place in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pumice.scheduler.model.nodes import Table
from pumice.scheduler.model.resources import Mask, Vector
from pumice.scheduler.model.task import Task

Numbers = NDArray[np.intp]


class Columns(NamedTuple):
    """Of each task, what is counted of it."""

    rows: Numbers
    template: Numbers  #: by its number
    importance: Vector  #: its priority, or that of its job if it is greater
    started: Vector  #: infinite for one that has no start

    def at(self, entries: Numbers) -> Columns:
        return Columns(self.rows[entries], self.template[entries], self.importance[entries], self.started[entries])


class Ranks(NamedTuple):
    """Of each bundle, what comes first in the order. Bundles that share both differ in what they give and cost alone."""

    whole: Mask  #: it breaks its gang
    standing: Numbers
    job: Numbers  #: whose it is

    def at(self, places: Numbers) -> Ranks:
        return Ranks(self.whole[places], self.standing[places], self.job[places])


class Offer:
    """Columns with one entry a task, bundle after bundle.

    What a gang has above its minimum is of no use without it: where a Whole bundle goes, so does the Safe one of its job.
    """

    def __init__(self, tasks: list[Task], columns: Columns, place: Numbers, requests: Table, ranks: Ranks) -> None:
        """`place`: of each task's bundle. `requests`: by the numbers of templates."""
        self.tasks = tasks
        self.rows = columns.rows
        self.place = place
        self.whole = ranks.whole  #: of each bundle
        self._columns = columns
        self._requests = requests
        self._ranks = ranks
        safe = np.full(int(ranks.job.max(initial=0)) + 1, -1)
        safe[ranks.job[~ranks.whole]] = np.flatnonzero(~ranks.whole)
        self.safe = np.where(ranks.whole, safe[ranks.job], -1)  #: of each Whole bundle, the place of its job's Safe one, else -1
        self._begins = np.searchsorted(place, np.arange(len(ranks.whole) + 1))

    def __len__(self) -> int:
        return len(self.whole)

    def amounts(self, column: int, entries: Numbers | slice = slice(None)) -> Vector:
        """What tasks ask for of one resource."""
        amounts: Vector = self._requests[column, self._columns.template[entries]]
        return amounts

    def request(self, entry: int) -> Vector:
        request: Vector = self._requests[:, self._columns.template[entry]]
        return request

    def entries(self, place: int) -> range:
        """The tasks of a bundle, by their entries."""
        return range(int(self._begins[place]), int(self._begins[place + 1]))

    def weights(self, now: float) -> Table:
        """Of each bundle, how many tasks it has, their importance, and for how long they have run, all together."""
        ages = now - np.minimum(self._columns.started, now)
        return np.array([np.bincount(self.place, values) for values in (np.ones(len(self.tasks)), self._columns.importance, ages)])

    def hangs_together(self, places: Iterable[int]) -> bool:
        """Whether no Whole bundle goes without the Safe one of its job."""
        gone = set(places)
        return all(safe < 0 or safe in gone for safe in self.safe[list(gone)].tolist())

    def bundle(self, place: int) -> list[Task]:
        return self.tasks[self._begins[place] : self._begins[place + 1]]

    def alike(self, place: int) -> int:
        """The place after the last bundle that ranks as this one does."""
        same = (self._ranks.whole == self._ranks.whole[place]) & (self._ranks.standing == self._ranks.standing[place])
        return int(np.flatnonzero(same)[-1]) + 1

    def approved(self, tasks: Iterable[Task], *, whole: bool) -> Offer:
        """What is left when only these tasks may go: less of a Safe bundle, of a Whole one all or nothing (nothing without `whole`)."""
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
    """Of a pod, or of its job if that is greater."""
    return max(task.pod_priority, task.job.priority if task.job is not None else 0)
