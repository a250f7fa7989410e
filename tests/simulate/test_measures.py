"""What is measured, on sheets of paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from pumice.cli.main import cli
from pumice.simulate.measures import distribution
from pumice.simulate.result_sentences import of_run
from pumice.simulate.time_series import by_weight, jains_index

STATISTICS = ["mean", "p50", "p90", "p95", "p99", "max"]
TRACE = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 00:00:00,100,4,400,a
2017-10-09 00:00:00,100,2,200,b
"""


def simulated(*words: str) -> Any:
    return json.loads(CliRunner().invoke(cli, ["simulate", "-o", "json", *words], catch_exceptions=False).stdout)


def test_every_measure_is_there_by_its_name(tmp_path: Path) -> None:
    """Queue a has all four GPUs for 100 s, then b the two that it asks for. Half of the jobs could not use what is then idle."""
    path = tmp_path / "philly.csv"
    path.write_text(TRACE)
    found = simulated("--workload", f"philly:{path}", "--nodes", "1x4gpu", "--policy", "FIFO", "--out", str(tmp_path / "out"))
    measures = found["measures"]
    assert [job["start"] for job in found["jobs"]] == [0, 100]
    assert measures["wait"] == {"mean": 50, "p50": 0, "p90": 100, "p95": 100, "p99": 100, "max": 100}
    assert measures["turnaround"] == {"mean": 150, "p50": 100, "p90": 200, "p95": 200, "p99": 200, "max": 200}
    assert measures["bounded_slowdown"] == {"mean": 1.5, "p50": 1, "p90": 2, "p95": 2, "p99": 2, "max": 2}
    assert measures["utilisation"]["gpu"] == 0.75 and measures["goodput"]["gpu"] == 600 and measures["lost_work"]["gpu"] == 0
    assert measures["makespan"] == 200
    assert measures["fragmentation"] == {"mean": 0.5, "p50": 0, "p90": 1, "p95": 1, "p99": 1, "max": 1}
    assert measures["fairness"] == {"mean": 0.5, "p50": 0, "p90": 1, "p95": 1, "p99": 1, "max": 1}
    assert found["queues"]["a"]["fairness"]["mean"] == 1 and found["queues"]["b"]["fairness"]["mean"] == -1
    series = [line.split(",") for line in (tmp_path / "out/series.csv").read_text().splitlines()]
    assert ["0", "deserved", "gpu", "a", "2"] in series and ["100", "deserved", "gpu", "a", "0"] in series


def test_a_queue_deserves_what_it_is_said_to(tmp_path: Path) -> None:
    """Of four GPUs queue a deserves three, and asks for two; b deserves one and asks for four."""
    page = tmp_path / "page.yaml"
    page.write_text(
        "nodes: 1x4gpu\n"
        "queues: {a: {deserved: {nvidia.com/gpu: 3}}, b: {deserved: {nvidia.com/gpu: 1}}}\n"
        "jobs:\n"
        "- {name: b, arrivals: {at: [0]}, run: 100, request: {nvidia.com/gpu: 4}, queue: b}\n"
        "- {name: a, arrivals: {at: [0]}, run: 100, request: {nvidia.com/gpu: 2}, queue: a}\n"
    )
    found = simulated("--workload", f"yaml:{page}", "--policy", "FIFO")["queues"]
    assert (found["b"]["fairness"]["max"], found["a"]["fairness"]["p50"], found["a"]["fairness"]["max"]) == (3, -2, 0)


def test_parts_by_weight() -> None:
    assert by_weight(12.0, np.array([20.0, 1.0, 20.0]), [1, 5, 3]).tolist() == [2.75, 1.0, 8.25]
    assert by_weight(12.0, np.zeros(0), []).tolist() == []


def test_jains_index() -> None:
    assert jains_index(np.array([3.0, 3.0])) == jains_index(np.zeros(2)) == jains_index(np.zeros(0)) == 1.0
    assert jains_index(np.array([0.0, 0.0, 0.0, 5.0])) == 0.25


@pytest.mark.parametrize(("weights", "middle"), [(None, 2.0), ([1.0, 1.0, 8.0], 3.0)])
def test_percentiles_are_the_smallest_values_that_so_many_do_not_exceed(weights: list[float] | None, middle: float) -> None:
    found = distribution([3.0, 1.0, 2.0], None if weights is None else [weights[2], weights[0], weights[1]])
    assert (found["p50"], found["max"], found["mean"]) == (middle, 3.0, 2.0 if weights is None else 2.7)
    assert distribution([]) == dict.fromkeys(STATISTICS)


@pytest.mark.parametrize(
    ("jobs", "waiting", "wait", "sentence"),
    [
        (0, 0, {}, "No jobs were simulated."),
        (3, 3, {"max": None}, "3 jobs never started."),
        (3, 1, {"max": 0.0}, "None of the 2 jobs that started waited. 1 job never started."),
        (3, 0, {"max": 0.0}, "None of the 3 jobs waited."),
        (
            *(3, 1, {"max": 9.0, "p50": 0.0, "p95": 9.0}),
            "Half of the 2 jobs that started did not wait, one in twenty waited 9 s or longer. 1 job never started.",
        ),
    ],
)
def test_a_run_is_told_in_words_also_where_nobody_started(jobs: int, waiting: int, wait: dict[str, Any], sentence: str) -> None:
    measures = {"jobs": jobs, "waiting": waiting, "wait": wait, "utilisation": {}, "evictions": 0}
    assert of_run({"measures": measures}) == sentence
