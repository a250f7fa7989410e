"""A whole simulation and a fast one come to the same, job for job and event for event, whatever comes."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pumice.live.whole import play as play_whole
from pumice.simulate.inputs import Source
from pumice.simulate.policies import read_policy
from pumice.simulate.run import Player, Scenario, as_objects, play_fast, simulate
from pumice.simulate.world import Habits
from tests.live.stories import PREEMPTING
from tests.simulate.playing import PLAIN

Outcome = tuple[dict[str, Any], list[dict[str, Any]], list[str]]
EVICTING_GANGS = 'actions: "allocate, preempt"\ntiers:\n- plugins: [{name: priority}]\n'
CHANCE = ("reason",)  #: what the last cycle said, of which a whole simulation has more


def played(player: Player, folder: Path, page: dict[str, Any] | str, policy: str, habits: Habits = PLAIN) -> Outcome:
    """Measures by queue, jobs, and events: those of one instant in any order."""
    source = folder / "page.yaml"
    source.write_text(page if isinstance(page, str) else json.dumps(page))
    if "\n" in policy:
        (folder / "preempting.conf").write_text(policy)
        policy = str(folder / "preempting.conf")
    rows: list[tuple[Any, ...]] = []
    scenario = Scenario(Source("yaml", str(source)), None, read_policy(policy)[0], policy, seed=0, habits=habits)
    summary = simulate(scenario, str(folder / "out"), jobs=rows, player=player)
    jobs = [{name: value for name, value in job.items() if name not in CHANCE} for job in as_objects(rows)]
    return {"": summary["measures"]} | summary["queues"], jobs, sorted((folder / "out/events.csv").read_text().splitlines())


def both(folder: Path, page: dict[str, Any] | str, policy: str, habits: Habits = PLAIN) -> Outcome:
    fast, whole = played(play_fast, folder, page, policy, habits), played(play_whole, folder, page, policy, habits)
    assert whole[1:] == fast[1:]
    for name, measures in fast[0].items():
        for measure, value in measures.items():
            assert whole[0][name][measure] == (pytest.approx(value) if value is not None else None), measure
    return whole


def kind(random: Random, number: int, queues: list[str]) -> dict[str, Any]:
    drawn: dict[str, Any] = {
        "name": f"k{number}",
        "arrivals": {"at": [random.randint(0, 60) for _ in range(random.randint(1, 6))]},
        "run": {"choice": {f"{random.randint(1, 40)}s": 1, f"{random.randint(1, 90)}s": 1}},
        "pods": {"choice": {random.randint(1, 4): 1, 1: 1}},
        "request": {"cpu": random.randint(1, 3)},
        "queue": dict.fromkeys(queues, 1),
        "priority": random.choice([0, 0, 10, 20]),
    }
    maybe = {"minimum": random.randint(0, 1), "checkpoint": random.randint(1, 20), "estimate": random.choice([0.5, 1, 2])}
    return drawn | {name: value for name, value in maybe.items() if random.random() < 0.5}


@pytest.mark.parametrize("policy", ["volcano", PREEMPTING, "EASY", "conservative", "BestFit"])
@pytest.mark.parametrize("seed", range(3))
def test_they_decide_alike_whatever_comes(tmp_path: Path, seed: int, policy: str) -> None:
    random = Random(f"{seed} {policy}")
    queues = [f"q{number}" for number in range(random.randint(1, 3))]
    page = {
        "nodes": f"{random.randint(1, 3)}x4cpu",
        "queues": {name: {"weight": random.randint(1, 3)} for name in queues},
        "jobs": [kind(random, number, queues) for number in range(random.randint(1, 3))],
    }
    _, jobs, _ = both(tmp_path, page, policy)
    assert any(job["state"] == "done" for job in jobs)


@pytest.mark.parametrize("minimum, lost", [({"minimum": 0}, 10), ({}, 20)])
def test_who_is_evicted_comes_back_from_its_checkpoint(tmp_path: Path, minimum: dict[str, int], lost: float) -> None:
    """The job that needs both of its pods loses the work of both."""
    low = {"name": "low", "arrivals": {"at": [0]}, "run": "150s", "pods": 2, "request": {"cpu": 1}, "checkpoint": "30s"} | minimum
    urgent = {"name": "urgent", "arrivals": {"at": [100]}, "run": "50s", "request": {"cpu": 1}, "priority": 10}
    measures, _, _ = both(tmp_path, {"nodes": "1x2cpu", "jobs": [low, urgent]}, EVICTING_GANGS)
    assert measures[""]["lost_work"]["cpu"] == lost


def test_a_job_is_killed_at_its_estimate(tmp_path: Path) -> None:
    job = {"arrivals": {"at": [5]}, "run": "100s", "estimate": 0.5, "pods": 3, "request": {"cpu": 1}}
    _, jobs, _ = both(tmp_path, {"nodes": "1x4cpu", "jobs": [job]}, "EASY", Habits(kill_at_estimate=True))
    assert [(job["state"], job["end"]) for job in jobs] == [("killed", 55)]


def test_who_never_fits_waits_to_the_end(tmp_path: Path) -> None:
    large = {"name": "large", "arrivals": {"at": [0]}, "run": "10s", "request": {"cpu": 9}}
    small = {"name": "small", "arrivals": {"at": [1, 1]}, "run": "10s", "request": {"cpu": 1}}
    _, jobs, _ = both(tmp_path, {"nodes": "1x4cpu", "jobs": [large, small]}, "volcano")
    assert [job["state"] for job in jobs] == ["waiting", "done", "done"]


def test_pods_of_kube_scheduler_are_whole_too(tmp_path: Path) -> None:
    job = {"arrivals": {"at": [0, 0]}, "run": "10s", "request": {"cpu": 1, "nvidia.com/gpu": 1}, "pods": 2, "priority": 7}
    both(tmp_path, {"nodes": "2x4gpu", "jobs": [job]}, "kube-scheduler")
