"""What became of past forecasts, so that the next forecasts are better.

How many times as long as their slowest rollout did jobs really wait? P90 is what nine of ten of a forecast's own rollouts and of these
ratios do not exceed: conformal prediction. Jobs that still wait count for as long as they have waited (`LifeTable`), since of the recent
forecasts, short waits end first. The fewer independent forecasts are known, the more than nine of ten must not exceed P90, up to all.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import TypeVar

import numpy as np
from msgspec import Struct

from pumice.answers.run_times import LifeTable
from pumice.scheduler.model import Cluster, NDArray

T = TypeVar("T")
MEMORY = "past forecasts"  #: the key of the past forecasts in the cluster's memory
KEPT = 500
TOGETHER = 8  #: how many forecasts of one instant count, as their outcomes have much in common
SHORTEST_S = 60.0  #: a shorter expected time counts as this in the ratio
MOST = 8.0  #: the greatest factor between P90 and the slowest rollout, either way
NINE_OF_TEN = 0.9


def some_of(items: Sequence[T]) -> Sequence[T]:
    """At most `TOGETHER` of the items of one instant, evenly chosen."""
    return items[:: -(-len(items) // TOGETHER) or 1]


class PastForecast(Struct):
    """The expected wait of a job, and when it started. Instants are seconds since 1970."""

    job: str
    at: float
    latest_s: float  #: seconds from `at` on, by the slowest rollout
    started: float | None = None

    def ratio(self, now: float) -> float:
        """How many times as long as expected the job waited, or has waited by now."""
        return ((now if self.started is None else self.started) - self.at) / max(self.latest_s, SHORTEST_S)


class PastForecasts:
    """The latest past forecasts, in order; one for each job."""

    def __init__(self) -> None:
        self._by_job: dict[str, PastForecast] = {}

    def __iter__(self) -> Iterator[PastForecast]:
        return iter(self._by_job.values())

    def __len__(self) -> int:
        return len(self._by_job)

    def made(self, at: float, starts: Mapping[str, Sequence[float]]) -> None:
        """Keep some of the forecasts of one instant: rollouts in ascending order, by job. Those that exceed the horizon are left out."""
        ends = [(job, found[-1]) for job, found in starts.items() if found[-1] < inf]
        for job, latest_s in some_of(ends):
            self.keep(PastForecast(job, at, latest_s))

    def keep(self, forecast: PastForecast) -> None:
        self._by_job.setdefault(forecast.job, forecast)
        if len(self._by_job) > KEPT:
            del self._by_job[next(iter(self._by_job))]

    def started(self, job: str, at: float) -> None:
        if job in self._by_job and self._by_job[job].started is None:
            self._by_job[job].started = at

    def forget(self, job: str) -> None:
        """Drop the forecast of a job whose start will never be known."""
        del self._by_job[job]

    def quantiles(self, starts: Sequence[float], now: float) -> tuple[float, float]:
        """P50 and P90 of rollouts in ascending order; all in seconds from now on."""
        latest_s = starts[-1]
        if latest_s == inf:
            return starts[len(starts) // 2], inf
        own = [(0.0, start / (latest_s or 1.0), 1.0, 1.0) for start in starts]
        others = [(0.0, each.ratio(now), each.started is not None, 1.0) for each in self]
        ages, gone = LifeTable.of(np.array(own + others, float))
        known = independent(np.array([each.at for each in self]), np.array([ratio for _, ratio, _, _ in others]))
        share = NINE_OF_TEN * (1 + 1 / known) if known else NINE_OF_TEN
        ratio = ages[min(bisect_left(gone, share - 1e-9), len(ages) - 1)]
        p90 = latest_s * min(max(ratio, 1 / MOST), MOST)
        return min(starts[len(starts) // 2], p90), p90


def independent(instants: NDArray[np.float64], ratios: NDArray[np.float64]) -> float:
    """As how many independent forecasts these count, as forecasts of one instant are alike: design effect, by analysis of variance."""
    _, group, sizes = np.unique(instants, return_inverse=True, return_counts=True)
    count, groups = len(instants), len(sizes)
    if groups in (0, 1, count):
        return groups
    means = np.bincount(group, ratios) / sizes
    within = ((ratios - means[group]) ** 2).sum() / (count - groups)
    between = (sizes * (means - ratios.mean()) ** 2).sum() / (groups - 1)
    others = count / groups - 1
    shared = max((between - within) / (between + others * within), 0.0) if between + within > 0 else 1.0
    return float(count / (1 + others * shared))


def past_forecasts(cluster: Cluster) -> PastForecasts:
    known: PastForecasts = cluster.memory.setdefault(MEMORY, PastForecasts())
    return known
