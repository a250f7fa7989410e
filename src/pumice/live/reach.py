"""Whether something answers at a URL, for the probes of JobFlows: asked in the background, answered from memory.

A controller asks again every few seconds, so an answer may be that old; the first one is no.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import aiohttp

from pumice.live.clock import Clock

FRESH_S = 3.0
TIMEOUT_S = 3.0
REMEMBERED = 1000


class Reach:
    """Callable with http://host:port/path or tcp://host:port. To be entered: it needs the running event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None
        self._known: dict[str, tuple[bool, float]] = {}  #: the answer, and when it came
        self._asking: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S))
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    def __call__(self, url: str) -> bool:
        answered, at = self._known.get(url, (False, float("-inf")))
        if self._clock.now() - at > FRESH_S and url not in self._asking:
            self._asking[url] = asyncio.get_running_loop().create_task(self._ask(url))
        return answered

    async def _ask(self, url: str) -> None:
        try:
            answered = await (self._connects(url) if url.startswith("tcp:") else self._answers(url))
        finally:
            del self._asking[url]
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[url] = answered, self._clock.now()

    async def _answers(self, url: str) -> bool:
        assert self._session is not None
        try:
            async with self._session.get(url, allow_redirects=False) as response:
                return 200 <= response.status < 400
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return False

    async def _connects(self, url: str) -> bool:
        try:
            parts = urlsplit(url)
            async with asyncio.timeout(TIMEOUT_S):
                _, writer = await asyncio.open_connection(parts.hostname, parts.port)
        except (TimeoutError, OSError, ValueError):
            return False
        writer.close()
        return True
