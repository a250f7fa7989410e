"""What the past tells of times to come: how long jobs like this one ran, and which jobs came of late.

How long a job runs is told, in this order, by jobs of its owner with its name and shape that have ended, by those with its name, by all of
its owner, by all jobs, by its annotation, by a limit. Users ask for more than they need, so annotations and limits only bound what history
tells, and tell by themselves only where there is none.

A `LifeTable` is what actuaries make: of the jobs that ended of late most are short, since short jobs end first. So those that still run
count too, for as long as they have run; and where only the latest ends are known, everybody counts from the first of them on: Kaplan and
Meier's estimate, with delayed entry.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from itertools import takewhile
from math import inf
from typing import NamedTuple, TypeAlias

import numpy as np

from pumice.scheduler.model.resources import NDArray
from pumice.scheduler.placement.timetable import ENOUGH, LATEST, without_numbers
from pumice.simulate.work import Work, object_name, total_of

LEAST_S = 600.0  #: a job of which nothing is known has run, or is taken to have run, at least so long
LONGER = 1.0  #: so many more, who outlive everybody, stand for what has not been seen

#: a row a job: the ages from which and until which it was watched, whether it ended then, its weight
Watched: TypeAlias = NDArray[np.float64]


class LifeTable(NamedTuple):
    ages: list[float]  #: at which some ended, in order
    gone: list[float]  #: which part had ended by then

    @classmethod
    def of(cls, watched: Watched) -> LifeTable:
        since, age, ended, weight = watched[watched[:, 1].argsort(kind="stable")].T
        ages, ends = age[ended > 0], weight[ended > 0]
        there = _sum_below(since, weight, ages) - _sum_below(age, weight, ages)
        told = np.cumsum(ends) - ends  # of equal ages one goes after the other
        there -= told - told[np.searchsorted(ages, ages)]
        left = np.cumprod(1.0 - ends / (np.maximum(there, ends) + LONGER))
        return cls(ages.tolist(), (1.0 - left).tolist())

    def draw(self, share: float, elapsed: float) -> float:
        """What this share of those who have run so long do not exceed. Half of those who outlive everybody live twice as long."""
        passed = bisect_right(self.ages, elapsed)
        before = self.gone[passed - 1] if passed else 0.0
        goal = 1.0 - (1.0 - before) * (1.0 - share)
        place = bisect_left(self.gone, goal, passed)
        if place < len(self.ages):
            return self.ages[place]
        last = self.gone[-1] if self.gone else 0.0
        return max(elapsed, LEAST_S, *self.ages[-1:]) * (1.0 - last) / (1.0 - goal)


def _sum_below(values: NDArray[np.float64], weights: NDArray[np.float64], bounds: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights of the values below each bound."""
    order = values.argsort(kind="stable")
    sums: NDArray[np.float64] = np.concatenate(([0.0], np.cumsum(weights[order])))[np.searchsorted(values[order], bounds)]
    return sums


WIDER = 5.0  #: so many jobs of a kind those of a wider one stand for
WINDOW_S = 86_400.0  #: jobs that came within this time come again

HISTORY = ("history of its owner, name and shape", "history of its owner and name", "history of its owner", "history of everybody")
ANNOTATION, LIMIT, NOTHING = "its annotation", "its limit", "nothing"


class Guess(NamedTuple):
    """How long a job runs from its start on, as a distribution."""

    source: str
    table: LifeTable
    elapsed: float = 0.0  #: it has run so long already
    most: float = inf  #: it does not run longer, unless it has already

    def run(self, share: float) -> float:
        """What this share of such jobs do not exceed."""
        found = self.table.draw(share, self.elapsed)
        return min(found, self.most) if self.most > self.elapsed else found


UNKNOWN = LifeTable([], [])
SERVICE = Guess("nothing: it is a service", LifeTable([inf], [1.0]))  #: of ReplicaSets and their like: it stays


