"""Cycles and questions beside them leave nothing for the collector of garbage: it comes rarely, and they have arrays of all nodes."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest

from pumice.api.kinds import PODS
from pumice.live.scheduler.background_answers import Forecasts, Headlines
from pumice.scheduler.engine.view import SharedScores
from pumice.scheduler.framework.session import Session
from tests.live.memory import MemoryServer
from tests.live.stories import PREEMPTING, scheduling, server
from tests.live.virtual import run


@pytest.fixture(autouse=True)
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def sessions() -> int:
    """How many sessions there are that still have their nodes."""
    return sum(isinstance(each, Session) and hasattr(each, "nodes") for each in gc.get_objects())


async def days(api: MemoryServer) -> None:
    """Large gangs wait, and small ones come and go; so does a node."""
    async with scheduling(api, PREEMPTING) as scheduler:
        asking = [asyncio.create_task(each.run()) for each in (Headlines(scheduler), Forecasts(scheduler))]
        for number in range(4):
            api.gang(f"large-{number}", 30)
        for number in range(10):
            api.gang(f"small-{number}", 1)
            await asyncio.sleep(30)
            api.remove(PODS, f"small-{number}-0")
            api.node(f"n{number}", cpu=1)
            await asyncio.sleep(30)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


def test_sessions_are_gone_once_they_are_over() -> None:
    before = sessions()
    run(days(server("a", "b", cpu=8)), limit_s=3600)
    assert sessions() <= before + 1
    assert sum(isinstance(each, SharedScores) for each in gc.get_objects()) <= 2
