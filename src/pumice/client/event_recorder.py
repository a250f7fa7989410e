"""The event recorder: a queue between the code that reports events and the API server. Nobody ever waits for it.

Event records are spread over a few senders by object, so that the writes of one event stay in order. A record that does not fit into the
queue is dropped, as is an event that the server refuses or does not accept in several tries; `dropped` counts both. Events have a rate
limit of their own, and wait for a while if the process is busy, so that they do not take the API server's time from binds.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from zlib import crc32

import msgspec

from pumice.api.kinds import EVENTS, ObjectRef
from pumice.client.access import TimeSource
from pumice.client.client import of_ending_namespace
from pumice.client.event_correlator import EventCorrelator, EventRecord, EventWrite
from pumice.client.failures import ApiError, Fenced, KubeError, despite
from pumice.client.rate_limit import TokenBucket
from pumice.client.transport import PatchType, Transport

log = logging.getLogger(__name__)
LOOK_AGAIN_S = 0.05


class Flow(msgspec.Struct, frozen=True):
    """How many events the recorder may hold, and how fast and how often it tries to send them."""

    queue: int = 20_000
    senders: int = 4
    qps: float = 500.0
    burst: float = 500.0
    tries: int = 12
    pause_s: float = 10.0  #: between tries
    patience_s: float = 30.0  #: the longest that an event waits while the process is busy and the queue is less than half full


DEFAULT_FLOW = Flow()


class EventRecorder:
    """Writes events. Call `tell` anywhere in the event loop's thread; `run` sends the events until it is cancelled."""

    def __init__(
        self,
        transport: Transport,
        component: str,
        *,
        flow: Flow = DEFAULT_FLOW,
        wall: TimeSource = time.time,
        clock: TimeSource = time.monotonic,
        busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self._forbidden = False  #: whether the server has refused an event because our role does not allow it
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
        """Wait until all events are sent or dropped, but at most `limit_s` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                for queue in self._queues:
                    await queue.join()

    async def _send_all(self, queue: asyncio.Queue[tuple[EventRecord, float]]) -> None:
        while True:
            what, at = await queue.get()
            while self._busy() and self._wall() - at < self._flow.patience_s and self._held * 2 < self._flow.queue:
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
        """Count and log a dropped event. A namespace that is being deleted takes no events, which is normal: nothing is logged. If our role
        does not allow events, it allows none of them: the warning is logged once."""
        self.dropped += 1
        code = error.code if isinstance(error, ApiError) else 0
        if of_ending_namespace(error):
            return
        if code == 403:
            log.log(logging.DEBUG if self._forbidden else logging.WARNING, "events are dropped for want of a right: %s", error)
            self._forbidden = True
        else:
            log.warning("event %s/%s dropped: %s", write.namespace, write.name, error)

    async def _put(self, write: EventWrite) -> None:
        """Patch the event, or create it if it is new or the server has forgotten it. Both writes may reach the server twice."""
        if write.patch is not None:
            with despite(404):
                await self._transport.patch(
                    EVENTS, ObjectRef(write.name, write.namespace), write.patch, PatchType.STRATEGIC, repeatable=True
                )
                return
        with despite("AlreadyExists"):
            await self._transport.create(EVENTS, write.event, write.namespace, repeatable=True)
