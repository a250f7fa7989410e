"""What runs beside the cycles of a scheduler: reflectors, the sender, the recorder of events."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from pumice.live.lifecycle import first

Work = Callable[[], Coroutine[Any, Any, None]]


class BackgroundTasks:
    """If one of them fails, so does what waits meanwhile: a bug there must not leave a scheduler that only looks alive."""

    def __init__(self) -> None:
        self._broken = asyncio.Event()
        self._failure: BaseException | None = None
        self._works: list[Work] = []
        self._tasks: list[asyncio.Task[None]] | None = None  #: None before `running`

    def add(self, *works: Work) -> None:
        """Let something run as well: from the beginning on, or from now on."""
        self._works += works
        if self._tasks is not None:
            self._tasks += map(self._start, works)

    def _start(self, work: Work) -> asyncio.Task[None]:
        task = asyncio.create_task(work())
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()
            self._broken.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        tasks = self._tasks = list(map(self._start, self._works))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def unless_broken(self, work: Awaitable[object]) -> None:
        """Wait for some work. Raises the failure of a task that has failed meanwhile."""
        await first(work, self._broken.wait())
        self.check()

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure
