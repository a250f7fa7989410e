"""An event loop whose time is a `VirtualClock`: it passes at once when nobody has anything left to do, from one instant to the next."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from math import inf
from typing import Any

from pumice.cluster.clock import VirtualClock


class VirtualLoop(asyncio.SelectorEventLoop):
    """`may_pass` is asked before time passes, and until when; if it finds something left to do it does that, and says no."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.may_pass: Callable[[float], bool] = lambda until: True
        super().__init__(_Leaping(self))

    def time(self) -> float:
        return self.clock.now()


class _Leaping(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None or timeout > 0:
            self._leap(inf if timeout is None else timeout)
        return super().select(0)

    def _leap(self, timeout: float) -> None:
        clock = self._loop.clock
        alarm = clock.next_time()
        until = min(clock.now() + timeout, inf if alarm is None else alarm)
        if self._loop.may_pass(until):
            if until == inf:
                raise RuntimeError("time stands still: nothing is ever going to happen")
            clock.move_to(until)
