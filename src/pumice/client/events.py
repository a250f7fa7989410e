"""Events about objects, counted and limited as client-go does it: event records in, writes out; the time is an argument.

There are three steps, each with a memory that forgets the entries which were not used for longest:

1. fold: the tenth different message of the same object, type and reason (each within ten minutes of the one before), and those after it,
   become one event whose message begins "(combined from similar events): ";
2. count: a repeated event becomes a patch of its count, message and last time;
3. spare: an object may get 25 events at once from us, and one more every 300 s. Events above that are counted, but not sent.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar
from zlib import crc32

import msgspec

from pumice.api.kinds import EVENTS, ObjectRef
from pumice.api.times import rfc3339
from pumice.client.access import TimeSource
from pumice.client.client import TokenBucket, of_ending_namespace
from pumice.client.transport import ApiError, Fenced, KubeError, PatchType, Transport

REMEMBERED = 4096
FOLDED_FROM = 10
FOLD_GAP_S = 600.0
FOLDED = "(combined from similar events): "
SPARE_BURST = 25
SPARE_PERIOD_S = 300.0
ROUNDING_S = 0.001

K = TypeVar("K")
V = TypeVar("V")


class InvolvedObject(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The object that an event is about, in the form in which it is written (`involvedObject`)."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""

    @property
    def identity(self) -> tuple[str, ...]:
        return self.kind, self.namespace, self.name, self.uid, self.api_version


class EventRecord(msgspec.Struct, frozen=True):
    """Something that happened to an object and is to be written as an event."""

    regarding: InvolvedObject
    type: str  #: Normal or Warning
    reason: str
    message: str


class EventWrite(msgspec.Struct, frozen=True):
    """The write of an event: the whole event, and a patch if the server should have the event already."""

    namespace: str
    name: str
    event: dict[str, Any]
    patch: dict[str, Any] | None


class _Repeats(msgspec.Struct):
    number: int  #: the number at the end of the event's name
    first: float
    count: int


class _Similar(msgspec.Struct):
    messages: tuple[str, ...]
    at: float


class _Memory(Generic[K, V]):
    """The entries that were used last. (A dict keeps the order, in half the memory of an OrderedDict.)"""

    def __init__(self) -> None:
        self._items: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        item = self._items.pop(key, None)
        if item is not None:
            self._items[key] = item
        return item

    def put(self, key: K, value: V) -> V:
        self._items[key] = value
        if len(self._items) > REMEMBERED:
            del self._items[next(iter(self._items))]
        return value


class EventCorrelator:
    """The recent events of one component, with which new events are folded and counted."""

    def __init__(self, component: str) -> None:
        self.component = component
        self._similar: _Memory[tuple[object, ...], _Similar] = _Memory()
        self._repeats: _Memory[tuple[object, ...], _Repeats] = _Memory()
        self._spared: _Memory[tuple[str, ...], float] = _Memory()  #: when the object could get a full burst of events again
        self._last_ns = 0

    def note(self, what: EventRecord, now: float) -> EventWrite | None:
        """The write for an event record; None if the object has used up its share of events. `now` is seconds since 1970."""
        identity = what.regarding.identity
        message, key = self._fold(what, (identity, what.type, what.reason), now)
        write = self._count(what, message, key, now)
        return write if self._has_share(identity, now) else None

    def _fold(self, what: EventRecord, about: tuple[object, ...], now: float) -> tuple[str, tuple[object, ...]]:
        similar = self._similar.get(about)
        if similar is None or now - similar.at > FOLD_GAP_S:
            similar = self._similar.put(about, _Similar((), now))
        similar.at = now
        known = what.message in similar.messages
        if known or len(similar.messages) < FOLDED_FROM - 1:
            similar.messages += () if known else (what.message,)
            return what.message, (about, what.regarding.field_path, what.message)
        return FOLDED + what.message, about

    def _count(self, what: EventRecord, message: str, key: tuple[object, ...], now: float) -> EventWrite:
        repeats = self._repeats.get(key)
        repeated = repeats is not None
        if repeats is None:
            repeats = self._repeats.put(key, _Repeats(self._number(now), now, 0))
        repeats.count += 1
        last = rfc3339(now)
        namespace, name = what.regarding.namespace or "default", f"{what.regarding.name}.{repeats.number:x}"
        event = {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": what.regarding,
            "reason": what.reason,
            "message": message,
            "source": {"component": self.component},
            "firstTimestamp": rfc3339(repeats.first),
            "lastTimestamp": last,
            "count": repeats.count,
            "type": what.type,
            "eventTime": None,
            "reportingComponent": self.component,
            "reportingInstance": "",
        }
        patch = {"count": repeats.count, "lastTimestamp": last, "message": message} if repeated else None
        return EventWrite(namespace, name, event, patch)

    def _number(self, now: float) -> int:
        """The time in nanoseconds, increased where needed so that no number is given twice."""
        self._last_ns = max(int(now * 1e9), self._last_ns + 1)
        return self._last_ns

    def _has_share(self, identity: tuple[str, ...], now: float) -> bool:
        whole_at = max(self._spared.get(identity) or now, now) + SPARE_PERIOD_S
        if whole_at - now > SPARE_BURST * SPARE_PERIOD_S + ROUNDING_S:
            return False
        self._spared.put(identity, whole_at)
        return True


# The event recorder: a queue between the code that reports events and the API server. Nobody ever waits for it.
#
# Event records are spread over a few senders by object, so that the writes of one event stay in order. A record that does not fit into the
# queue is dropped, as is an event that the server refuses or does not accept in several tries; `dropped` counts both. Events have a rate
# limit of their own, and wait for a while if the process is busy, so that they do not take the API server's time from binds.

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
