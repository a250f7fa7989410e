"""Traces played in order end as they do when every cycle computes everything anew: promises, the timetable, newcomers, all that is kept."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from pumice.simulate.inputs import nodes_of_pools, read_policy
from pumice.simulate.scenario import Scenario, simulate
from tests.samples import times
from tests.simulate.playing import Job, swf

FILES = "jobs.csv", "events.csv", "series.csv"


def trace(random: Random) -> tuple[list[Job], list[float]]:
    """Jobs that often come together and wait in a long line, with estimates that are too long or too short."""
    jobs, estimates, now = list[Job](), list[float](), 0.0
    for _ in range(60):
        now += random.choice((0, 0, 1, 5, 20, 60))
        run = random.choice((1.0, 10.0, 30.0, 100.0, 300.0))
        jobs.append((now, random.choice((1, 1, 2, 3, 4)), run))
        estimates.append(run * random.choice((0.5, 1, 1, 2, 5)))
    return jobs, estimates


@pytest.mark.parametrize("seed", range(times(5)))
@pytest.mark.parametrize("name", ["FIFO", "EASY", "conservative"])
def test_shortcuts_change_no_outcome(tmp_path: Path, name: str, seed: int) -> None:
    random = Random(seed)
    source = swf(tmp_path / "w.swf", *trace(random))
    nodes = nodes_of_pools(random.choice(("1x4cpu", "3x4cpu")))
    policy = read_policy(name)[0]
    for shortcuts in (True, False):
        simulate(Scenario(source, nodes, replace(policy, shortcuts=shortcuts), name), str(tmp_path / str(shortcuts)))
    for file in FILES:
        assert (tmp_path / "True" / file).read_text() == (tmp_path / "False" / file).read_text(), f"seed {seed}, {file}"
