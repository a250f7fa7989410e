"""Those who live beside the API server on one thread, and take turns.

A worker does a little at each `step` and says whether it has more to do; it calls `wake` when it has something after it had nothing. On an
event loop, `Turns` gives each its steps between requests; without one, `run_quiet` steps all of them until nobody has anything left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol


class Worker(Protocol):
    wake: Callable[[], None] | None

    def step(self) -> bool:
        """Do a little; whether there is more."""
        ...


class Turns:
    """Workers on an event loop."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._workers = workers
        self._scheduled: set[int] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        for index, worker in enumerate(self._workers):
            worker.wake = lambda index=index: self._schedule(index)
            self._schedule(index)

    def stop(self) -> None:
        self._loop = None
        for worker in self._workers:
            worker.wake = None

    def _schedule(self, index: int) -> None:
        if self._loop is not None and index not in self._scheduled:
            self._scheduled.add(index)
            self._loop.call_soon(self._turn, index)

    def _turn(self, index: int) -> None:
        self._scheduled.discard(index)
        if self._loop is not None and self._workers[index].step():
            self._schedule(index)


def run_quiet(workers: Sequence[Worker], writes: Callable[[], int]) -> None:
    """Let all work until a whole round leaves nobody busy and writes nothing. `writes` counts the writes so far."""
    while True:
        before = writes()
        busy = sum(worker.step() for worker in workers)
        if not busy and writes() == before:
            return
