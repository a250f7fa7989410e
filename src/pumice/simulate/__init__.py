"""Simulations of workloads from files: the scheduler that runs in production decides, on a simulated clock.

`simulated_cluster.py` has the heap of events; each module of `formats/` reads one format; `record.py` records what happens, `measures.py`
computes the measures, `outputs.py` writes the results. `simulate` and `compare` do what the commands of these names do, for notebooks.
Answers need the form of works alone, so what plays them is imported once it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pumice.scheduler import Action, Plugin
    from pumice.simulate.outputs import Frame
    from pumice.simulate.scenario import Summary

__all__ = ["Simulation", "compare", "simulate"]


class Simulation(NamedTuple):
    """The results of a simulation."""

    summary: Summary
    jobs: Frame  #: see output_columns.JOBS

    @property
    def measures(self) -> dict[str, Any]:
        found: dict[str, Any] = self.summary["measures"]
        return found


def simulate(
    workload: str,
    *,
    cluster: str | None = None,
    nodes: str | None = None,
    policy: str = "volcano",
    seed: int = 0,
    out: str | None = None,
    plugins: Iterable[str | type[Plugin] | type[Action]] = (),
) -> Simulation:
    """Simulate a workload. `workload` and `cluster` are FORMAT:FILE, `nodes` is a text such as 300x8gpu, `policy` is a name or a file.
    `plugins` are classes of plugins and actions, and folders of Python files with them; the policy names them. Raises InputError."""
    from pumice.simulate import output_columns
    from pumice.simulate.outputs import frame_of
    from pumice.simulate.policy_comparison import ComparedRun

    rows: list[tuple[Any, ...]] = []
    summary = ComparedRun(workload, cluster, nodes, policy, seed, plugins=tuple(plugins)).play(out, rows)
    return Simulation(summary, frame_of(output_columns.JOBS, rows))


def compare(
    workload: str,
    policies: Iterable[str],
    *,
    cluster: str | None = None,
    nodes: str | None = None,
    seeds: int = 1,
    processes: int | None = None,
    plugins: Iterable[str | type[Plugin] | type[Action]] = (),
) -> list[dict[str, Any]]:
    """One row per measure and policy, as `pumice compare -o json` prints them. Classes among the plugins may be known to this process
    alone, so with any of them the simulations run here, one after the other."""
    from pumice.simulate.policy_comparison import ComparedRun, compare as play_all, table

    given = tuple(plugins)
    works = [ComparedRun(workload, cluster, nodes, policy, seed, plugins=given) for policy in policies for seed in range(seeds)]
    return table(play_all(works, processes=processes if all(isinstance(each, str) for each in given) else 1))


def __dir__() -> list[str]:
    return __all__
