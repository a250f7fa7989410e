"""A gang of which only some pods were bound when the lead was lost: the successor finishes it or gives it back, within a minute."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pumice.api.kinds import EVENTS, POD_GROUPS, PODS, PRIORITY_CLASSES
from pumice.client.failures import NoAnswer
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from tests.live.memory import MemoryServer
from tests.live.seat import Seat
from tests.live.stories import policy, running, server, until
from tests.live.virtual import VirtualClock, run

OWNED = {"ownerReferences": [{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "g", "uid": "u", "controller": True}]}


async def cut_short(api: MemoryServer, placed: int) -> None:
    """A leader binds so many pods of a gang of 32, then it is cut off for good."""
    seat, bound = Seat(api, "first"), [0]

    def cut(verb: str, resource: Any, name: str) -> None:
        if (verb, resource.plural) == ("create", "pods"):
            if bound[0] == placed:
                seat.cut_off()
                raise NoAnswer("cut", sent=False)
            bound[0] += 1

    api.before_write = cut
    electing = asyncio.create_task(seat.election.run())
    await seat.election.won.wait()
    deciding = asyncio.create_task(Scheduler(seat, policy(), Options(), VirtualClock()).run())
    await until(lambda: not seat.election.leading())
    for task in (electing, deciding):
        task.cancel()
    await asyncio.gather(electing, deciding, return_exceptions=True)
    api.before_write = lambda verb, resource, name: None
    assert len(api.placed("g")) == placed


@asynccontextmanager
async def successor(api: MemoryServer) -> AsyncIterator[Scheduler]:
    seat = Seat(api, "second")
    electing = asyncio.create_task(seat.election.run())
    await seat.election.won.wait()
    async with running(Scheduler(seat, policy(), Options(), VirtualClock())) as scheduler:
        yield scheduler
    electing.cancel()
    await asyncio.gather(electing, return_exceptions=True)


def test_the_successor_finishes_the_gang_before_it_begins_others() -> None:
    async def story() -> None:
        api = server("a", "b", cpu=20)
        api.gang("g", pods=32)
        await cut_short(api, 21)
        api.gang("other", pods=10, priorityClassName="high")  # which fits only as long as the rest of the gang does not
        api.put(PRIORITY_CLASSES, "high", value=1000)
        async with successor(api):
            await until(lambda: len(api.placed("g")) == 32, within_s=60)
            assert not api.placed("other")

    run(story())


def test_the_successor_gives_the_places_back_when_the_rest_finds_no_room() -> None:
    async def story() -> None:
        api = server("a", "b", cpu=20)
        api.gang("g", pods=32)
        api.put(POD_GROUPS, "g", spec=api.found(POD_GROUPS, "g")["spec"], metadata=OWNED)
        await cut_short(api, 21)
        for number in range(10):
            api.pod(f"foreign-{number}", node="b", scheduler="other")
        async with successor(api):
            await asyncio.sleep(30)
            assert len(api.placed("g")) == 21
            await until(lambda: not api.placed("g"), within_s=60)
            keep_raw = "21 of 32 pods had nodes when placing was cut short; for 60 s the others found none"
            await until(lambda: keep_raw in [event["message"] for event in api.all(EVENTS)], within_s=10)

    run(story())


def test_pods_that_nobody_makes_anew_keep_their_places() -> None:
    async def story() -> None:
        api = server("a", "b", cpu=20)
        api.gang("g", pods=32)
        await cut_short(api, 21)
        for number in range(10):
            api.pod(f"foreign-{number}", node="b", scheduler="other")
        async with successor(api):
            await asyncio.sleep(180)
            assert len(api.placed("g")) == 21
            for number in range(10):
                api.remove(PODS, f"foreign-{number}")
            await until(lambda: len(api.placed("g")) == 32, within_s=10)

    run(story())
