"""Time as an argument: the scheduler asks a clock for the time and to sleep, so that a simulated clock can take its place."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

SLOWED = 0.9  #: the speed of a clock that is ahead of the machine's time


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since 1970."""

    async def sleep(self, seconds: float) -> None: ...


class WallClock:
    """The machine's time, except that it never goes back.

    When somebody sets the machine's time back, this clock runs at nine tenths of its speed until the machine's time has caught up. So
    nothing that is due in a second waits for hours.
    """

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._now, self._looked_at = wall(), monotonic()

    def now(self) -> float:
        wall, at = self._wall(), self._monotonic()
        least = self._now + SLOWED * (at - self._looked_at)
        self._looked_at = at
        self._now = wall if wall > least else least
        return self._now

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
