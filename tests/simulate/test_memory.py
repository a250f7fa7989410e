"""Memory does not grow with the number of jobs, and what is told of them is the same as if all had been in memory."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from pumice.simulate import rows_in_order
from pumice.simulate.inputs import read_policy
from pumice.simulate.measures import distribution, spread
from pumice.simulate.record import Record
from pumice.simulate.report_charts import charts
from pumice.simulate.rows_in_order import RowsInOrder
from pumice.simulate.scenario import Scenario, play_fast, simulate
from pumice.simulate.spill import AT_ONCE, BLOCK, Spill, SpilledValues
from pumice.simulate.workload import Workload
from tests.page.runs import run_of
from tests.simulate.playing import swf

DRAWS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "all differ": lambda draw, count: draw.exponential(900.0, count),
    "most are 0": lambda draw, count: np.where(draw.random(count) < 0.8, 0.0, draw.exponential(900.0, count)),
    "two values": lambda draw, count: draw.choice([1.0, 1.5], count),
}


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("count", [1, 7, BLOCK + 1, 3 * AT_ONCE + 5])
def test_numbers_on_disk_have_the_distribution_of_those_in_memory(kind: str, count: int) -> None:
    numbers = DRAWS[kind](np.random.default_rng(count), count)
    spill = Spill()
    parts = [SpilledValues(spill), SpilledValues(spill)]
    for part, some in zip(parts, np.split(numbers, [count // 3]), strict=True):
        part.extend(some)
    assert spread(parts) == distribution(numbers)


def test_nothing_has_no_distribution() -> None:
    assert spread([]) == spread([SpilledValues(Spill())]) == distribution([])


@pytest.mark.parametrize("kept", [0, 3, 1000])
def test_rows_go_in_order_wherever_they_wait(monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    monkeypatch.setattr(rows_in_order, "MOST_KEPT", kept)
    came = [(number, f"job-{number}", None, number / 3) for number in range(200)]
    gone: list[tuple[Any, ...]] = []
    rows = RowsInOrder(gone.append)
    for row in Random(7).sample(came, len(came)):
        rows.add(row[0], row)
    assert gone == came


def test_what_waits_or_is_counted_is_not_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of jobs that ended while the first one runs, and numbers."""
    monkeypatch.setattr(rows_in_order, "MOST_KEPT", 100)
    rows, values, before = RowsInOrder(lambda row: None), SpilledValues(Spill()), 0
    tracemalloc.start()
    try:
        for number in range(1, 15_001):
            rows.add(number, (f"job-{number}", None, number / 3))
            values.append(number / 3)
            if number == 5_000:
                before = tracemalloc.get_traced_memory()[0]
        assert tracemalloc.get_traced_memory()[0] - before < 10_000 * 8
    finally:
        tracemalloc.stop()


def test_a_report_of_jobs_in_parts_is_that_of_all_of_them() -> None:
    _, (jobs,), series = run_of(1000, queues=20)
    jobs["lost"] = np.round(jobs["lost"])  # of which sums are exact
    edges = (0, 300, 301, 1000)
    parts = [{name: column[begin:end] for name, column in jobs.items()} for begin, end in pairwise(edges)]
    assert charts(parts, series) == charts([jobs], series)


@pytest.mark.nightly
def test_a_job_that_has_gone_leaves_nothing_in_memory(tmp_path: Path) -> None:
    """Though the first one runs for ever, so that no row can be written before the end."""
    kept = {count: _kept_after(tmp_path, count) for count in (200, 2_000, 20_000)}
    assert kept[20_000] - kept[2_000] < 18_000 * 300


def _kept_after(folder: Path, count: int) -> int:
    """Bytes of Python's objects when a simulation of so many jobs has come to its end."""
    kept = 0

    def player(scenario: Scenario, workload: Workload, record: Record) -> None:
        nonlocal kept
        play_fast(scenario, workload, record)
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]

    jobs = [(0.0, 1, 1e9), *((float(number), 1, 1.5) for number in range(count))]
    scenario = Scenario(swf(folder / f"{count}.swf", jobs), None, read_policy("FIFO")[0], "FIFO")
    tracemalloc.start()
    try:
        simulate(scenario, str(folder / f"out-{count}"), player=player)
    finally:
        tracemalloc.stop()
    return kept
