"""The story of docs/recordings.md: two teams share two nodes, and one takes back what the other borrowed."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from pumice.api.kinds import PODS
from pumice.inputs.recording.file_format import Retention
from pumice.live.scheduler.loop import Scheduler
from tests.live.memory import MemoryServer
from tests.live.stories import PREEMPTING, server
from tests.recording.recorded import RETENTION, recorded


async def story(scheduler: Scheduler, api: MemoryServer) -> None:
    api.gang("train", pods=8, minimum=1, queue="research")
    await asyncio.sleep(600)
    api.gang("report", pods=2, queue="finance")
    await asyncio.sleep(600)
    api.gang("huge", pods=3, cpu=5, queue="finance")
    await asyncio.sleep(600)
    for name in api.placed("report"):
        api.remove(PODS, name)
    await asyncio.sleep(600)


def record_week(folder: Path, retention: Retention = RETENTION) -> None:
    random.seed(1)  # when reflectors list anew
    api = server("n1", "n2", cpu=4)
    for name in ("research", "finance"):
        api.queue(name, reclaimable=True)
    recorded(folder, api, lambda scheduler: story(scheduler, api), PREEMPTING, retention=retention)
