"""When each waiting job is expected to start: one forecast for all of them, in a process of its own, which gets a small part of a core.

Between two cycles the state is only written to a file; `pumice eta` simulates it forward. If the cluster is too large, or the forecast
takes too long, nothing is known, and nothing is shown.
"""

import asyncio
import logging
import resource
import tempfile
import time
from collections.abc import Callable
from math import inf
from pathlib import Path

import msgspec

from pumice.answers.forecast_events import forecast_events
from pumice.api import instant, rfc3339
from pumice.inputs.recording.state_file import dump
from pumice.live.scheduler.loop import Scheduler
from pumice.page.command import output_of
from pumice.page.policy import written
from pumice.page.rows import Moments
from pumice.scheduler.model import Cluster

log = logging.getLogger(__name__)
MOST_WRITTEN = 5000  #: pods and nodes; to write them to a file takes 0.1 s then
LONGEST_S = 60.0
PART, SAVED_S = 0.02, 10.0  #: the part of a core to use; the seconds of CPU time that may be saved up
PERIOD_S, AGAIN_S = 2.0, 30.0  #: until new waiting jobs get a forecast, and until all get a new one


class _Eta(msgspec.Struct, rename="camel"):
    subject: str
    p50_at: str | None = None
    p90_at: str | None = None


_etas = msgspec.json.Decoder(list[_Eta]).decode


class Expected:
    """Expected starts, forecast in a process of its own.

    `tell` is called with all expected starts that are known now, by the keys of jobs. While `wanted` returns False, nothing is forecast.
    """

    def __init__(self, scheduler: Scheduler, wanted: Callable[[], bool], tell: Callable[[dict[str, Moments]], None]) -> None:
        self._scheduler = scheduler
        self._wanted = wanted
        self._tell = tell
        self._waited: set[str] = set()  #: the jobs that waited when the state was last written
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
        """The state as the bytes of a file. None if the same jobs wait as in the last forecast and it is not old; empty if no job waits, or
        if the cluster is too large."""
        waiting, now_s = cluster.waiting.keys() | cluster.not_enqueued.keys(), time.monotonic()
        if waiting == self._waited and now_s < self._written_s + AGAIN_S:
            return None
        self._waited, self._written_s = waiting, now_s
        is_small = len(cluster.tasks) + len(cluster.nodes) <= MOST_WRITTEN
        return dump(cluster, written(self._scheduler.policy), forecast_events(cluster)) if waiting and is_small else b""


def _spent_s() -> float:
    """The CPU time of all child processes that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def _foretold(state: bytes, now: float) -> dict[str, Moments]:
    try:
        forecast = await answer_of("eta", state, now)
    except (OSError, RuntimeError) as error:  # TimeoutError among them
        log.debug("no job is told when it starts: %r", error)
        return {}
    return {each.subject.removeprefix("podgroup/"): (_seconds(each.p50_at), _seconds(each.p90_at)) for each in _etas(forecast or b"[]")}


async def answer_of(question: str, state: bytes, now: float) -> bytes:
    """What a command answers about a state, as JSON. Raises OSError or RuntimeError."""
    with tempfile.TemporaryDirectory(prefix="pumice-") as folder:
        file = Path(folder) / "state.json"
        file.write_bytes(state)
        return await output_of(question, "-f", str(file), "--now", rfc3339(now), "-o", "json", within_s=LONGEST_S)


def _seconds(at: str | None) -> float | None:
    return instant(at) if at is not None else None
