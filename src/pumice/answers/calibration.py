"""How far forecasts hold: a workload is played, some of its jobs that wait are told when they will start, and it is seen when they do.

A forecast knows what is known at its instant: who stands where, which jobs have ended and how long they ran, who came of late.
"""

from __future__ import annotations

from dataclasses import replace

from msgspec import Struct

from pumice.answers.eta import quantiles
from pumice.answers.forecast import Forecast
from pumice.answers.past import Past
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model.cluster import Cluster
from pumice.simulate.life import Life
from pumice.simulate.record import Record
from pumice.simulate.work import Work, Workload
from pumice.simulate.world import World


class Prediction(Struct, frozen=True, rename="camel"):
    """One forecast and what came of it, in seconds of waiting."""

    job: str
    p50: float
    p90: float
    waited: float


class Calibration(Struct, frozen=True, rename="camel"):
    """Which share of them started within what they were told."""

    within_p50: float
    within_p90: float
    told: list[Prediction]


def calibrate(cluster: Cluster, policy: Policy, workload: Workload, every: int) -> Calibration:
    """Of the jobs that do not start at once, each of that number is told its forecast. `cluster`: as it is before the first job comes."""
    origin = workload.began or 0.0
    played = PlayedPast(origin)
    world = World(cluster, policy, workload.jobs, played, origin=origin)
    waited, told = 0, list[tuple[Life, float, float]]()
    while world.step():
        newest, played.newest = played.newest, None
        if newest is None or newest.start is not None:
            continue
        waited += 1
        if waited % every == 0:
            starts = Forecast(cluster, policy, origin + world.now, played.past).starts({newest.uid})[newest.uid]
            told.append((newest, *quantiles(starts)))
    return _judged(
        [Prediction(life.work.name, p50, p90, life.start - life.work.submit) for life, p50, p90 in told if life.start is not None]
    )


def _judged(told: list[Prediction]) -> Calibration:
    count = max(1, len(told))
    return Calibration(sum(each.waited <= each.p50 for each in told) / count, sum(each.waited <= each.p90 for each in told) / count, told)


class PlayedPast(Record):
    """The past of the world that is played."""

    def __init__(self, origin: float) -> None:
        super().__init__()
        self.past = Past()
        self.newest: Life | None = None
        self._origin = origin

    def submitted(self, life: Life) -> None:
        super().submitted(life)
        self.newest = life
        self.past.came(self._dated(life.work))

    def ended(self, life: Life, state: str) -> None:
        super().ended(life, state)
        self.past.ended(life.work, life.work.run)

    def _dated(self, work: Work) -> Work:
        return replace(work, submit=self._origin + work.submit)
