"""Whatever happens in a cluster, hints and back-offs leave nobody waiting whom a look at everything would place."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from typing import cast

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pumice.extensions import plugins
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from pumice.live.scheduler.watched_resources import sources
from pumice.scheduler.config import config_text, read_configurations
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.kube.scheduling_queue import FORGOTTEN_S, SchedulingQueue
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from tests.live.crowds import THEMES, Step, crowds, node, opened, pod
from tests.live.memory import MemoryServer
from tests.live.situations import KUBE, volume_controller
from tests.live.stories import running
from tests.live.virtual import VirtualClock, run
from tests.samples import times

QUICK, NIGHTLY = times(4), 1500
SETTLED_S = 25.0  #: longer than any back-off, shorter than patience
ENOUGH = 50  #: refusals of each filter in a nightly run

TIGHT = ("room", "priorities")  #: themes of little room

#: what refuses in each theme, besides room
REFUSERS = {
    "room": ("NodeResourcesFit",),
    "taints": ("TaintToleration",),
    "cordons": ("NodeUnschedulable",),
    "selectors": ("NodeAffinity",),
    "priorities": ("NodeResourcesFit", "InterPodAffinity"),
    "near": ("InterPodAffinity",),
    "far": ("InterPodAffinity",),
    "spread": ("PodTopologySpread",),
    "ports": ("NodePorts",),
    "claims": ("VolumeBinding", "VolumeRestrictions", "VolumeZone"),
    "made": ("VolumeBinding",),
    "limits": ("NodeVolumeLimits",),
    "devices": ("DynamicResources",),
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def missed(api: MemoryServer, scheduler: Scheduler, refused: Counter[str]) -> list[str]:
    """Pods that wait for a hint, and that a scheduler which begins now would place or make room for. Empty while anybody is on the way."""
    queue = cast(SchedulingQueue, scheduler.scheduling_queue)
    if queue.next_due() != min((entry.since + FORGOTTEN_S for entry in queue.waiting.values()), default=None):
        return []
    if any(task.status == status.BINDING for task in scheduler.cluster.tasks.values()):
        return []
    refused.update(name for entry in queue.waiting.values() for name in entry.refused_by)
    fresh = Cluster(scheduler.options.schedulers)
    for source in sources(scheduler.options, scheduler.policy):
        for obj in api.all(source.resource):
            item = source.decode(msgspec.Raw(msgspec.json.encode(obj)))
            fresh.put(source.resource.kind, getattr(item, "item", item))
    decided = cycle(fresh, scheduler.policy, scheduler.clock.now())
    placed = [(bind.task, bind.node) for bind in decided.binds] + [(task, node) for task, node in decided.nominations.items() if node]
    return [f"{task.name} to {node}" for task, node in placed if task.uid in queue.waiting]


async def nobody_waits_who_could_be_placed(theme: str, happenings: list[Step], pauses: list[float], refused: Counter[str]) -> None:
    api = MemoryServer(start_s=0.1)
    for number, name in enumerate("ab"):
        barred = theme == "taints" or (theme in TIGHT and name == "b")
        closed = theme == "cordons" or (theme == "spread" and name == "b")
        node(api, name, 1 if theme in TIGHT else 4, zone="xy"[number], tainted=barred, cordoned=closed)
        pod(api, 10 + number, 1, "blue", {})
    policy, _ = read_configurations([config_text(KUBE, "story")], plugins(None))
    options = Options(schedulers=("default-scheduler",), volume_timeout_s=5.0)
    beside = asyncio.create_task(volume_controller(api))
    async with running(Scheduler(api, policy, options, VirtualClock())) as scheduler:
        for number, (act, details) in enumerate([*happenings, (opened, (0,))]):
            act(api, *details)
            pause_s = pauses[number % len(pauses)] if pauses and number < len(happenings) else SETTLED_S
            await asyncio.sleep(pause_s)
            if pause_s == SETTLED_S:
                assert not missed(api, scheduler, refused)
        scheduler.cluster.check()
    beside.cancel()


def tell(theme: str, stories: int) -> Counter[str]:
    """Who still refused somebody at the end of all those stories, and how often."""
    refused: Counter[str] = Counter()

    @settings(max_examples=stories, deadline=None, suppress_health_check=list(HealthCheck))
    @given(crowds(theme), st.lists(st.sampled_from([0.0, 0.5, 5.0, SETTLED_S, SETTLED_S]), max_size=4))
    def story(happenings: list[Step], pauses: list[float]) -> None:
        run(nobody_waits_who_could_be_placed(theme, happenings, pauses, refused), limit_s=5000)

    story()
    return refused


each_theme = pytest.mark.parametrize("theme", THEMES)


@each_theme
def test_hints_suffice(theme: str) -> None:
    tell(theme, QUICK)


@pytest.mark.nightly
@each_theme
def test_hints_suffice_in_many_stories(theme: str) -> None:
    refused = tell(theme, NIGHTLY)
    assert all(refused[name] >= ENOUGH for name in REFUSERS[theme]), f"hardly anybody was refused by some: {refused}"
