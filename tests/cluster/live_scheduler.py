"""The live scheduler in this process, on a stage of its own on the real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from stage import Stage

from pumice.api.kinds import EVENTS
from pumice.client.client import Client
from pumice.client.transport import ListScope, as_dict
from pumice.extensions import plugins
from pumice.live.clock import WallClock
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from pumice.live.scheduler.required_queues import make_queues
from pumice.scheduler.config import config_text, read_configurations
from pumice.scheduler.config.volcano_conf import DEFAULT

PREEMPTING = DEFAULT.replace("allocate, backfill", "allocate, preempt, reclaim, backfill")
#: queues have what their specs say, not what weights make of it
CAPACITY = PREEMPTING.replace("proportion", "capacity")
#: the order of actions in which upstream is tested
TESTED = DEFAULT.replace("allocate, backfill", "allocate, backfill, reclaim, preempt")


@asynccontextmanager
async def scheduling(
    client: Client, namespace: str, conf: str = DEFAULT, *more: str, stop_s: float = 0.0, schedulers: tuple[str, ...] = ("volcano",)
) -> AsyncIterator[tuple[Stage, Scheduler]]:
    """A stage with the default queue open, kubelets, and a scheduler of one or more configurations that uses the story's nodes."""
    stage = Stage(client, namespace, stop_s)
    await stage.set_up()
    await make_queues(client, "default", WallClock())
    await stage.open_queue("default")
    policy, _ = read_configurations([config_text(text, "story") for text in (conf, *more)], plugins(None))
    scheduler = Scheduler(client, policy, Options(schedulers, period_s=0.3, node_labels=(("story", namespace),)))
    work = [asyncio.create_task(scheduler.run()), asyncio.create_task(stage.kubelets())]
    try:
        yield stage, scheduler
        for task in work:
            assert not task.done(), task
    finally:
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        await stage.clear()


async def events(client: Client, namespace: str) -> list[dict[str, Any]]:
    return [as_dict(raw) async for page in client.pages(ListScope(EVENTS, namespace)) for raw in page.items]
