"""A scheduler whose kept state is filled by hand, and its page, on an event loop in a thread of the test's process."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Coroutine, Iterable, Iterator
from typing import Any, TypeVar

from pumice.api.meta import Wire
from pumice.cli.up_options import policy_of
from pumice.cluster.apiserver import Server
from pumice.cluster.in_process import InProcess
from pumice.live.scheduler.loop import Scheduler
from pumice.page.server import Page

T = TypeVar("T")
PATIENCE_S = 60.0


class Desk:
    """See the module. Objects are pairs of kind and struct, as builders make them."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.start(0)

    def start(self, port: int) -> None:
        """With an empty cluster."""
        self.run(self._start(port))

    def stop(self) -> None:
        self.run(self._page.__aexit__())

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    async def _start(self, port: int) -> None:
        store = Server(clock=time.time, plain=True).store
        self.scheduler = Scheduler(InProcess(store, "pumice"), policy_of())
        self._page = Page(self.scheduler, f"127.0.0.1:{port}")
        await self._page.__aenter__()
        self.url = self._page.url
        self.port = int(self.url.rstrip("/").rpartition(":")[2])

    def put(self, objects: Iterable[tuple[str, Wire]]) -> None:
        async def work() -> None:
            for kind, obj in objects:
                self.scheduler.change(self.scheduler.cluster.put, kind, obj)

        self.run(work())

    def remove(self, kind: str, key: str) -> None:
        async def work() -> None:
            self.scheduler.change(self.scheduler.cluster.remove, kind, key)

        self.run(work())

    def cycle(self) -> None:
        self.run(self.scheduler.turn())  # type: ignore[arg-type]


@contextlib.contextmanager
def desk() -> Iterator[Desk]:
    made = Desk()
    try:
        yield made
    finally:
        made.stop()
        made.end()
