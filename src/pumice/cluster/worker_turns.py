"""Workers run beside the API server on one thread, and take turns.

A worker does a little work at each `step` and returns whether it has more to do; it calls `wake` when it has work after it had none. On
an event loop, `WorkerTurns` lets each worker make its steps between requests. Without one, `run_quiet` steps all workers until none of
them has work left.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from pumice.http.watchdog import Handler


class Worker(Protocol):
    wake: Callable[[], None] | None

    def step(self) -> bool:
        """Do a little work. Return whether there is more to do."""
        ...


class WorkerTurns:
    """Lets workers take turns on an event loop."""

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
        if self._loop is None:
            return
        worker = self._workers[index]
        with Handler("a step of %s", type(worker).__name__):
            left = worker.step()
        if left:
            self._schedule(index)


def run_quiet(workers: Sequence[Worker], writes: Callable[[], int]) -> None:
    """Step all workers until a whole round leaves no worker busy and writes nothing. `writes` returns the number of writes so far."""
    while True:
        before = writes()
        busy = sum(worker.step() for worker in workers)
        if not busy and writes() == before:
            return
