"""What is looked at, and its page, on an event loop in a thread of the test's process: a scheduler whose kept state is filled by hand, or
a whole cluster."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Coroutine, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from pumice.api.meta import Wire
from pumice.cli.embedded import running
from pumice.cli.up_options import UpRequest, policy_of
from pumice.cluster.apiserver import Server
from pumice.cluster.in_process import InProcess
from pumice.cluster.nodes.node_pools import nodes_of, pools_of
from pumice.cluster.nodes.stage import read_stages
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from pumice.page.server import PageServer
from pumice.scheduler.config import schedulers_of

T = TypeVar("T")
PATIENCE_S = 60.0
RUN_CONF = Path(__file__).parents[2] / "examples" / "run.conf"


class Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()


class Desk(Loop):
    """The scheduler. Objects are pairs of kind and struct, as builders make them."""

    def __init__(self, recordings: str = "", prometheus: str = "") -> None:
        super().__init__()
        self._past = {"recordings": recordings, "prometheus": prometheus}
        self.start(0)

    def start(self, port: int) -> None:
        """With an empty cluster."""
        self.run(self._start(port))

    def stop(self) -> None:
        self.run(self._page.__aexit__())

    async def _start(self, port: int) -> None:
        self.server = Server(clock=time.time, plain=True)
        policy = policy_of()
        self.scheduler = Scheduler(InProcess(self.server.store, "pumice"), policy, Options(schedulers=schedulers_of(policy)))
        self._page = PageServer(self.scheduler, f"127.0.0.1:{port}", self.server, **self._past)
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

    def publish(self, message: bytes) -> None:
        """Tell readers, whatever the cluster holds."""

        async def work() -> None:
            self._page.feed.publish(message)

        self.run(work())

    def cycle(self) -> float:
        """The seconds of a core that it took."""

        async def work() -> float:
            began_s = time.thread_time()
            await self.scheduler.turn()
            return time.thread_time() - began_s

        return self.run(work())


@contextlib.contextmanager
def desk(recordings: str = "", prometheus: str = "") -> Iterator[Desk]:
    made = Desk(recordings, prometheus)
    try:
        yield made
    finally:
        made.stop()
        made.end()


class Town(Loop):
    """The cluster: four nodes of eight GPUs, decided as `make run` decides."""

    def __init__(self) -> None:
        super().__init__()
        self._over = asyncio.Event()
        self._ready = threading.Event()
        self._ended = asyncio.run_coroutine_threadsafe(self._serve(), self._loop)
        assert self._ready.wait(PATIENCE_S)

    async def _serve(self) -> None:
        wanted = UpRequest(policy_of([str(RUN_CONF)]), read_stages(None), list(nodes_of(pools_of("4x8gpu"))), plain=True)
        async with running(wanted) as self.cluster, PageServer(self.cluster.scheduler, "127.0.0.1:0", self.cluster.server) as page:
            self.url, self.acting_url = page.url, page.acting_url
            self._ready.set()
            await self._over.wait()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._ended.result(PATIENCE_S)

    def names(self, resource: str) -> set[str]:
        async def read() -> set[str]:
            return {obj["metadata"]["name"] for obj in self.cluster.plane.store.all(resource)}

        return self.run(read())

    def object(self, resource: str, name: str, namespace: str = "") -> Any:
        async def read() -> Any:
            return self.cluster.plane.store.find(resource, namespace, name)

        return self.run(read())


@contextlib.contextmanager
def town() -> Iterator[Town]:
    made = Town()
    try:
        yield made
    finally:
        made.stop()
        made.end()
