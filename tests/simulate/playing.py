"""A simulation of jobs in shorthand, and when each started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pumice.simulate.inputs import Source, nodes_of_pools, read_policy
from pumice.simulate.scenario import Scenario, Summary, as_objects, simulate
from pumice.simulate.simulated_cluster import Habits

Job = tuple[float, int, float]  #: arrival, processors, run time


PLAIN = Habits()


def swf(path: Path, jobs: list[Job], estimates: list[float] | None = None, header: str = "; MaxProcs: 4\n") -> Source:
    lines = [
        f"{number} {arrival} -1 {run} {size} -1 -1 {size} {estimate} -1 1 1 1 -1 1 -1 -1 -1"
        for number, ((arrival, size, run), estimate) in enumerate(zip(jobs, estimates or [job[2] for job in jobs], strict=True), 1)
    ]
    path.write_text(header + "\n".join(lines) + "\n")
    return Source("swf", str(path))


def played(
    source: Source, policy: str, nodes: str | None = None, habits: Habits = PLAIN, out: Path | None = None, seed: int | None = None
) -> tuple[Summary, list[dict[str, Any]]]:
    """Its summary, and the rows of its jobs."""
    decided, warnings = read_policy(policy)
    assert not warnings
    rows: list[tuple[Any, ...]] = []
    scenario = Scenario(source, nodes_of_pools(nodes) if nodes else None, decided, policy, seed=seed, habits=habits)
    summary = simulate(scenario, str(out) if out else None, jobs=rows)
    return summary, as_objects(rows)


def starts(rows: list[dict[str, Any]]) -> list[float]:
    return [row["start"] for row in rows]
