"""Why a job waits, as an event and a metric, some seconds after it came; and who can never run."""

from __future__ import annotations

import asyncio
import logging
from importlib import import_module

import pytest

from pumice.api.kinds import EVENTS, POD_GROUPS
from pumice.api.times import rfc3339
from pumice.live.scheduler.background_answers import Headlines
from tests.live.memory import MemoryServer
from tests.live.stories import scheduling, server, until
from tests.live.virtual import run


def notes(api: MemoryServer, reason: str) -> dict[str, str]:
    """By PodGroup."""
    return {event["involvedObject"]["name"]: event["message"] for event in api.all(EVENTS) if event["reason"] == reason}


def test_each_job_that_waits_is_told_why_and_counted() -> None:
    async def story() -> None:
        api = server("a", cpu=2)
        async with scheduling(api) as scheduler:
            await scheduler.synced.wait()
            began = scheduler.clock.now()
            telling = asyncio.create_task(Headlines(scheduler).run())
            for name, cpu in (("runs", 2), ("later", 2), ("huge", 3)):
                api.put(POD_GROUPS, name, metadata={"creationTimestamp": rfc3339(began)}, spec={"minMember": 1, "queue": "default"})
                api.pod(f"{name}-0", cpu, group=name)
                await asyncio.sleep(1)
            await until(lambda: bool(notes(api, "Waits") and notes(api, "NeverFits")))
            assert scheduler.clock.now() - began >= 10
            assert notes(api, "Waits") == {
                "later": "queue default deserves 2 cpu by its weight (all of the cluster), and holds 2; it asks for 2 (2 short)"
            }
            assert notes(api, "NeverFits")["huge"].startswith("podgroup/huge can never run here: it must start with 3 cpu")
            because = scheduler.metrics.waiting_because
            of_default = ("default", "default")
            assert because.value("quota", *of_default) == 2 and scheduler.metrics.never_fit.value(*of_default) == 1
            await asyncio.sleep(300)
            keep_raw = [event for event in api.all(EVENTS) if event["reason"] in ("Waits", "NeverFits")]
            assert [event["count"] for event in keep_raw] == [1, 1], "they are left alone for ten minutes"
            api.node("b", cpu=6)
            await until(lambda: len(api.placed()) == 3)
            await until(lambda: not because.value("quota", *of_default))
            assert not scheduler.metrics.never_fit.value(*of_default)
            telling.cancel()
        assert not api.breaches

    run(story())


def test_a_fault_in_asking_stops_nobody_and_is_told_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        api = server("a", cpu=2)
        async with scheduling(api) as scheduler:
            telling = asyncio.create_task(Headlines(scheduler).run())
            for name in ("one", "other"):
                api.gang(name, 1, cpu=9)
            await asyncio.sleep(60)
            assert not telling.done() and not notes(api, "Waits")
            api.gang("small", 1)
            await until(lambda: bool(api.placed("small")))
            telling.cancel()

    monkeypatch.setattr(import_module("pumice.answers.why"), "why", None)
    with caplog.at_level(logging.ERROR):
        run(story())
    assert [record.message for record in caplog.records] == ["why PodGroup default/one waits could not be found out"]
