"""What became of forecasts makes the next ones later or sooner, and no more than is known."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from pumice.answers.past_forecasts import KEPT, PastForecast, PastForecasts, independent

ROLLOUTS = [600.0 * (1 + number) for number in range(9)]  #: the slowest an hour and a half


def came(ratio: float, count: int) -> PastForecasts:
    """Each, one a second, was expected within 1,000 s, and started after so many times as much."""
    found = PastForecasts()
    for number in range(count):
        found.keep(PastForecast(f"default/{number}", float(number), 1000.0, number + 1000.0 * ratio))
    return found


def test_without_a_past_p90_is_what_all_rollouts_reach() -> None:
    assert PastForecasts().quantiles(ROLLOUTS, 0.0) == (3000.0, 5400.0)
    assert PastForecasts().quantiles([0.0] * 9, 0.0) == (0.0, 0.0)
    assert PastForecasts().quantiles([*ROLLOUTS[:8], inf], 0.0) == (3000.0, inf)


def test_it_is_later_where_jobs_came_later_and_sooner_where_they_came_sooner() -> None:
    assert came(1.5, 200).quantiles(ROLLOUTS, 1e6) == (3000.0, 8100.0)
    assert came(0.6, 200).quantiles(ROLLOUTS, 1e6) == (3000.0, pytest.approx(3240.0))
    assert came(0.2, 200).quantiles(ROLLOUTS, 1e6) == (pytest.approx(1080.0), pytest.approx(1080.0)), "P50 is never the later one"


def test_a_few_change_little_and_none_changes_all() -> None:
    assert [came(0.2, count).quantiles(ROLLOUTS, 1e6)[1] for count in (5, 10, 20, 40)] == pytest.approx([5400.0, 5400.0, 5400.0, 4200.0])
    assert came(100.0, 200).quantiles(ROLLOUTS, 1e6)[1] == 8 * 5400.0
    assert came(0.0, 500).quantiles(ROLLOUTS, 1e6)[1] == 5400.0 / 8


def test_those_of_one_instant_count_as_one_if_they_share_their_fate() -> None:
    instants = np.repeat(np.arange(10.0), 8)
    fates = np.tile([0.5, 1.5], 5)
    assert independent(instants, np.repeat(fates, 8)) == pytest.approx(10)
    assert independent(instants, np.tile(np.arange(8.0), 10)) == 80
    assert 10 < independent(instants, np.repeat(fates, 8) + np.tile(np.arange(8.0) / 4, 10)) < 30
    assert independent(instants, np.ones(80)) == 10, "all as one"
    assert [independent(np.zeros(count), np.ones(count)) for count in (0, 1, 8)] == [0, 1, 1]


def test_those_who_still_wait_count_for_as_long_as_they_have() -> None:
    """Half have started early, half wait on: of all jobs, not of those that started, one in ten waits for more."""
    found = came(0.5, 100)
    for number in range(100):
        found.keep(PastForecast(f"default/waits-{number}", float(number), 1000.0))
    assert found.quantiles(ROLLOUTS, 600.0)[1] == 5400.0
    for number in range(80):
        found.started(f"default/waits-{number}", number + 3000.0)
    assert found.quantiles(ROLLOUTS, 3000.0)[1] == 3 * 5400.0


def test_what_is_kept_is_bounded_and_of_one_instant_a_few_count() -> None:
    found = PastForecasts()
    found.made(0.0, {f"default/first-{number}": ROLLOUTS for number in range(100)} | {"default/never": [inf] * 9})
    assert [each.job for each in found] == [f"default/first-{number}" for number in range(0, 100, 13)]
    for at in range(KEPT):
        found.made(float(at), {f"default/{at}": ROLLOUTS})
    assert len(found) == KEPT
    assert next(iter(found)).job == "default/0"


def test_a_job_counts_once_and_by_its_first_start() -> None:
    found = PastForecasts()
    found.made(0.0, {"default/a": ROLLOUTS, "default/b": ROLLOUTS})
    found.made(60.0, {"default/a": ROLLOUTS})
    for at in (90.0, 5000.0):
        found.started("default/a", at)
    found.started("default/unknown", 90.0)
    found.forget("default/b")
    assert [(each.job, each.at, each.started) for each in found] == [("default/a", 0.0, 90.0)]
