"""What the past suggests for the future: how long jobs like this one ran, and which jobs came recently.

The run time of a job is guessed, in this order, from the ended jobs of its owner with its name and shape, from those with its name, from
all of its owner, from all jobs, from its annotation, from its deadline. Users request more time than they need. So annotations and limits
only bound what history shows, and are used alone only where there is no history.

A `LifeTable` is a tool of actuaries. Most jobs that ended recently are short, since short jobs end first. So running jobs count too, for
as long as they have run. Where only the latest ends are known, all jobs count only from the first of these ends on: the Kaplan-Meier
estimator, with delayed entry.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from itertools import takewhile
from math import inf
from typing import NamedTuple, TypeAlias

import numpy as np

from pumice.scheduler.model import NDArray
from pumice.scheduler.placement.past_runs import ENOUGH, LATEST, without_numbers
from pumice.simulate.workload import Work, object_name, total_of

LEAST_S = 600.0  #: seconds that a job is taken to run at least where no longer run is known
LONGER = 1.0  #: the number of added jobs that outlive all others; they stand for what was not observed

#: one row per job: the ages from which and until which it was watched, whether it ended then (1 or 0), its weight
Watched: TypeAlias = NDArray[np.float64]


class LifeTable(NamedTuple):
    ages: list[float]  #: the ages at which jobs ended, in ascending order
    gone: list[float]  #: the part of all jobs that had ended by each age

    @classmethod
    def of(cls, watched: Watched) -> LifeTable:
        since, age, ended, weight = watched[watched[:, 1].argsort(kind="stable")].T
        ages, ends = age[ended > 0], weight[ended > 0]
        there = _sum_below(since, weight, ages) - _sum_below(age, weight, ages)
        ended_before = np.cumsum(ends) - ends  # jobs that end at equal ages end one after the other
        there -= ended_before - ended_before[np.searchsorted(ages, ages)]
        left = np.cumprod(1.0 - ends / (np.maximum(there, ends) + LONGER))
        return cls(ages.tolist(), (1.0 - left).tolist())

    def draw(self, share: float, elapsed: float) -> float:
        """The age that this share of the jobs of age `elapsed` do not exceed. Beyond the last age, half of the jobs double it."""
        passed = bisect_right(self.ages, elapsed)
        before = self.gone[passed - 1] if passed else 0.0
        goal = 1.0 - (1.0 - before) * (1.0 - share)
        place = bisect_left(self.gone, goal, passed)
        if place < len(self.ages):
            return self.ages[place]
        last = self.gone[-1] if self.gone else 0.0
        return max(elapsed, LEAST_S, *self.ages[-1:]) * (1.0 - last) / (1.0 - goal)


def _sum_below(values: NDArray[np.float64], weights: NDArray[np.float64], bounds: NDArray[np.float64]) -> NDArray[np.float64]:
    order = values.argsort(kind="stable")
    sums: NDArray[np.float64] = np.concatenate(([0.0], np.cumsum(weights[order])))[np.searchsorted(values[order], bounds)]
    return sums


WIDER = 5.0  #: all ended jobs of a wider kind together count as so many jobs of the kind
WINDOW_S = 86_400.0  #: jobs that came within this time are expected to come again

HISTORY = ("history of its owner, name and shape", "history of its owner and name", "history of its owner", "history of everybody")
ANNOTATION, LIMIT, NOTHING = "its annotation", "its limit", "nothing"


class Guess(NamedTuple):
    """How long a job runs from its start on, as a distribution."""

    source: str
    table: LifeTable
    elapsed: float = 0.0  #: seconds that it has run already
    most: float = inf  #: its longest run time in seconds, unless it has already run longer

    def run(self, share: float) -> float:
        """The run time in seconds that this share of such jobs do not exceed."""
        found = self.table.draw(share, self.elapsed)
        return min(found, self.most) if self.most > self.elapsed else found


UNKNOWN = LifeTable([], [])
SERVICE = Guess("nothing: it is a service", LifeTable([inf], [1.0]))  #: for pods of ReplicaSets and similar controllers, which do not end


class Past:
    """The runs of ended jobs, by what jobs have in common, and the recent arrivals. Call `came` and `ended` as these events happen."""

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
        """The start and the run time of each of the latest ended jobs of a kind."""
        return self._runs.get(kind, ())


class RunTimes:
    """Guesses how long jobs run, from what is known at an instant: the past, and the starts of the jobs that run."""

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
        estimate = inf if work.estimate is None else work.estimate
        kinds, most = kinds_of(work), min(estimate, deadline)
        for source, kind in zip(HISTORY, kinds, strict=True):
            if len(self._past.runs(kind)) >= ENOUGH:
                return Guess(source, self._table(kinds), elapsed, most)
        if most < inf:
            return Guess(ANNOTATION if estimate <= deadline else LIMIT, LifeTable([most], [0.5]), elapsed, most)
        return Guess(NOTHING, UNKNOWN, elapsed)

    def _table(self, kinds: tuple[Hashable, ...]) -> LifeTable:
        """The table of the narrowest kind that has jobs. All jobs of each wider kind together count as a few jobs of it."""
        if kinds[0] not in self._tables:
            narrowest, *wider = (kind for kind in kinds if len(self._watch(kind)))
            parts = [self._watch(narrowest)]
            parts += [self._watch(kind) * (1, 1, 1, min(1.0, WIDER / max(1, len(self._past.runs(kind))))) for kind in wider]
            self._tables[kinds[0]] = LifeTable.of(np.concatenate(parts))
        return self._tables[kinds[0]]

    def _watch(self, kind: Hashable) -> Watched:
        """The rows of a kind's ended and running jobs. Where many jobs run, one row stands for several of them."""
        if kind not in self._watched:
            ended, running = self._past.runs(kind), sorted(self._running.get(kind, ()))
            since = sum(ended[0]) if len(ended) == LATEST else -inf  # from this instant on all ends are known
            each = -(-len(running) // LATEST) or 1
            rows = [(max(0.0, since - start), run, 1.0, 1.0) for start, run in ended]
            rows += [(max(0.0, since - start), self._now - start, 0.0, each) for start in running[::each]]
            self._watched[kind] = np.array(rows, float).reshape(-1, 4)
        return self._watched[kind]


def owner_of(work: Work) -> str:
    return work.user or f"{work.namespace}/{work.queue}"


def kinds_of(work: Work) -> tuple[Hashable, ...]:
    """The kinds to which a job belongs, from the narrowest to the widest."""
    owner = owner_of(work)
    name = without_numbers(object_name(work))
    shape = work.pods, *total_of(work.roles)
    return (owner, name, shape), (owner, name), owner, None
