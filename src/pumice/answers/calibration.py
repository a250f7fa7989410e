"""How accurate forecasts are: a workload is simulated, the starts of some of its waiting jobs are forecast, and compared to the real ones.

A forecast knows only what is known at its instant: which pods run where, which jobs have ended and how long they ran, which jobs came
recently, what became of earlier forecasts.
"""

from collections.abc import Collection
from dataclasses import replace
from statistics import median

from msgspec import Struct, field

from pumice.answers.eta import Forecast
from pumice.answers.past_forecasts import PastForecasts
from pumice.answers.run_times import Past
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import Cluster
from pumice.simulate.job_runs import Life
from pumice.simulate.record import Placed, Record
from pumice.simulate.simulated_cluster import SimulatedCluster
from pumice.simulate.workload import Workload


class Prediction(Struct, frozen=True, rename="camel"):
    """One forecast and the real wait, in seconds from its instant on; inf (null in JSON) if not within the horizon."""

    job: str
    instant: int  #: its number, from 0; the outcomes of one instant's forecasts have much in common
    p50: float
    p90: float
    waited: float


class Calibration(Struct, frozen=True, rename="camel"):
    """The share of jobs that started within their forecasts."""

    within_p50: float
    within_p90: float
    instants: int
    median_p90: float  #: seconds
    median_waited: float
    predictions: list[Prediction] = field(name="told")


def calibrate(cluster: Cluster, policy: Policy, workload: Workload, every: int) -> Calibration:
    """Simulate a workload. Whenever `every` jobs have come that did not start at once, forecast those of them that still wait.

    `cluster`: its state before the first job comes.
    """
    origin = workload.began or 0.0
    played = PlayedPast(origin)
    simulated = SimulatedCluster(cluster, policy, workload.jobs, played, origin=origin)
    line, predicted, instants = list[Life](), list[tuple[Life, float, int, float, float]](), 0
    while simulated.step():
        line += [life for life in played.newest if life.start is None]
        played.newest.clear()
        if len(line) >= every:
            now = simulated.now
            asked = {_name(cluster, life): life for life in line if life.start is None}
            found = Forecast(cluster, policy, origin + now, played.past).starts(set(asked))
            starts = {life: found[name] for name, life in asked.items()}
            predicted += [(life, now, instants, *played.forecasts.quantiles(each, now)) for life, each in starts.items()]
            played.forecasts.made(now, {life.uid: each for life, each in starts.items()})
            line, instants = [], instants + 1
    return _judged(
        [
            Prediction(life.work.name, instant, p50, p90, life.start - at)
            for life, at, instant, p50, p90 in predicted
            if life.start is not None
        ],
        instants,
    )


def _name(cluster: Cluster, life: Life) -> str:
    """The name under which a job is forecast. If it has no PodGroup, that is the name of its pod."""
    return life.uid if life.uid in cluster.jobs else f"{life.uid}-0"


def _judged(predictions: list[Prediction], instants: int) -> Calibration:
    count = max(1, len(predictions))
    within = sum(each.waited <= each.p50 for each in predictions), sum(each.waited <= each.p90 for each in predictions)
    p90, waited = (median(times or (0.0,)) for times in ([each.p90 for each in predictions], [each.waited for each in predictions]))
    return Calibration(within[0] / count, within[1] / count, instants, p90, waited, predictions)


class PlayedPast(Record):
    """The past of the running simulation, as forecasts need it."""

    def __init__(self, origin: float) -> None:
        super().__init__()
        self.past = Past()
        self.forecasts = PastForecasts()
        self.newest: list[Life] = []
        self._origin = origin

    def submitted(self, life: Life) -> None:
        super().submitted(life)
        self.newest.append(life)
        self.past.came(replace(life.work, submit=self._origin + life.work.submit))

    def started(self, life: Life, tasks: Collection[Placed], *, first: bool) -> None:
        super().started(life, tasks, first=first)
        self.forecasts.started(life.uid, self.now)

    def ended(self, life: Life) -> None:
        super().ended(life)
        assert life.end is not None
        self.past.ended(life.work, life.work.run, self._origin + life.end)
