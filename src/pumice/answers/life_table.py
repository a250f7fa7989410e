"""How long jobs run, told by those that have ended and by those that still run: a life table, as actuaries make it.

Of the jobs that ended of late most are short, since short jobs end first. So those that still run count too, for as long as they have
run; and where only the latest ends are known, everybody counts from the first of them on: Kaplan and Meier's estimate, with delayed entry.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple, TypeAlias

import numpy as np

from pumice.scheduler.model.arrays import NDArray

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
