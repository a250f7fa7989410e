"""Forecasts that are made on the way, and what becomes of them, in the state that a scheduler shows."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.answers.forecast_events import forecast_events
from pumice.answers.past_forecasts import past_forecasts
from pumice.api.annotations import ESTIMATE
from pumice.api.kinds import POD_GROUPS, PODS
from pumice.api.times import rfc3339
from pumice.cli.main import cli
from pumice.inputs.recording.state_file import dump
from pumice.live.scheduler import background_answers
from pumice.live.scheduler.background_answers import Forecasts
from tests.live.memory import MemoryServer
from tests.live.stories import scheduling, server, until
from tests.live.virtual import VirtualClock, run

HALF_AN_HOUR = 1800.0


def job(api: MemoryServer, name: str) -> None:
    """It takes all, and says that it runs for half an hour."""
    metadata = {"annotations": {ESTIMATE: "30m"}, "creationTimestamp": rfc3339(VirtualClock().now())}
    api.put(POD_GROUPS, name, metadata=metadata, spec={"minMember": 1, "queue": "default"})
    api.pod(f"{name}-0", 2, group=name)


def leave(api: MemoryServer, name: str) -> None:
    api.remove(PODS, f"{name}-0")
    api.remove(POD_GROUPS, name)


def test_what_becomes_of_jobs_that_wait_is_seen_and_shown(tmp_path: Path) -> None:
    """The one that runs was to end after half an hour, and ends after two."""

    async def story() -> None:
        api = server("a", cpu=2)
        async with scheduling(api) as scheduler:
            job(api, "runs")
            await until(lambda: bool(api.placed("runs")))
            making, known = asyncio.create_task(Forecasts(scheduler).run()), past_forecasts(scheduler.cluster)
            for name in ("waits", "leaves"):
                await asyncio.sleep(1)
                job(api, name)
            await until(lambda: len(known) == 2, within_s=700, every_s=1.0)
            first, second = sorted(known, key=lambda each: each.latest_s)
            assert (first.job, first.started, second.job) == ("default/waits", None, "default/leaves")
            assert 1100 < first.latest_s < 1300
            assert second.latest_s > 2900
            expected, of_waits = scheduler.metrics.expected, ("waits", "default", "default")
            assert expected.value(*of_waits, "slowest") == first.at + first.latest_s >= expected.value(*of_waits, "median") > first.at
            leave(api, "leaves")
            await asyncio.sleep(2 * 3600)
            job(api, "later")
            leave(api, "runs")
            await until(lambda: first.started is not None, within_s=700, every_s=1.0)
            assert first.ratio(0.0) > 5
            await until(lambda: [each.job for each in known] == ["default/waits", "default/later"], within_s=700, every_s=1.0)
            making.cancel()
            (tmp_path / "state.json").write_bytes(dump(scheduler.cluster, "", forecast_events(scheduler.cluster)))

    run(story(), 6 * 3600)
    listing = json.loads((tmp_path / "state.json").read_text())
    assert len([item for item in listing["items"] if item["kind"] == "Event"]) == 2
    keep_raw = CliRunner().invoke(cli, ["eta", "job/later", "-f", str(tmp_path / "state.json")])
    assert keep_raw.stdout.splitlines()[-1] == "The 90 % are corrected by the outcomes of 2 earlier forecasts."


def test_a_large_cluster_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        api = server("a", cpu=2)
        async with scheduling(api) as scheduler:
            job(api, "runs")
            job(api, "waits")
            making = asyncio.create_task(Forecasts(scheduler).run())
            await asyncio.sleep(HALF_AN_HOUR)
            assert not len(past_forecasts(scheduler.cluster))
            making.cancel()

    monkeypatch.setattr(background_answers, "LARGEST", 2)
    run(story(), 6 * 3600)


def test_a_fault_in_forecasting_stops_nobody_and_is_told_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        api = server("a", cpu=2)
        async with scheduling(api) as scheduler:
            making = asyncio.create_task(Forecasts(scheduler).run())
            await asyncio.sleep(HALF_AN_HOUR)
            assert not making.done()
            job(api, "runs")
            await until(lambda: bool(api.placed("runs")))
            making.cancel()

    monkeypatch.setattr(background_answers, "_who_is_asked_about", None)
    with caplog.at_level(logging.ERROR):
        run(story(), 6 * 3600)
    assert [record.message for record in caplog.records] == ["it could not be forecast when jobs start"]
