"""One pod that one rule refuses, one thing that happens, and whether the pod is tried again: the stories of queueing hints.

`p0` is the pod that waits. Others stand where they are said to from the beginning, placed by somebody else, so that nothing happens in a
story but what it says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from pumice.extensions import plugins
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from pumice.scheduler.config import config_text, read_configurations
from pumice.scheduler.framework.cluster_events import EventKind
from tests.live.crowds import Spec, pod
from tests.live.memory import MemoryServer
from tests.live.situations import KUBE
from tests.live.stories import running, until
from tests.live.virtual import VirtualClock, run

WELL_BEFORE_PATIENCE_S = 20.0  #: longer than any back-off
ITS_TIME_S = 1000.0  #: that a pod takes to go when it is asked to
Act = Callable[[MemoryServer], Any]


class Story(NamedTuple):
    """A pod that `by` alone refuses. `then` is all that happens; `how` tells it from others of its kind."""

    by: str
    what: EventKind
    there: tuple[Act, ...]
    then: Act
    conf: str = KUBE
    how: str = ""

    def __str__(self) -> str:
        return self.how or f"{self.by}-{self.what.name.lower().replace('_', '-')}"


def act(what: Callable[..., Any], *details: Any, **more: Any) -> Act:
    return lambda api: what(api, *details, **more)


def waits(spec: Spec | None = None, cpu: int = 1, colour: str = "red") -> Act:
    return act(pod, 0, cpu, colour, spec or {})


def stands(number: int, node: str, colour: str = "blue", spec: Spec | None = None, cpu: int = 1) -> Act:
    return act(pod, number, cpu, colour, {"nodeName": node, **(spec or {})})


async def _refused(api: MemoryServer, scheduler: Scheduler, story: Story) -> None:
    """Once, by that rule alone, and not tried since."""
    queue = scheduler.scheduling_queue
    await until(lambda: any(entry.task.name == "p0" for entry in queue.waiting.values()))
    await asyncio.sleep(WELL_BEFORE_PATIENCE_S)
    entries = {entry.task.name: (entry.refusals, set(entry.refused_by)) for entry in queue.waiting.values()}
    assert entries["p0"] == (1, {story.by})


def _scheduler(api: MemoryServer, story: Story) -> Scheduler:
    for build in story.there:
        build(api)
    policy, _ = read_configurations([config_text(story.conf, "story")], plugins(None))
    return Scheduler(api, policy, Options(schedulers=("default-scheduler",)), VirtualClock())


def is_tried_again_and_gets_a_node(story: Story) -> None:
    async def keep_raw() -> None:
        api = MemoryServer(stop_s=ITS_TIME_S)
        async with running(_scheduler(api, story)) as scheduler:
            await _refused(api, scheduler, story)
            story.then(api)
            await until(lambda: bool(scheduler.cluster.tasks["default/p0"].node_name), WELL_BEFORE_PATIENCE_S)
            scheduler.cluster.check()

    run(keep_raw())


def is_left_waiting(story: Story) -> None:
    async def keep_raw() -> None:
        api = MemoryServer(stop_s=ITS_TIME_S)
        async with running(_scheduler(api, story)) as scheduler:
            await _refused(api, scheduler, story)
            story.then(api)
            await _refused(api, scheduler, story)

    run(keep_raw())
