"""Policies that serve jobs in an order: what theory and a sheet of paper say of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.simulate.simulated_cluster import Habits
from tests.simulate.playing import played, starts, swf

BY_HAND = [(0, 2, 10), (0, 2, 4), (1, 4, 5), (2, 2, 6), (2, 1, 9), (3, 2, 7)]


@pytest.mark.parametrize("nodes", [None, "4x1cpu", "2x2cpu"])
def test_easy_by_hand(tmp_path: Path, nodes: str | None) -> None:
    _, rows = played(swf(tmp_path / "w.swf", BY_HAND), "EASY", nodes)
    assert starts(rows) == [0, 0, 10, 4, 15, 15]


def test_easy_gives_the_room_before_a_promise_once(tmp_path: Path) -> None:
    jobs = [*BY_HAND[:4], (2, 1, 6), BY_HAND[5]]
    assert starts(played(swf(tmp_path / "w.swf", jobs), "EASY")[1]) == [0, 0, 10, 4, 15, 15]


@pytest.mark.parametrize(("policy", "expected"), [("greedy", [0, 0, 11, 4]), ("EASY", [0, 0, 10, 15]), ("FIFO", [0, 0, 10, 15])])
def test_a_job_that_fits_overtakes_a_larger_one_unless_that_is_promised_its_room(tmp_path: Path, policy: str, expected: list[int]) -> None:
    jobs = [*BY_HAND[:3], (2, 2, 7)]
    assert starts(played(swf(tmp_path / "w.swf", jobs), policy)[1]) == expected


def test_in_strict_order_everybody_waits_behind_the_first(tmp_path: Path) -> None:
    summary, rows = played(swf(tmp_path / "w.swf", BY_HAND), "FIFO")
    assert starts(rows) == [0, 0, 10, 15, 15, 21]
    assert "waits behind" in rows[4]["reason"]
    assert summary["measures"]["makespan"] == 28


def test_the_shortest_goes_first(tmp_path: Path) -> None:
    jobs = [(0, 4, 10), (1, 4, 5), (2, 4, 1), (3, 4, 3)]
    assert starts(played(swf(tmp_path / "w.swf", jobs), "SJF")[1]) == [0, 14, 10, 11]


def test_conservative_promises_to_everybody(tmp_path: Path) -> None:
    """The fourth job would end before the first promise, but would put off the second; EASY lets it go."""
    jobs = [(0, 3, 10), (1, 4, 5), (2, 1, 20), (3, 1, 30)]
    assert starts(played(swf(tmp_path / "w.swf", jobs), "conservative")[1]) == [0, 10, 15, 15]
    beside = [(0, 3, 10), (1, 2, 10), (2, 3, 10), (3, 1, 15)]
    assert starts(played(swf(tmp_path / "w.swf", beside), "EASY")[1]) == [0, 10, 20, 3]
    assert starts(played(swf(tmp_path / "w.swf", beside), "conservative")[1]) == [0, 10, 20, 3]
    late = [(0, 3, 10), (1, 2, 10), (2, 4, 10), (3, 1, 22)]
    assert starts(played(swf(tmp_path / "w.swf", late), "EASY")[1])[3] == 3
    assert starts(played(swf(tmp_path / "w.swf", late), "conservative")[1])[3] == 30


def test_whoever_is_first_in_line_starts_as_soon_as_it_fits_whatever_others_are_promised(tmp_path: Path) -> None:
    """The first job ends at 10 instead of 100, so that the third fits at 30: the instant that the fourth was promised."""
    jobs = [(0, 1, 10), (0, 3, 30), (1, 4, 50), (2, 2, 60)]
    rows = played(swf(tmp_path / "w.swf", jobs, [100, 30, 50, 60]), "conservative")[1]
    assert starts(rows) == [0, 0, 30, 80]
    jobs[0] = (0, 1, 100)
    assert starts(played(swf(tmp_path / "w.swf", jobs), "conservative")[1]) == [0, 0, 100, 30]


def test_a_job_that_outlives_its_estimate_is_given_time_or_killed(tmp_path: Path) -> None:
    source = swf(tmp_path / "w.swf", [(0, 4, 100), (1, 4, 5)], [50, 5])
    assert starts(played(source, "EASY")[1]) == [0, 100]
    _, rows = played(source, "EASY", habits=Habits(kill_at_estimate=True))
    assert starts(rows) == [0, 50]
    assert [row["state"] for row in rows] == ["killed", "done"]


def test_a_killed_job_is_as_long_as_it_was_let_run(tmp_path: Path) -> None:
    source = swf(tmp_path / "w.swf", [(0, 4, 100), (0, 4, 100), (0, 4, 30)], [50, 50, 40])
    summary, rows = played(source, "FIFO", habits=Habits(kill_at_estimate=True))
    assert [(row["turnaround"], row["slowdown"]) for row in rows] == [(50, 1), (100, 2), (130, 130 / 30)]
    assert summary["measures"]["bounded_slowdown"]["p50"] == 2
