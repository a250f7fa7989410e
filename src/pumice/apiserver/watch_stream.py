"""A watch on the wire: events as they come, bookmarks, an end after its time.

The JSON of an event is made once for all plain watchers of a kind; only Tables, other versions and objects that left a selection are
encoded anew. Events of one turn of the loop leave in one write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from pumice.apiserver.kinds import Kind
from pumice.apiserver.shapes import Object
from pumice.apiserver.status import ApiError, expired
from pumice.apiserver.store import Store, seen
from pumice.apiserver.watching import Event, Watch, seen_object
from pumice.web.messages import JSON, Pipe

BOOKMARK_EVERY_S = 60.0
BATCH = 500  #: events a write at most, so that a slow reader is noticed
_encode = msgspec.json.encode

Shown = Callable[[Object, bool], Object]  #: an object, and whether it is the first of its stream, as the reader wants it


class WatchStream:
    """One reader of one watch. `initial` are objects sent as ADDED before anything else."""

    content_type = JSON

    def __init__(self, store: Store, kind: Kind, watch: Watch, initial: list[Object], shown: Shown | None, timeout_s: float) -> None:
        self._store = store
        self._kind = kind
        self._watch = watch
        self._initial = initial
        self._shown = shown
        self._timeout_s = timeout_s
        self._first = True
        self._pipe: Pipe | None = None
        self._scheduled = False
        self._timers: list[asyncio.TimerHandle] = []
        self.bookmarks = False
        self.mark_initial_end = False
        self._start_version = watch.resource_version

    def start(self, pipe: Pipe) -> None:
        self._pipe = pipe
        if self._initial:
            pipe.send(b"".join(self._line("ADDED", obj) for obj in self._initial))
            self._initial = []
        if self.mark_initial_end:
            pipe.send(self._bookmark(self._start_version, {"k8s.io/initial-events-end": "true"}))
        loop = asyncio.get_running_loop()
        self._timers = [loop.call_later(self._timeout_s, self._time_over)]
        if self.bookmarks:
            self._timers.append(loop.call_later(BOOKMARK_EVERY_S, self._send_bookmark))
        self._watch.rouse_with(self._wake)

    def resume(self) -> None:
        self._flush()

    def stop(self) -> None:
        self._pipe = None
        for timer in self._timers:
            timer.cancel()
        self._store.ledger.unwatch(self._kind.storage, self._watch)

    def _wake(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        while self._pipe is not None and not self._pipe.is_full():
            events = self._watch.take(BATCH)
            if events:
                self._pipe.send(b"".join([self._event(seen_as, event) for seen_as, event in events]))
            if self._watch.cut_off and not events:
                self._fail(expired("the watch was too slow"))
            if len(events) < BATCH:
                return

    def _event(self, seen_as: str, event: Event) -> bytes:
        if self._shown is None and seen_as == event.type and event.object["apiVersion"] == self._kind.api_version:
            return event.json()
        return self._line(seen_as, seen(self._kind, seen_object(seen_as, event)))

    def _line(self, type: str, obj: Object) -> bytes:
        if self._shown is not None:
            obj = self._shown(obj, self._first)
            self._first = False
        return b'{"type":"%s","object":%s}\n' % (type.encode(), _encode(obj))

    def _bookmark(self, version: int, annotations: dict[str, str] | None = None) -> bytes:
        metadata: Object = {"resourceVersion": str(version)} | ({"annotations": annotations} if annotations else {})
        obj: Object = {"kind": self._kind.kind, "apiVersion": self._kind.api_version, "metadata": metadata}
        if self._shown is not None:
            obj = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": None, "rows": []}
        return b'{"type":"BOOKMARK","object":%s}\n' % _encode(obj)

    def _send_bookmark(self) -> None:
        if self._pipe is not None:
            self._flush()
            if not self._pipe.is_full():
                self._pipe.send(self._bookmark(self._store.ledger.published))
            self._timers[1] = asyncio.get_running_loop().call_later(BOOKMARK_EVERY_S, self._send_bookmark)

    def _time_over(self) -> None:
        if self._pipe is not None:
            self._flush()
            self._pipe.finish()

    def _fail(self, error: ApiError) -> None:
        if self._pipe is not None:
            self._pipe.send(error_line(error))
            self._pipe.finish()


def error_line(error: ApiError) -> bytes:
    return b'{"type":"ERROR","object":%s}\n' % _encode(error.status())


class ErrorStream:
    """A watch that ends before it begins: one ERROR event."""

    content_type = JSON

    def __init__(self, error: ApiError) -> None:
        self._error = error

    def start(self, pipe: Pipe) -> None:
        pipe.send(error_line(self._error))
        pipe.finish()

    def resume(self) -> None:
        pass

    def stop(self) -> None:
        pass
