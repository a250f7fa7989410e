"""A watch as an HTTP stream: events as they occur, bookmarks, and an end when its time is over.

The JSON of an event is made once for all plain watches of a kind; only Tables, other versions and objects that no longer match are encoded
anew. A stream sends one piece at a time, and only when the client has read the piece before. So neither a slow client nor a long list of
initial objects takes memory or delays other clients.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from pumice.api import Object
from pumice.cluster.apiserver.pending_calls import Pending
from pumice.cluster.apiserver.scheme.conversion import seen
from pumice.cluster.apiserver.scheme.kinds import Conversion, ServedKind
from pumice.cluster.apiserver.status import StatusError, expired
from pumice.cluster.apiserver.storage.watch import Watch, WatchEvent, seen_object
from pumice.cluster.apiserver.store import Store
from pumice.http.messages import JSON, Pipe

BOOKMARK_EVERY_S = 60.0
BATCH = 500  #: events in a piece at most
BATCH_BYTES = 256 * 1024  #: of a piece, about
_encode = msgspec.json.encode


class Shown(NamedTuple):
    """The form that the reader wants."""

    object: Callable[[Object, bool], Object]  #: the flag: it is the first of its stream
    bookmark: Callable[[Object], Object]


class WatchStream:
    """One reader of one watch. `initial` are objects sent as ADDED before anything else."""

    content_type = JSON

    def __init__(self, store: Store, kind: ServedKind, watch: Watch, initial: list[Object], shown: Shown | None, timeout_s: float) -> None:
        self._store = store
        self._kind = kind
        self._watch = watch
        self._initial = deque(initial)
        self._shown = shown
        self._timeout_s = timeout_s
        self._first = True
        self._held: list[tuple[str, WatchEvent]] = []  #: taken, but not converted yet
        self._converting: asyncio.Task[None] | None = None
        self._pipe: Pipe | None = None
        self._scheduled = False
        self._timers: list[asyncio.TimerHandle] = []
        self.when_stopped: Callable[[], None] = lambda: None
        self.bookmarks = False
        self.mark_initial_end = False
        self.version = store.storage.version  #: the stream begins once this is durable
        self._start_version = watch.resource_version

    def start(self, pipe: Pipe) -> None:
        self._pipe = pipe
        loop = asyncio.get_running_loop()
        self._timers = [loop.call_later(self._timeout_s, self._time_over)]
        if self.bookmarks:
            self._timers.append(loop.call_later(BOOKMARK_EVERY_S, self._send_bookmark))
        self._watch.rouse_with(self._wake)
        self._wake()

    def resume(self) -> None:
        self._flush()

    def stop(self) -> None:
        self._pipe = None
        for timer in self._timers:
            timer.cancel()
        self._store.storage.unwatch(self._kind.storage, self._watch)
        self.when_stopped()

    def _wake(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        if self._pipe is None or self._pipe.is_full():
            return
        if piece := self._beginning() or self._events():
            self._pipe.send(*piece)
            self._wake()
        elif self._watch.cut_off:
            self._fail(expired("the watch was too slow"))

    def _beginning(self) -> list[bytes]:
        """The next piece of the initial objects, which are sent before any event; empty if none are left."""
        piece: list[bytes] = []
        size = 0
        while self._initial and size < BATCH_BYTES:
            piece.append(self._line("ADDED", self._initial.popleft()))
            size += len(piece[-1])
        if not self._initial and self.mark_initial_end:
            self.mark_initial_end = False
            piece.append(self._bookmark(self._start_version, {"k8s.io/initial-events-end": "true"}))
        return piece

    def _events(self) -> list[bytes]:
        if self._kind.convert is not None:
            return self._converted_events(self._kind.convert)
        return self._lines(self._watch.take(BATCH, BATCH_BYTES))

    def _converted_events(self, convert: Conversion) -> list[bytes]:
        """The same for a kind with a webhook that converts its versions: nothing while it is asked."""
        if self._converting is not None:
            return []
        self._held = self._held or self._watch.take(BATCH, BATCH_BYTES)
        try:
            convert.prepare(self._kind.api_version, [seen_object(*one) for one in self._held])
        except Pending as pending:
            self._converting = asyncio.get_running_loop().create_task(self._convert(pending))
            return []
        held, self._held = self._held, []
        return self._lines(held)

    async def _convert(self, pending: Pending) -> None:
        try:
            await pending.call.make()
        except StatusError as error:
            self._fail(error)
        self._converting = None
        self._wake()

    def _lines(self, events: list[tuple[str, WatchEvent]]) -> list[bytes]:
        lines: list[bytes] = []
        for seen_as, event in events:
            if self._shown is None and seen_as == event.type and event.object["apiVersion"] == self._kind.api_version:
                lines += event.parts()
            else:
                lines.append(self._line(seen_as, seen(self._kind, seen_object(seen_as, event))))
        return lines

    def _line(self, type: str, obj: Object) -> bytes:
        if self._shown is not None:
            obj = self._shown.object(obj, self._first)
            self._first = False
        return b'{"type":"%s","object":%s}\n' % (type.encode(), _encode(obj))

    def _bookmark(self, version: int, annotations: dict[str, str] | None = None) -> bytes:
        metadata: Object = {"resourceVersion": str(version)} | ({"annotations": annotations} if annotations else {})
        obj: Object = {"kind": self._kind.kind, "apiVersion": self._kind.api_version, "metadata": metadata}
        if self._shown is not None:
            obj = self._shown.bookmark(obj)
        return b'{"type":"BOOKMARK","object":%s}\n' % _encode(obj)

    def _send_bookmark(self) -> None:
        if self._pipe is not None:
            if not (self._initial or self._watch.waits or self._pipe.is_full()):
                self._pipe.send(self._bookmark(self._store.storage.published))
            self._timers[1] = asyncio.get_running_loop().call_later(BOOKMARK_EVERY_S, self._send_bookmark)

    def _time_over(self) -> None:
        if self._pipe is not None:
            self._pipe.finish()

    def _fail(self, error: StatusError) -> None:
        if self._pipe is not None:
            self._pipe.send(error_line(error))
            self._pipe.finish()


def error_line(error: StatusError) -> bytes:
    return b'{"type":"ERROR","object":%s}\n' % _encode(error.status())


class ErrorStream:
    """A watch that ends before it begins: its stream is one ERROR event."""

    content_type = JSON
    version = 0

    def __init__(self, error: StatusError) -> None:
        self._error = error

    def start(self, pipe: Pipe) -> None:
        pipe.send(error_line(self._error))
        pipe.finish()

    def resume(self) -> None:
        pass

    def stop(self) -> None:
        pass
