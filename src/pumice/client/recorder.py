"""The event recorder: a queue between those who tell of events and the API server, which nobody ever waits for.

Occurrences are spread over a few senders by object, so that what concerns one event stays in order. What does not fit into the queue is
dropped, as is what the server refuses or does not take in several tries; `dropped` counts both. A rate of their own, and some patience
while those who tell are busy with better things, keep events from taking the API server's time from binds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from zlib import crc32

import msgspec

from pumice.api.kinds import EVENTS, ObjectRef
from pumice.client.access import Clock
from pumice.client.errors import ApiError, Fenced, KubeError
from pumice.client.events import EventCorrelator, EventRecord, EventWrite
from pumice.client.retry import TokenBucket
from pumice.client.transport import PatchType, Transport

log = logging.getLogger(__name__)
LOOK_AGAIN_S = 0.05


class Flow(msgspec.Struct, frozen=True):
    """How much the recorder may hold and send."""

    queue: int = 20_000
    senders: int = 4
    qps: float = 500.0
    burst: float = 500.0
    tries: int = 12
    pause_s: float = 10.0  #: between tries
    patience_s: float = 3.0  #: so long an event waits at most while we are busy


DEFAULT_FLOW = Flow()


class Recorder:
    """`tell` from anywhere in the loop's thread; `run` sends until it is cancelled."""

    def __init__(
        self,
        transport: Transport,
        component: str,
        *,
        flow: Flow = DEFAULT_FLOW,
        wall: Clock = time.time,
        clock: Clock = time.monotonic,
        busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self._forbidden = False  #: the server has refused events for want of a right
        self.dropped = 0
        self._transport = transport
        self._book = EventCorrelator(component)
        self._flow = flow
        self._wall = wall
        self._clock = clock
        self._busy = busy
        self._bucket = TokenBucket(flow.qps, flow.burst, clock())
        self._queues: list[asyncio.Queue[tuple[EventRecord, float]]] = [asyncio.Queue() for _ in range(flow.senders)]
        self._held = 0

    def tell(self, what: EventRecord) -> None:
        if self._held >= self._flow.queue:
            self.dropped += 1
            return
        self._held += 1
        self._queues[crc32(repr(what.regarding.identity).encode()) % len(self._queues)].put_nowait((what, self._wall()))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as senders:
            for queue in self._queues:
                senders.create_task(self._send_all(queue))

    async def drain(self, limit_s: float) -> None:
        """Wait until everything told so far has left, but no longer than that."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                for queue in self._queues:
                    await queue.join()

    async def _send_all(self, queue: asyncio.Queue[tuple[EventRecord, float]]) -> None:
        while True:
            what, at = await queue.get()
            while self._busy() and self._wall() - at < self._flow.patience_s:
                await asyncio.sleep(LOOK_AGAIN_S)
            try:
                write = self._book.note(what, at)
                if write is not None:
                    await self._send(write)
            finally:
                self._held -= 1
                queue.task_done()

    async def _send(self, write: EventWrite) -> None:
        for left in reversed(range(self._flow.tries)):
            await asyncio.sleep(self._bucket.reserve(self._clock()))
            try:
                await self._put(write)
                return
            except KubeError as error:
                final = isinstance(error, Fenced) or (isinstance(error, ApiError) and error.code < 500 and error.code != 429)
                if final or not left:
                    self._drop(write, error)
                    return
            await asyncio.sleep(self._flow.pause_s)

    def _drop(self, write: EventWrite, error: KubeError) -> None:
        """A namespace that ends takes no events, which is as it should be. A right that is missing is missing for all events: told once."""
        self.dropped += 1
        code = error.code if isinstance(error, ApiError) else 0
        if code in (403, 404) and ("is being terminated" in str(error) or 'namespaces "' in str(error)):
            log.debug("event %s/%s dropped: %s", write.namespace, write.name, error)
        elif code == 403:
            log.log(logging.DEBUG if self._forbidden else logging.WARNING, "events are dropped for want of a right: %s", error)
            self._forbidden = True
        else:
            log.warning("event %s/%s dropped: %s", write.namespace, write.name, error)

    async def _put(self, write: EventWrite) -> None:
        """Patch the event, or create it if it is new or the server has forgotten it. Both may reach the server twice."""
        if write.patch is not None:
            try:
                await self._transport.patch(
                    EVENTS, ObjectRef(write.name, write.namespace), write.patch, PatchType.STRATEGIC, repeatable=True
                )
                return
            except ApiError as error:
                if error.code != 404:
                    raise
        try:
            await self._transport.create(EVENTS, write.event, write.namespace, repeatable=True)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
