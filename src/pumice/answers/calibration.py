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


def calibrate(cluster: Cluster, policy: Policy, workload: Workload, samples: int) -> Calibration:
    """So many forecasts, spread over the workload; fewer if fewer jobs wait. `cluster`: as it is before the first job comes."""
    jobs, origin = list(workload.jobs), workload.began or 0.0
    due = [jobs[len(jobs) * n // samples].submit for n in range(samples) if jobs]
    remembered = PlayedPast(origin)
    world = World(cluster, policy, iter(jobs), remembered, origin=origin)
    told: list[tuple[Life, float, float]] = []
    while world.step() and (len(told) < len(due) or any(life.start is None for life, _, _ in told)):
        newest = remembered.newest
        if len(told) < len(due) and world.now >= due[len(told)] and newest is not None and newest.start is None:
            starts = Forecast(cluster, policy, origin + world.now, remembered.past).starts({newest.uid})[newest.uid]
            told.append((newest, *quantiles(starts)))
            remembered.newest = None
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
