"""A whole simulation and a fast one come to the same, job for job and event for event, whatever comes."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pumice.live.whole import play as play_whole
from pumice.simulate.inputs import Source, read_policy
from pumice.simulate.scenario import Player, Scenario, as_objects, play_fast, simulate
from pumice.simulate.simulated_cluster import Habits
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


BY_HISTORY = """\
actions: "in-order"
configurations:
- {name: in-order, arguments: {backfill: easy, estimates: history}}
tiers:
- plugins: [{name: gang}, {name: predicates}]
"""


@pytest.mark.parametrize(("policy", "starts"), [("EASY", (9000, 6000)), (BY_HISTORY, (6100, 9100))])
def test_what_has_ended_tells_how_long_others_run(tmp_path: Path, policy: str, starts: tuple[float, float]) -> None:
    """Nobody says how long jobs run. Five short and five long ones have ended when one comes that needs the whole node; it is promised
    room only where their ends are known, and then a long one must not go before it."""
    ann = {"user": "ann", "request": {"cpu": 1}}
    short = {"name": "short", "arrivals": {"at": [0] * 5}, "run": "600s"} | ann
    long = {"name": "long", "arrivals": {"at": [0] * 5 + [6000]}, "run": "3000s"} | ann
    runs = {"name": "runs", "arrivals": {"at": [5500]}, "run": "600s"} | ann | {"request": {"cpu": 6}}
    whole = {"name": "whole", "arrivals": {"at": [5900]}, "run": "3000s", "request": {"cpu": 10}, "user": "bob"}
    found = both(tmp_path, {"nodes": "1x10cpu", "jobs": [short, long, runs, whole]}, policy)[1]
    assert [job["start"] for job in found if job["job"] in ("whole-000000", "long-000005")] == list(starts)


def past_counts(plugin: str, half_life: str = "") -> str:
    arguments = f", arguments: {{usage.halfLife: {half_life}}}" if half_life else ""
    return f'actions: "allocate"\ntiers:\n- plugins: [{{name: gang}}, {{name: {plugin}{arguments}}}]\n'


@pytest.mark.parametrize(("plugin", "by"), [("drf", "user"), ("capacity", "queue")])
def test_who_used_more_before_waits_where_the_past_counts(tmp_path: Path, plugin: str, by: str) -> None:
    """Nobody holds anything when two jobs come at once; that of early is the first by name, and its first has ended."""
    times = {"a": (0, "early"), "b": (7200, "early"), "c": (7200, "late")}
    jobs = [{"name": name, "arrivals": {"at": [at]}, "run": "1h", by: whose, "request": {"cpu": 1}} for name, (at, whose) in times.items()]
    page = {"nodes": "1x1cpu", "queues": {name: {"deserved": {"cpu": 1}} for name in ("early", "late")}, "jobs": jobs}
    orders = []
    for policy in (past_counts(plugin), past_counts(plugin, "1h")):
        fast, whole = played(play_fast, tmp_path, page, policy), played(play_whole, tmp_path, page, policy)
        assert whole[1:] == fast[1:]
        orders.append([job["job"][0] for job in sorted(whole[1], key=lambda job: job["start"])])
    assert orders == [["a", "b", "c"], ["a", "c", "b"]]


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
