"""The queues `root` and `default` are there whenever definitions of queues are: before, after, and again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pumice.api.kinds import POD_GROUPS, QUEUES
from pumice.live.scheduler.options import Options
from pumice.live.scheduler.scheduler_replica import Replica, SchedulerSettings
from tests.live.memory import MemoryServer
from tests.live.stories import policy, until
from tests.live.virtual import run

DEFINED = {QUEUES.plural, POD_GROUPS.plural}


@asynccontextmanager
async def working(api: MemoryServer) -> AsyncIterator[Replica]:
    replica = Replica(None, SchedulerSettings(Options(), policy, lambda: ""))  # type: ignore[arg-type]
    work = asyncio.ensure_future(replica._work(api, policy()))  # type: ignore[arg-type]
    yield replica
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


def names(api: MemoryServer) -> set[str]:
    return {queue["metadata"]["name"] for queue in api.all(QUEUES)}


def test_definitions_that_come_after_the_scheduler_are_used() -> None:
    async def story() -> None:
        api = MemoryServer()
        api.missing |= DEFINED
        async with working(api) as replica:
            await asyncio.sleep(60)
            assert replica.ready() == "the first queues are being made"
            api.missing.clear()
            await until(lambda: names(api) == {"root", "default"} and not replica.ready())

    run(story())


def test_definitions_that_are_deleted_and_made_again_leave_no_scheduler_without_queues() -> None:
    async def story() -> None:
        api = MemoryServer()
        async with working(api) as replica:
            await until(lambda: not replica.ready() and names(api) == {"root", "default"})
            await asyncio.sleep(60)
            api.missing |= DEFINED
            for name in names(api):
                api.remove(QUEUES, name)
            await asyncio.sleep(200)
            api.missing.clear()
            await until(lambda: names(api) == {"root", "default"})
            made = api.writes.count(("create", QUEUES.plural, "", "root"))
            await asyncio.sleep(600)
            assert api.writes.count(("create", QUEUES.plural, "", "root")) == made, "queues that are there are not made again"

    run(story(), limit_s=3600)
