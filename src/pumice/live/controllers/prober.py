"""Whether an endpoint answers, for the probes of JobFlows.

It is called in the background; a controller gets the last result from memory. A controller asks again every few seconds, so a result may be
that old. The first result is no.
"""

import asyncio
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from pumice.controllers.volcano.jobflow import Probe
from pumice.http.connection_pool import fetch
from pumice.live.clock import Clock

FRESH_S = 3.0
TIMEOUT_S = 3.0
REMEMBERED = 1000


class Prober:
    """Says whether the endpoint of a `Probe` answers. Enter it as an async context: it needs the running event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[Probe, tuple[bool, float]] = {}  #: the answer, and when it came
        self._asking: dict[Probe, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    def __call__(self, probe: Probe) -> bool:
        answered, at = self._known.get(probe, (False, float("-inf")))
        if self._clock.now() - at > FRESH_S and probe not in self._asking:
            self._asking[probe] = asyncio.get_running_loop().create_task(self._ask(probe))
        return answered

    async def _ask(self, probe: Probe) -> None:
        try:
            answered = await (self._connects(probe.url) if probe.url.startswith("tcp:") else self._answers(probe))
        finally:
            del self._asking[probe]
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[probe] = answered, self._clock.now()

    @staticmethod
    async def _answers(probe: Probe) -> bool:
        try:
            answer = await fetch(probe.url, headers=dict([probe.header]) if probe.header else None, timeout_s=TIMEOUT_S)
        except (OSError, ValueError):
            return False
        return 200 <= answer.status < 400

    @staticmethod
    async def _connects(url: str) -> bool:
        try:
            parts = urlsplit(url)
            async with asyncio.timeout(TIMEOUT_S):
                _, writer = await asyncio.open_connection(parts.hostname, parts.port)
        except (TimeoutError, OSError, ValueError):
            return False
        writer.close()
        return True
