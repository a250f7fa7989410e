"""Jobs that arrive together: each gets its minimum at once, and nobody gets more before all have come."""

from __future__ import annotations

import asyncio

import pytest

from pumice.api.kinds import PODS
from pumice.live.scheduler.options import Options
from tests.live.memory import MemoryServer
from tests.live.stories import scheduling, server, until
from tests.live.virtual import run

JOBS = ("one", "two", "three")


def job(api: MemoryServer, name: str, minimum: int = 2) -> None:
    api.gang(name, pods=0, minimum=minimum)


async def pods(api: MemoryServer, name: str, count: int, pause_s: float) -> None:
    """A controller makes them, fast or slowly."""
    for number in range(count):
        await asyncio.sleep(pause_s)
        api.pod(f"{name}-{number}", group=name)


@pytest.mark.parametrize("pause_s", [0.0, 0.004, 0.06, 0.4])
@pytest.mark.parametrize("between_s", [0.0, 0.05, 0.7])
def test_three_elastic_jobs_share_a_cluster_that_is_too_small_for_all(pause_s: float, between_s: float) -> None:
    async def story() -> None:
        api = server("a", "b", cpu=8)
        async with scheduling(api) as scheduler:
            await scheduler.synced.wait()
            making = []
            for name in JOBS:
                job(api, name)
                making.append(asyncio.create_task(pods(api, name, 16, pause_s)))
                await asyncio.sleep(between_s)
            await asyncio.gather(*making)
            await until(lambda: len(api.placed()) == 16, within_s=5)
            assert min(len(api.placed(name)) for name in JOBS) >= 2
        assert not api.breaches

    run(story())


def test_the_minimum_is_placed_at_once_and_the_rest_when_the_period_is_over() -> None:
    async def story() -> None:
        api = server("a", cpu=9)
        async with scheduling(api) as scheduler:
            await scheduler.synced.wait()
            began = scheduler.clock.now()
            api.gang("train", pods=5, minimum=2)
            await until(lambda: len(api.placed()) == 2)
            assert scheduler.clock.now() - began < 0.1
            assert not any(c["type"] == "PodScheduled" for c in api.found(PODS, "train-4")["status"].get("conditions", ()))
            await until(lambda: len(api.placed()) == 5)
            assert 1.0 <= scheduler.clock.now() - began < 1.1
            api.pod("train-5", group="train")
            await until(lambda: len(api.placed()) == 6)
            assert scheduler.clock.now() - began < 1.3, "nobody has come since"

    run(story())


def test_a_job_that_leaves_room_for_another_starts_whole_at_once() -> None:
    async def story() -> None:
        api = server("a", "b", cpu=8)
        async with scheduling(api) as scheduler:
            await scheduler.synced.wait()
            began = scheduler.clock.now()
            api.gang("train", pods=4, minimum=1)
            await until(lambda: len(api.placed()) == 4)
            assert scheduler.clock.now() - began < 0.1

    run(story())


@pytest.mark.parametrize("period_s", [0.5, 2.0])
def test_a_job_whose_pods_never_come_and_jobs_without_end_hold_nobody_up_for_ever(period_s: float) -> None:
    async def story() -> None:
        api = server("a", cpu=90)
        async with scheduling(api, options=Options(period_s=period_s)) as scheduler:
            await scheduler.synced.wait()
            began = scheduler.clock.now()
            api.gang("train", pods=3, minimum=1)
            job(api, "lost")
            await until(lambda: len(api.placed("train")) == 3)
            assert 9.9 <= (scheduler.clock.now() - began) / period_s <= 10.3
            began = scheduler.clock.now()
            for number in range(40):
                api.gang(f"next{number}-x", pods=2, minimum=1)
                await asyncio.sleep(period_s / 2)
            assert len(api.placed("next")) > 50

    run(story())
