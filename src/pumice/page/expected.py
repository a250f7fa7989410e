"""When each job that waits is expected to start: one forecast for all of them, in a process of its own, for a small part of the time.

Between two cycles the state is only written down; `pumice eta` plays it forward. A cluster that is too large, or a forecast that takes too
long, has none; then nothing is known, and nothing said.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from math import inf
from pathlib import Path

import msgspec

from pumice.api.times import instant, rfc3339
from pumice.live.scheduler.dump import dump
from pumice.live.scheduler.loop import Scheduler
from pumice.page.policy import written
from pumice.page.rows import Moments
from pumice.scheduler.model.cluster import Cluster

log = logging.getLogger(__name__)
MOST = 5000  #: pods and nodes; writing them down takes 0.1 s then
LONGEST_S = 60.0
PART, SAVED_S = 0.02, 10.0  #: of a core; seconds of it that may be saved up
PERIOD_S, AGAIN_S = 2.0, 30.0  #: until newcomers are told, and until all are told anew


class _Eta(msgspec.Struct, rename="camel"):
    subject: str
    p50_at: str | None = None
    p90_at: str | None = None


_etas = msgspec.json.Decoder(list[_Eta]).decode


class Expected:
    """Expected starts, forecast in a process of its own.

    `tell` is given what is known now, by the keys of jobs; nothing is done while it is not wanted.
    """

    def __init__(self, scheduler: Scheduler, wanted: Callable[[], bool], tell: Callable[[dict[str, Moments]], None]) -> None:
        self._scheduler = scheduler
        self._wanted = wanted
        self._tell = tell
        self._waited: set[str] = set()  #: when the state was last written down
        self._written_s = -inf

    async def run(self) -> None:
        left_s = SAVED_S
        while True:
            await asyncio.sleep(PERIOD_S)
            left_s = min(SAVED_S, left_s + PART * PERIOD_S)
            if left_s > 0 and self._wanted():
                before_s = _spent_s()
                await self._foretell()
                left_s -= _spent_s() - before_s

    async def _foretell(self) -> None:
        state = await self._scheduler.look(self._written)
        if state is not None:
            self._tell(await _foretold(state, self._scheduler.clock.now()) if state else {})

    def _written(self, cluster: Cluster) -> bytes | None:
        """None if those who wait were just told; empty if nobody waits, or if there is too much."""
        waiting, now_s = cluster.waiting.keys() | cluster.not_enqueued.keys(), time.monotonic()
        if waiting == self._waited and now_s < self._written_s + AGAIN_S:
            return None
        self._waited, self._written_s = waiting, now_s
        is_small = len(cluster.tasks) + len(cluster.nodes) <= MOST
        return dump(cluster, written(self._scheduler.policy)) if waiting and is_small else b""


def _spent_s() -> float:
    """By processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def _foretold(state: bytes, now: float) -> dict[str, Moments]:
    try:
        told = await _played(state, now)
    except OSError as error:  # TimeoutError among them
        log.debug("no job is told when it starts: %r", error)
        return {}
    return {each.subject.removeprefix("podgroup/"): (_seconds(each.p50_at), _seconds(each.p90_at)) for each in _etas(told or b"[]")}


async def _played(state: bytes, now: float) -> bytes:
    """Raises OSError."""
    with tempfile.TemporaryDirectory(prefix="pumice-") as folder:
        file = Path(folder) / "state.json"
        file.write_bytes(state)
        asked = ("eta", "-f", str(file), "--now", rfc3339(now), "-o", "json")
        pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "pumice", *asked, stdout=pipe, stderr=nowhere)
        try:
            async with asyncio.timeout(LONGEST_S):
                return (await process.communicate())[0]
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def _seconds(at: str | None) -> float | None:
    return instant(at) if at is not None else None
