"""When does it start? The scheduler rolled forward from now, several times; what half of the rollouts reach, and nine of ten, by what
became of forecasts before."""

from __future__ import annotations

from math import inf

from msgspec import Struct

from pumice.answers.forecast import Forecast
from pumice.answers.past import Past
from pumice.answers.past_forecasts import past_forecasts
from pumice.answers.subject import find, who_waits
from pumice.api.times import rfc3339
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model.cluster import Cluster

KINDS = ("job", "podgroup", "pod")


class Eta(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Seconds from now on; None for not within the horizon."""

    subject: str
    state: str = "waits"  #: "runs" of one that does not wait
    p50: float | None = None
    p90: float | None = None
    p50_at: str | None = None
    p90_at: str | None = None
    run_times: dict[str, int] = {}  #: what they were guessed from, of how many jobs
    arrivals: int = 0  #: jobs that came within the last day, and come again
    past_forecasts: int = 0  #: by what became of so many P90 was corrected

    @property
    def moments(self) -> tuple[tuple[str, float | None, str | None], ...]:
        return ("P50", self.p50, self.p50_at), ("P90", self.p90, self.p90_at)


def eta(cluster: Cluster, policy: Policy, now: float, subject: str, past: Past | None = None) -> Eta:
    """Of `job/x`, `podgroup/x` or `pod/x`. The cluster is afterwards as it was. Raises InputError."""
    asked = find(cluster, subject, kinds=KINDS)
    waits = who_waits(cluster, asked)
    job = waits.job
    if not waits.tasks and (job is None or job.tasks):
        return Eta(str(asked), "runs")
    name = job.uid if job is not None else waits.tasks[0].key
    return _etas(cluster, policy, now, {name: str(asked)}, past)[name]


def etas(cluster: Cluster, policy: Policy, now: float, past: Past | None = None) -> dict[str, Eta]:
    """Of each PodGroup that waits, by "namespace/name"."""
    waiting = {**cluster.waiting, **cluster.not_enqueued}
    return _etas(cluster, policy, now, {uid: f"podgroup/{uid}" for uid, job in waiting.items() if job.group is not None}, past)


def _etas(cluster: Cluster, policy: Policy, now: float, wanted: dict[str, str], past: Past | None) -> dict[str, Eta]:
    forecast, past_ones = Forecast(cluster, policy, now, past), past_forecasts(cluster)
    sources = dict(forecast.sources)
    return {
        name: Eta(wanted[name], "waits", *_moments(past_ones.quantiles(starts, now), now), sources, forecast.arrivals, len(past_ones))
        for name, starts in forecast.starts(set(wanted)).items()
    }


def _moments(quantiles: tuple[float, float], now: float) -> tuple[float | None, float | None, str | None, str | None]:
    seconds = [None if each == inf else each for each in quantiles]
    at = [None if each is None else rfc3339(now + each) for each in seconds]
    return seconds[0], seconds[1], at[0], at[1]