class Past:
    """When jobs ran that have ended, by what jobs have in common, and the arrivals of late. It is to be told of both as they happen."""

    def __init__(self) -> None:
        self._came: deque[Work] = deque()
        self._runs: dict[Hashable, deque[tuple[float, float]]] = {}

    def came(self, work: Work) -> None:
        self._came.append(work)
        while self._came[0].submit < work.submit - WINDOW_S:
            self._came.popleft()

    def ended(self, work: Work, run: float, at: float) -> None:
        for kind in kinds_of(work):
            self._runs.setdefault(kind, deque(maxlen=LATEST)).append((at - run, run))

    def recent(self, now: float) -> list[Work]:
        """The jobs that came within the window."""
        return list(takewhile(lambda work: work.submit > now - WINDOW_S, reversed(self._came)))[::-1]

    def runs(self, kind: Hashable) -> Sequence[tuple[float, float]]:
        """Start and run time of the latest that have ended."""
        return self._runs.get(kind, ())


class RunTimes:
    """How long jobs run, by what is known at an instant: the past, and since when those run that do."""

    def __init__(self, past: Past, now: float, running: Iterable[tuple[Work, float]] = ()) -> None:
        self._past = past
        self._now = now
        self._running: dict[Hashable, list[float]] = {}
        for work, since in running:
            for kind in kinds_of(work):
                self._running.setdefault(kind, []).append(since)
        self._watched: dict[Hashable, Watched] = {}
        self._tables: dict[Hashable, LifeTable] = {}

    def guess(self, work: Work, elapsed: float = 0.0) -> Guess:
        deadline = next((float(at) for role in work.roles if (at := role.spec.active_deadline_seconds)), inf)
        told = inf if work.estimate is None else work.estimate
        kinds, most = kinds_of(work), min(told, deadline)
        for source, kind in zip(HISTORY, kinds, strict=True):
            if len(self._past.runs(kind)) >= ENOUGH:
                return Guess(source, self._table(kinds), elapsed, most)
        if most < inf:
            return Guess(ANNOTATION if told <= deadline else LIMIT, LifeTable([most], [0.5]), elapsed, most)
        return Guess(NOTHING, UNKNOWN, elapsed)

    def _table(self, kinds: tuple[Hashable, ...]) -> LifeTable:
        """Of the narrowest kind that there is; all jobs of each wider one count together as some of it."""
        if kinds[0] not in self._tables:
            narrowest, *wider = (kind for kind in kinds if len(self._watch(kind)))
            parts = [self._watch(narrowest)]
            parts += [self._watch(kind) * (1, 1, 1, min(1.0, WIDER / max(1, len(self._past.runs(kind))))) for kind in wider]
            self._tables[kinds[0]] = LifeTable.of(np.concatenate(parts))
        return self._tables[kinds[0]]

    def _watch(self, kind: Hashable) -> Watched:
        """Those that have ended, and those that run: of many one stands for some."""
        if kind not in self._watched:
            ended, running = self._past.runs(kind), sorted(self._running.get(kind, ()))
            since = sum(ended[0]) if len(ended) == LATEST else -inf  # from here on all ends are known
            each = -(-len(running) // LATEST) or 1
            rows = [(max(0.0, since - start), run, 1.0, 1.0) for start, run in ended]
            rows += [(max(0.0, since - start), self._now - start, 0.0, each) for start in running[::each]]
            self._watched[kind] = np.array(rows, float).reshape(-1, 4)
        return self._watched[kind]


def owner_of(work: Work) -> str:
    return work.user or f"{work.namespace}/{work.queue}"


def kinds_of(work: Work) -> tuple[Hashable, ...]:
    """What a job has in common with others, from the narrowest to the widest."""
    owner = owner_of(work)
    name = without_numbers(object_name(work))
    shape = work.pods, *total_of(work.roles)
    return (owner, name, shape), (owner, name), owner, None
