"""Recordings of stories in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path

from pumice.client.transport import Transport
from pumice.extensions import plugins
from pumice.inputs.recording.file_format import Retention
from pumice.inputs.recording.replay import Replay, decide, differences
from pumice.live.scheduler.black_box import black_box
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from pumice.scheduler.config import config_text, read_configurations
from pumice.scheduler.config.volcano_conf import DEFAULT
from pumice.scheduler.framework.policy import Policy
from tests.live.stories import running
from tests.live.virtual import VirtualClock, run

RETENTION = Retention()


@cache
def policy_of(*texts: str) -> Policy:
    return read_configurations([config_text(text, "story") for text in texts], plugins(None))[0]


def recorded(
    folder: Path,
    api: Transport,
    story: Callable[[Scheduler], Awaitable[object]],
    conf: str = DEFAULT,
    options: Options | None = None,
    retention: Retention = RETENTION,
) -> Scheduler:
    """The scheduler at the end of a story that was recorded into the folder."""
    options = options or Options()

    async def play() -> Scheduler:
        clock = VirtualClock()
        with black_box(str(folder), options, clock.now, retention) as box:
            async with running(Scheduler(api, policy_of(conf), options, clock, keeper=box)) as scheduler:
                await scheduler.synced.wait()
                await story(scheduler)
                await scheduler.step()
        return scheduler

    told: Scheduler = run(play(), limit_s=1e6)
    return told


async def a_minute(scheduler: Scheduler) -> None:
    await asyncio.sleep(60)


def all_alike(replay: Replay) -> int:
    """How many cycles there are; each must be decided as it was recorded, on a state without a fault."""
    count = 0
    for cycle in replay.cycles():
        replay.cluster.check()
        now = decide(replay, cycle, policy_of(*replay.begin.configurations))
        assert differences(cycle, now) == [], f"cycle {cycle.number}"
        count += 1
    return count
