"""An event loop that, under load, handles together what arrives within a few milliseconds, as network cards coalesce interrupts.

Answers that come one by one wake a process one by one. Under load each wake-up costs about as much as the work itself: a change of the
running process, system calls, cold caches.
"""

import asyncio
import selectors
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PAUSE_S = 0.003


class CoalescingSelector(selectors.DefaultSelector):
    """Under load, a selector that would wait for news first sleeps for PAUSE_S, or until the next timer. Then it takes all that came."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[Callable[[], bool]] = []  #: there is load while one of them returns True

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if (timeout is None or timeout > 0) and any(loaded() for loaded in self.loads):
            pause_s = PAUSE_S if timeout is None else min(PAUSE_S, timeout)
            time.sleep(pause_s)
            timeout = None if timeout is None else timeout - pause_s
        return super().select(timeout)


class CoalescingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.selector = CoalescingSelector()
        super().__init__(self.selector)


@contextmanager
def coalescing_while(loaded: Callable[[], bool]) -> Iterator[None]:
    """A context in which the running event loop, if it can coalesce, does so whenever `loaded()` is true."""
    loop = asyncio.get_running_loop()
    loads = loop.selector.loads if isinstance(loop, CoalescingLoop) else []
    loads.append(loaded)
    try:
        yield
    finally:
        loads.remove(loaded)
