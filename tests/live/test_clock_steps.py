"""Somebody sets the machine's time: nothing stands still for it, and nothing is written that comes before what was written."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from pumice.live.clock import WallClock
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from tests.live.stories import policy, running, server, until
from tests.live.virtual import run

HOUR_S = 3600.0


class Machine:
    """A machine whose time can be set; `passed` is what nobody can set."""

    def __init__(self) -> None:
        self.passed = 1000.0
        self.ahead = 1_700_000_000.0

    def clock(self) -> WallClock:
        return WallClock(lambda: self.ahead + self.passed, lambda: self.passed)


def test_time_never_goes_back_and_catches_up_within_ten_times_the_step() -> None:
    machine = Machine()
    clock = machine.clock()
    before = clock.now()
    machine.ahead -= HOUR_S
    seen = [before]
    for _ in range(int(10 * HOUR_S)):
        machine.passed += 1
        seen.append(clock.now())
    steps = [later - earlier for earlier, later in pairwise(seen)]
    assert min(steps) == pytest.approx(0.9, abs=1e-3)
    assert max(steps) == pytest.approx(0.9, abs=1e-3)
    assert clock.now() == pytest.approx(machine.ahead + machine.passed, abs=1e-2)
    machine.passed += 1
    assert clock.now() - seen[-1] == pytest.approx(1, abs=1e-2)


def test_a_step_forward_is_followed_at_once() -> None:
    machine = Machine()
    clock = machine.clock()
    before = clock.now()
    machine.ahead += HOUR_S
    assert clock.now() - before == pytest.approx(HOUR_S)


@pytest.mark.parametrize("step_s", [-HOUR_S, HOUR_S])
def test_pods_are_bound_at_once_though_the_time_was_set(step_s: float) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        ahead = 0.0
        clock = WallClock(lambda: loop.time() + ahead, loop.time)
        api = server("a", cpu=4)
        async with running(Scheduler(api, policy(), Options(), clock)) as scheduler:
            await scheduler.synced.wait()
            api.gang("first", pods=2)
            await until(lambda: len(api.placed("first")) == 2)
            ahead = step_s
            began = loop.time()
            api.gang("second", pods=2)
            await until(lambda: len(api.placed("second")) == 2)
            assert loop.time() - began < 0.2

    run(story())
