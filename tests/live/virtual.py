"""An event loop whose time passes only when nothing is left to do, at once: an hour of retries and leases takes milliseconds."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any

START = 1_700_000_000.0


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time()` is seconds since 1970, from START on."""

    def __init__(self) -> None:
        self.virtual_time = START
        super().__init__(_Leaping(self))
        self._clock_resolution = 1e-6  # floats of this size know no finer steps

    def time(self) -> float:
        return self.virtual_time


class _Leaping(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise RuntimeError("the story stands still: nothing is ever going to happen")
        self._loop.virtual_time += max(0.0, timeout)
        return super().select(0)


class VirtualClock:
    """The scheduler's clock in that loop."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run(story: Coroutine[Any, Any, Any], limit_s: float = 600.0) -> Any:
    """Run a story in virtual time, bounded in it."""

    async def bounded() -> Any:
        async with asyncio.timeout(limit_s):
            return await story

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(bounded())
