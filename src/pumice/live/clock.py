"""Time as an argument: the scheduler asks a clock what time it is and to sleep, so that a simulated one can take its place."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since 1970."""

    async def sleep(self, seconds: float) -> None: ...


class WallClock:
    """The machine's own. A step of the machine's time makes no difference but to what is written down."""

    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
