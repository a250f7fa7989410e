"""Several policies for the same workload, with several seeds: the results of each policy, and how certain their differences are.

Every pair of policy and seed is a simulation of its own, in a process of its own. Its summary is kept in OUT, so that an interrupted
comparison continues where it was. Results do not depend on the number of processes.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import msgspec

from pumice.extensions import Given
from pumice.simulate.fault_injection import disturbed
from pumice.simulate.input_digest import digest_of
from pumice.simulate.inputs import nodes_from, policy_text, read_policy, source
from pumice.simulate.lower_bounds import LowerBounds, bounds_of
from pumice.simulate.outputs import as_json
from pumice.simulate.scenario import Player, Scenario, Summary, play_fast, simulate
from pumice.simulate.simulated_cluster import Habits
from pumice.simulate.worker_processes import Crew

NORMAL = 1.959964  #: quantile of the normal distribution: 95 %, two-sided
#: those of Student's t-distribution, by degrees of freedom from 1 on. Of more, the first term of their series, which is right to 0.0005
STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093),
)
COMPARED = (
    *(("wait", "mean"), ("wait", "p95"), ("bounded_slowdown", "mean")),
    *(("utilisation", "cpu"), ("utilisation", "gpu"), ("makespan",), ("evictions",)),
    *(("fairness", "mean"), ("fragmentation", "mean")),
)


@dataclass(frozen=True)
class ComparedRun:
    workload: str
    cluster: str | None
    nodes: str | None
    policy: str
    seed: int
    kill_at_estimate: bool = False
    plugins_dir: str | None = None
    plugins: Given = ()

    @property
    def digest(self) -> str:
        """A digest of what its files contain. Raises InputError."""
        folders = (self.plugins_dir, *(each for each in self.plugins if isinstance(each, str)))
        return digest_of((self.workload, self.cluster), folders, policy_text(self.policy))

    @property
    def player(self) -> Player:
        return play_fast

    @property
    def starts_gangs_whole(self) -> bool:
        """Whether the minimum of a gang starts at one instant."""
        policy, _ = read_policy(self.policy, self.plugins_dir, self.plugins)
        return self.player is play_fast and policy.profiles is None and policy.has_plugin("gang")

    def bounds(self, *, whole_gangs: bool) -> LowerBounds:
        """What no policy goes below. Raises InputError."""
        workload = source(self.workload, "--workload").read(nodes_from(self.cluster, self.nodes), self.seed)
        jobs = disturbed(workload.jobs, workload.faults, self.seed)
        return bounds_of(jobs, workload.nodes, whole_gangs=whole_gangs, kill_at_estimate=self.kill_at_estimate)

    def play(self, out: str | None = None, rows: list[tuple[Any, ...]] | None = None) -> Summary:
        policy, _ = read_policy(self.policy, self.plugins_dir, self.plugins)
        given = nodes_from(self.cluster, self.nodes)
        habits = Habits(kill_at_estimate=self.kill_at_estimate)
        where = self.cluster or self.nodes or ""
        scenario = Scenario(source(self.workload, "--workload"), given, policy, self.policy, where, self.seed, habits)
        return simulate(scenario, out, jobs=rows, player=self.player)


@dataclass(frozen=True)
class BoundsOfRun:
    """Lower bounds of a run, found beside the simulations."""

    run: ComparedRun
    whole_gangs: bool

    def play(self) -> LowerBounds:
        return self.run.bounds(whole_gangs=self.whole_gangs)


def compare(
    works: Iterable[ComparedRun],
    out: str | None = None,
    processes: int | None = None,
    done: Callable[[ComparedRun], None] = lambda work: None,
    dask: str | None = None,
    bounds: dict[int, LowerBounds] | None = None,
) -> list[Summary]:
    """The summaries of all simulations, in the order of `works`; one that is named twice is played once. `done` is called with each that
    has finished. `dask` is the address of a Dask cluster that runs them, instead of processes here. `bounds` gets lower bounds for what the
    policies are compared in, by seed. Raises InputError."""
    listed = list(dict.fromkeys(works))
    paths = _paths(out, listed) if out else {}
    found = {work: msgspec.json.decode(path.read_bytes()) for work, path in paths.items() if path.is_file()}
    left: list[ComparedRun | BoundsOfRun] = [work for work in listed if work not in found]
    if bounds is not None:  # these are less work than simulations: they come last, for whoever is done first
        whole_gangs = all(each.starts_gangs_whole for each in listed)
        left += [BoundsOfRun(run, whole_gangs) for run in {work.seed: work for work in listed}.values()]
    with Crew(processes, dask) as crew:
        for work, result in crew.play(left):
            if isinstance(work, ComparedRun):
                found[work] = result
                if work in paths:
                    _keep(paths[work], result)
                done(work)
            elif bounds is not None:
                bounds[work.run.seed] = result
    return [found[work] for work in listed]


def _paths(out: str, works: Iterable[ComparedRun]) -> dict[ComparedRun, Path]:
    """The file of each summary. Any different setting makes it a different name, and so does another content of any input."""
    digests: dict[ComparedRun, str] = {}
    found = {}
    for work in works:
        same = replace(work, seed=0)
        if same not in digests:
            digests[same] = work.digest
        key = sha256(f"{work!r} {digests[same]}".encode()).hexdigest()[:12]
        found[work] = Path(out, f"{Path(work.policy).stem}-{work.seed}-{key}.json")
    return found


def _keep(path: Path, summary: Summary) -> None:
    """Write a summary completely or not at all, even if the process ends meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_bytes(as_json(summary))
    unfinished.replace(path)


def interval(values: list[float]) -> tuple[float, float]:
    """The mean, and half of its 95 % confidence interval; nan for a single value."""
    if len(values) < 2:
        return fmean(values), float("nan")
    freedom = len(values) - 1
    factor = STUDENT[freedom - 1] if freedom <= len(STUDENT) else NORMAL + (NORMAL**3 + NORMAL) / (4 * freedom - 5)
    return fmean(values), factor * stdev(values) / sqrt(len(values))


def table(summaries: list[Summary]) -> list[dict[str, Any]]:
    """One row per measure and policy: mean and interval, and both of the differences from the first policy, seed by seed."""
    by_policy: dict[str, dict[int, Summary]] = {}
    for summary in summaries:
        by_policy.setdefault(summary["policy"], {})[summary["seed"]] = summary
    first = next(iter(by_policy.values()))
    rows = []
    for path in COMPARED:
        for policy, by_seed in by_policy.items():
            values = {seed: value for seed, summary in by_seed.items() if (value := _at(summary, path)) is not None}
            if not values:
                continue
            mean, half = interval(list(values.values()))
            paired = [value - before for seed, value in values.items() if (before := _at(first[seed], path)) is not None]
            row: dict[str, Any] = {"measure": ".".join(path), "policy": policy, "mean": mean, "interval": half}
            if by_seed is not first and paired:
                row["difference"], row["difference_interval"] = interval(paired)
                before = fmean(value for summary in first.values() if (value := _at(summary, path)) is not None)
                row["difference_percent"] = 100 * row["difference"] / abs(before) if before else None
                row["difference_percent_interval"] = 100 * row["difference_interval"] / abs(before) if before else None
            rows.append(row)
    return rows


def _at(summary: Summary, path: tuple[str, ...]) -> float | None:
    value: Any = summary["measures"]
    for step in path:
        value = value.get(step) if value is not None else None
    return value if value is None else float(value)
