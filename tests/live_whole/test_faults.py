"""What goes wrong: in both speeds alike where both have it, and whatever happens every job ends once and no node holds too much."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.api.errors import InputError
from pumice.cli.compare import compare
from pumice.cli.simulate import simulate
from pumice.live.whole import jobs, play
from pumice.simulate.scenario import Player, play_fast
from pumice.simulate.simulated_cluster import SimulatedCluster
from tests.live.stories import PREEMPTING
from tests.live_whole.test_whole_and_fast import both, played

OF_BOTH: dict[str, dict[str, Any]] = {
    "nodes": {"nodes": {"lost": "60/h", "back": "45s"}},
    "stragglers": {"stragglers": {"share": 0.3, "factor": 3}},
    "estimates": {"estimates": {"lognormal": 1, "sigma": 0.5}},
    "scheduler": {"scheduler": {"restarts": "60/h", "away": "15s"}},
    "clock": {"clock": "5s"},
}
OF_OBJECTS: dict[str, dict[str, Any]] = {
    "events": {"events": {"late": 0.2, "by": "3s", "lost": 0.1}},
    "api": {"api": {"slow": {"exponential": "300ms"}, "errors": 0.2}},
    "link": {"link": {"clogged": "60/h", "for": {"uniform": ["5s", "40s"]}}},
}
RARE = {"nodes": {"lost": "10/h", "back": "45s"}}  #: so that work of minutes without checkpoints ends at all
KINDS: list[dict[str, Any]] = [
    {"name": "gang", "arrivals": {"every": "7s"}, "count": 12, "run": {"choice": {"20s": 1, "60s": 1}}, "pods": {"choice": {1: 1, 3: 1}}},
    {
        "name": "elastic",
        "arrivals": {"every": "20s"},
        "count": 5,
        "run": "40s",
        "pods": 2,
        "minimum": 1,
        "checkpoint": "10s",
        "priority": 5,
    },
]
PAGE = {"nodes": "3x4cpu", "jobs": [kind | {"request": {"cpu": 1}} for kind in KINDS]}
PLAYERS: dict[str, Player] = {"fast": play_fast, "whole": play}


@pytest.mark.parametrize("fault", sorted(OF_BOTH.keys() - {"nodes"}))
def test_both_speeds_have_the_same_faults(tmp_path: Path, fault: str) -> None:
    calm = played(play_fast, tmp_path, PAGE, "EASY")
    assert both(tmp_path, PAGE | {"faults": OF_BOTH[fault]}, "EASY") != calm or fault == "clock"


def test_both_speeds_lose_the_same_nodes(tmp_path: Path) -> None:
    gangs = {"arrivals": {"every": "30s"}, "count": 6, "run": "60s", "pods": {"choice": {1: 1, 3: 1}}, "request": {"cpu": 1}}
    page = {"nodes": "3x4cpu", "jobs": [gangs], "faults": OF_BOTH["nodes"]}
    _, jobs, events = both(tmp_path, page, "volcano")
    assert any("node-fail" in event for event in events) and any(job["evictions"] for job in jobs)


@pytest.mark.parametrize("pods, minimum", [(2, 0), (3, 2)])
def test_a_pod_that_is_done_stays_so_and_counts_for_its_gang_when_its_node_is_lost(tmp_path: Path, pods: int, minimum: int) -> None:
    jobs = {"arrivals": {"at": [0, 10]}, "run": "60s", "pods": pods, "minimum": minimum, "request": {"cpu": 1}}
    faults = OF_BOTH["nodes"] | {"stragglers": {"share": 0.5, "factor": 3}, "seed": 1}
    _, _, events = both(tmp_path, {"nodes": "3x2cpu", "jobs": [jobs], "faults": faults}, "volcano")
    assert any("node-fail" in event for event in events)


@pytest.fixture
def nobody_holds_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """In each of the two speeds, after everything that happens."""
    step, digest = SimulatedCluster.step, jobs.WholeJobs.digest

    def watched_step(world: SimulatedCluster) -> bool:
        more = step(world)
        nodes = world.cluster.nodes
        assert (nodes.used <= nodes.allocatable).all()
        return more

    def watched_digest(users: jobs.WholeJobs) -> bool:
        held: dict[str, int] = defaultdict(int)
        for pod in users._store.all("pods"):
            if pod["status"]["phase"] == "Running":
                held[pod["spec"]["nodeName"]] += 1
        assert max(held.values(), default=0) <= 4
        return digest(users)

    monkeypatch.setattr(SimulatedCluster, "step", watched_step)
    monkeypatch.setattr(jobs.WholeJobs, "digest", watched_digest)


@pytest.mark.usefixtures("nobody_holds_too_much")
@pytest.mark.parametrize("speed", PLAYERS)
@pytest.mark.parametrize("seed", range(2))
def test_every_job_ends_once_whatever_goes_wrong(tmp_path: Path, seed: int, speed: str) -> None:
    faults: dict[str, Any] = {"seed": seed}
    for switch in (*OF_BOTH.values(), RARE, *(OF_OBJECTS.values() if speed == "whole" else ())):
        faults |= switch
    _, rows, events = played(PLAYERS[speed], tmp_path, PAGE | {"faults": faults}, PREEMPTING)
    assert {row["state"] for row in rows} == {"done"}
    ends = Counter(event.split(",")[2] for event in events if event.split(",")[1] == "end")
    assert set(ends.values()) == {1} and len(ends) == len(rows) == 17
    assert played(PLAYERS[speed], tmp_path, PAGE | {"faults": faults}, PREEMPTING)[1:] == (rows, events)


@pytest.mark.parametrize("fault", OF_OBJECTS)
def test_what_goes_wrong_on_the_wire_needs_objects(tmp_path: Path, fault: str) -> None:
    page = PAGE | {"faults": OF_OBJECTS[fault]}
    (tmp_path / "wire.yaml").write_text(json.dumps(page))
    refused = CliRunner().invoke(simulate, ["--workload", f"yaml:{tmp_path}/wire.yaml"]).exception
    assert str(refused) == f"wire.yaml: faults.{fault}: nothing is sent to anybody here; say --whole, or leave it out"
    assert played(play, tmp_path, page, "volcano") != played(play, tmp_path, PAGE, "volcano")


@pytest.mark.parametrize(
    "faults, told",
    [
        ("{nods: 1}", 'there is no setting "nods"; did you mean "nodes"?'),
        ("{nodes: {lost: 2/d}}", "nodes: is a mapping of lost, back"),
        ("{stragglers: {share: 3, factor: 2}}", "3 is no share; write a number from 0 to 1"),
        ("{api: {slo: 1s}}", "api: is a mapping of slow (may be left out), errors (may be left out)"),
    ],
)
def test_a_wrong_switch_is_told_with_its_line(tmp_path: Path, faults: str, told: str) -> None:
    with pytest.raises(InputError) as error:
        played(play_fast, tmp_path, f"nodes: 1x1cpu\njobs: []\nfaults: {faults}\n", "volcano")
    assert told in str(error.value) and ":3:" in str(error.value)


def test_policies_are_compared_in_whole_clusters_too(tmp_path: Path) -> None:
    """In processes of their own; of calls that fail only a whole cluster knows."""
    path = tmp_path / "calls.yaml"
    path.write_text(json.dumps(PAGE | {"faults": OF_OBJECTS["api"]}))
    words = ["--workload", f"yaml:{path}", "--policy", "volcano", "--policy", "FIFO", "--processes", "2", "-o", "json"]
    compared = CliRunner().invoke(compare, [*words, "--whole"], catch_exceptions=False)
    alone = CliRunner().invoke(
        simulate, ["--workload", f"yaml:{path}", "--policy", "FIFO", "--whole", "-o", "json"], catch_exceptions=False
    )
    summaries = json.loads(compared.stdout)["simulations"]
    assert [summary["policy"] for summary in summaries] == ["volcano", "FIFO"]
    assert summaries[1]["measures"] == json.loads(alone.stdout)["measures"]
    with pytest.raises(InputError, match="say --whole"):
        CliRunner().invoke(compare, [*words, "--processes", "1"], catch_exceptions=False)
