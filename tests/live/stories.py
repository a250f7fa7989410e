"""A scheduler running over a server in memory, for as long as a story lasts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from pumice.client.transport import Transport
from pumice.extensions import plugins
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from pumice.scheduler.config.volcano_conf import DEFAULT, read_policy
from pumice.scheduler.framework.policy import Policy
from tests.live.memory import MemoryServer
from tests.live.virtual import VirtualClock

PREEMPTING = DEFAULT.replace("allocate, backfill", "allocate, preempt, reclaim, backfill")


def policy(conf: str = DEFAULT) -> Policy:
    return read_policy(conf, plugins(None))[0]


def server(*nodes: str, cpu: int = 2, **options: Any) -> MemoryServer:
    """With the queues that are always there, and these nodes."""
    api = MemoryServer(**options)
    api.queue("root")
    api.queue()
    for name in nodes:
        api.node(name, cpu=cpu)
    return api


S = TypeVar("S", bound=Scheduler)


@asynccontextmanager
async def running(scheduler: S) -> AsyncIterator[S]:
    deciding = asyncio.create_task(scheduler.run())
    try:
        yield scheduler
    finally:
        if deciding.done():
            deciding.result()
        deciding.cancel()
        await asyncio.gather(deciding, return_exceptions=True)


@asynccontextmanager
async def scheduling(transport: Transport, conf: str = DEFAULT, options: Options | None = None, **more: Any) -> AsyncIterator[Scheduler]:
    async with running(Scheduler(transport, policy(conf), options or Options(check_every=1), VirtualClock(), **more)) as scheduler:
        yield scheduler


async def until(condition: Callable[[], bool], within_s: float = 120.0, every_s: float = 0.01) -> None:
    """Wait for something that is going to happen, in virtual time."""
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(every_s)
