"""Single days of a workload, each played on its own under any configuration, so that configurations are compared day by day.

The workload is played once as a whole under the configuration in force. That says which jobs run and wait when a day begins. A day begins
with these jobs: those that run are placed first, with the work that they have left, then those that wait. The jobs of the day follow, and
then those of the next day, so that the last jobs of the day compete as they did. Only the jobs of the day itself are measured, and nothing
more is decided once that could not change anything for them. So a day is the same work for every configuration, and no day profits from
what a configuration did on another.

A period may be shorter than a day. It begins at midnight UTC, or a multiple of it after that, if the workload knows its time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from math import floor, inf
from typing import Any

from pumice.api.core import Node
from pumice.simulate.inputs import nodes_from, policy_of, source
from pumice.simulate.record import Record
from pumice.simulate.scenario import Scenario, Summary, play_fast, simulate
from pumice.simulate.simulated_cluster import PERIOD_S, Habits
from pumice.simulate.tune.goal import OF_JOBS
from pumice.simulate.workload import Work, Workload

NO_EVICTIONS = frozenset(["enqueue", "allocate", "backfill", "in-order"])  #: actions that evict nobody
FEW, MOST_EVICTIONS = 100, 3  #: pods that may be evicted, and how often each on average
FEW_PROMISES, MOST_PROMISES = 10_000, 100  #: the same of promises to waiting jobs
LEAST_S = 1.0  #: the least work that a job has left


@dataclass(frozen=True)
class SearchSetting:
    """What all simulations of a search have in common."""

    workload: str
    cluster: str | None
    nodes: str | None
    kill_at_estimate: bool = False
    plugins_dir: str | None = None
    digest: str = ""  #: of what the files contain, where results are kept

    def scenario(self, text: str, name: str, seed: int, works: Works, measured_until: float = inf) -> Scenario:
        """These jobs under a configuration. It ends early if it would take too long. Raises InputError."""
        policy, _ = policy_of(text, name, self.plugins_dir)
        pods = sum(work.pods for work in works.jobs)
        habits = Habits(
            kill_at_estimate=self.kill_at_estimate,
            most_evictions=FEW + MOST_EVICTIONS * pods,
            most_promises=FEW_PROMISES + MOST_PROMISES * len(works.jobs),
            measured_until=measured_until,
            tells_reasons=False,
            keeps_places=NO_EVICTIONS.issuperset(action.name for action in policy.actions) and works.workload.faults.nodes is None,
        )
        return Scenario(works, None, policy, name, self.cluster or self.nodes or works.workload.name, seed, habits)


#: the jobs that a day begins with: the number of each in the workload, its work left in seconds, and whether it runs
Carried = tuple[tuple[int, float, bool], ...]


@dataclass(frozen=True)
class Day:
    """A period of the workload drawn with one seed."""

    seed: int
    number: int
    begin: float
    end: float
    carried: Carried = ()

    @property
    def name(self) -> str:
        return f"{self.seed}/{self.number}"

    @property
    def until(self) -> float:
        """When the last job arrives that competes with those of the day."""
        return 2 * self.end - self.begin


@dataclass(frozen=True)
class WholeRun:
    """The whole workload under one configuration."""

    setting: SearchSetting
    text: str
    name: str
    seed: int

    @property
    def key(self) -> str:
        """What tells its results from those of all others."""
        return sha256(repr(self).encode()).hexdigest()[:24]

    def play(self) -> Summary:
        rows: list[tuple[Any, ...]] = []
        works = works_of(self.setting, self.seed)
        scenario = self.setting.scenario(self.text, self.name, self.seed, works)
        summary = simulate(scenario, jobs=rows)
        return summary | {"times": [(row[4], row[5]) for row in rows]}  # the columns start and end of columns.JOBS


@dataclass(frozen=True)
class DayPlayed:
    """A day under one configuration."""

    setting: SearchSetting
    text: str
    name: str
    day: Day

    @property
    def key(self) -> str:
        """What tells its results from those of all others."""
        return sha256(repr(self).encode()).hexdigest()[:24]

    def play(self) -> Summary:
        known = works_of(self.setting, self.day.seed)
        works = replace(known, jobs=[*jobs_of(self.day, known.jobs)])
        scenario = self.setting.scenario(self.text, self.name, self.day.seed, works, self.day.end)
        more: dict[str, Any] = {"seed": self.day.name}

        def play(scenario: Scenario, workload: Workload, record: Record) -> None:
            play_fast(scenario, workload, record)
            more.update(given_up=record.given_up, turns=record.turns)

        summary = simulate(scenario, player=play)
        queues = {name: _of_jobs(measures) for name, measures in summary["queues"].items()}
        return summary | more | {"measures": _of_jobs(summary["measures"]), "queues": queues}


@dataclass(frozen=True)
class Works:
    """A workload whose jobs can be read again and again."""

    workload: Workload
    jobs: list[Work]

    def read(self, cluster: list[Node] | None, seed: int = 0) -> Workload:
        return replace(self.workload, jobs=iter(self.jobs))


@lru_cache(maxsize=4)
def works_of(setting: SearchSetting, seed: int) -> Works:
    """The whole workload. Read once in each process."""
    workload = source(setting.workload, "--workload").read(nodes_from(setting.cluster, setting.nodes), seed)
    return Works(workload, list(workload.jobs))


def jobs_of(day: Day, works: Sequence[Work]) -> Iterator[Work]:
    """The jobs of a day in order: those that it begins with, its own, and those of the next day."""
    for number, left, runs in sorted(day.carried, key=lambda each: not each[2]):
        yield carried_over(works[number], day.begin, left, runs=runs)
    for work in works:
        if day.begin <= work.submit < day.until:
            yield replace(work, measured=work.submit < day.end)


def _of_jobs(measures: dict[str, Any]) -> dict[str, Any]:
    """The measures that belong to a day: those of its jobs."""
    return {name: measures[name] for name in (*OF_JOBS, "jobs")}


def carried_over(work: Work, begin: float, left: float, *, runs: bool) -> Work:
    """The job as the day begins with it. Those that run come a cycle earlier, so that they are placed before those that wait."""
    if not runs:
        return replace(work, submit=begin, measured=False)
    estimate = None if work.estimate is None else max(LEAST_S, work.estimate - (work.run - left))
    return replace(work, submit=begin - PERIOD_S, run=left, estimate=estimate, slow=None, measured=False)


def days_of(works: Works, seed: int, period_s: float, times: Sequence[tuple[float | None, float | None]]) -> list[Day]:
    """All periods in which jobs came. `times`: start and end of each job when the whole workload was played."""
    shift = (works.workload.began or 0.0) % period_s
    numbers = sorted({floor((work.submit + shift) / period_s) for work in works.jobs})
    found = []
    for number in numbers:
        begin = number * period_s - shift
        found.append(Day(seed, number, begin, begin + period_s, tuple(_carried(works.jobs, times, begin))))
    return found


def _carried(works: Iterable[Work], times: Iterable[tuple[float | None, float | None]], begin: float) -> Iterator[tuple[int, float, bool]]:
    for number, (work, (start, end)) in enumerate(zip(works, times, strict=True)):
        if work.submit >= begin:
            return
        if end is None or end > begin:
            runs = start is not None and start < begin
            left = min(work.run, end - begin) if runs and end is not None else work.run
            yield number, max(LEAST_S, left), runs
