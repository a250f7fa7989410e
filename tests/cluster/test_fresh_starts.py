"""A scheduler that has seen a cluster change decides, and reports, as one that has just read all objects.

Random sequences of changes are played on a server in memory. Before each cycle the objects are copied, and a scheduler that starts then
makes the same cycle of the copy.
"""

from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import Any

import pytest
from random_changes import Sequence, putting

from pumice.api.kinds import EVENTS
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from tests.live.memory import MemoryServer, Object
from tests.live.stories import policy
from tests.live.virtual import VirtualClock, run
from tests.samples import times

AT_ONCE = Options(period_s=0.0, check_every=1)  #: nothing waits for others that may come
FAR_S = 1e7
LATER_S = 61.0  #: by then also what differs in amounts only is written


def stepped() -> MemoryServer:
    """Its kubelets do nothing."""
    return MemoryServer(start_s=None, stop_s=FAR_S)


def outcome(server: MemoryServer) -> dict[tuple[str, str, str], Any]:
    """By object, all that schedulers write, but for times."""
    return {key: _said(item) for key, item in server.objects.items() if key[0] != EVENTS.plural}


def _said(item: Object) -> Any:
    status = dict(item.get("status") or {})
    conditions = [[each.get(field) for field in ("type", "status", "reason", "message")] for each in status.pop("conditions", None) or ()]
    meta = item["metadata"]
    return conditions, status, item.get("spec", {}).get("nodeName"), "deletionTimestamp" in meta, meta.get("annotations")


async def compared(sequence: Sequence) -> None:
    server = stepped()
    for item in sequence.objects:
        putting(item)(server)
    scheduler = Scheduler(server, policy(sequence.texts[0]), AT_ONCE, VirtualClock())
    async with scheduler.started():
        for text, changes in zip(sequence.texts, sequence.steps, strict=True):
            for change in changes:
                change(server)
            scheduler.adopt(policy(text))
            await asyncio.sleep(LATER_S)
            copy = stepped()
            copy.objects, copy.version = deepcopy(server.objects), server.version
            fresh = Scheduler(copy, policy(text), AT_ONCE, VirtualClock())
            async with fresh.started():
                await fresh.step()
                await scheduler.step()
                await asyncio.sleep(1.0)  # until the watches have shown what was written
            assert outcome(server) == outcome(copy)


@pytest.mark.parametrize("seed", range(times(6)))
def test_what_was_seen_before_changes_nothing(seed: int) -> None:
    run(compared(Sequence(seed)), limit_s=FAR_S)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_the_same_over_many_sequences(seed: int) -> None:
    run(compared(Sequence(seed, steps=20)), limit_s=FAR_S)
