"""A scheduler that is told to end does so, whatever it is doing."""

from __future__ import annotations

import asyncio

import pytest

from pumice.api.kinds import LEASES
from pumice.live.lifecycle import first, while_leading
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from tests.live.memory import MemoryServer
from tests.live.seat import LOCK, Seat
from tests.live.stories import policy
from tests.live.virtual import VirtualClock, run


class SlowToWake(VirtualClock):
    """A clock whose sleepers need some turns of the event loop to go when they are called off."""

    async def sleep(self, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
        finally:
            for _ in range(3):
                await asyncio.sleep(0)


@pytest.mark.parametrize("waiting", [True, False], ids=["with pods that wait", "idle"])
def test_it_ends_whenever_it_is_told_to_and_leaves_nothing_running(waiting: bool) -> None:
    async def story() -> None:
        for turns in range(120):
            api = MemoryServer()
            api.queue("root")
            api.queue()
            api.node("a", cpu=1)
            if waiting:
                api.gang("train", pods=2)
            scheduler = Scheduler(api, policy(), Options(), SlowToWake())
            task = asyncio.create_task(scheduler.run())
            for turn in range(turns):
                await asyncio.sleep(0)
                if turn % 7 == 6:
                    api.node("a", cpu=1, labels={"turn": str(turn)})  # news come while it goes to sleep
            task.cancel()
            await asyncio.wait([task], timeout=30)
            assert task.cancelled(), f"not ended when told after {turns} turns"
            await asyncio.sleep(1)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, f"after {turns} turns: {left}"

    run(story())


def test_the_lease_is_given_up_before_a_cycle_has_come_to_its_end() -> None:
    """Whoever uninstalls the program takes its role away a moment after it was told to end."""

    async def story() -> None:
        api = MemoryServer()
        seat = Seat(api, "first")
        ended: list[float] = []

        async def a_long_cycle() -> None:
            try:
                await asyncio.sleep(600)
            finally:
                await asyncio.sleep(20)
                ended.append(asyncio.get_running_loop().time())

        leading = asyncio.create_task(while_leading(seat.election, a_long_cycle))
        await seat.election.won.wait()
        await asyncio.sleep(1)
        leading.cancel()
        await asyncio.sleep(0.1)
        assert not seat.election.leading() and api.found(LEASES, LOCK.name, LOCK.namespace)["spec"]["holderIdentity"] == ""
        assert not ended
        await asyncio.wait([leading])
        assert ended and leading.cancelled()

    run(story())


def test_of_works_side_by_side_the_first_failure_is_told_even_if_another_fails_at_its_end() -> None:
    ended: list[str] = []

    async def fails_when_cancelled() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(1)
            ended.append("other")
            raise OSError("at its end")

    async def fails() -> None:
        await asyncio.sleep(1)
        raise ValueError("first")

    async def story() -> None:
        given = asyncio.create_task(asyncio.sleep(60))
        with pytest.raises(ValueError, match="first"):
            await first(fails_when_cancelled(), fails(), given)
        assert ended == ["other"] and not given.done()
        given.cancel()

    run(story())
