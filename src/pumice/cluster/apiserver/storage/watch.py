"""Watch events, and the watches that receive them. How a watch becomes an HTTP stream, with bookmarks: `streams/watch_stream.py`.

A `WatchEvent` is one write, with the JSON of its object, which all watches share. A `Watch` keeps the events that pass its filter, with the
type that its reader sees: an object that starts to match is ADDED, an object that stops is DELETED. No event is lost between `take` calls.
If a reader is so slow that the storage forgets events that still wait for it, its watch is cut off, as in Kubernetes, and it lists again.
So waiting events take no memory of their own. A watch from a version before what the storage remembers gets 410: `in_memory.py`.
"""

import sys
from collections import deque
from collections.abc import Callable

import msgspec

from pumice.api import Object
from pumice.api.field_selectors import FieldSelector, fields_match
from pumice.api.selectors import Selector, matches

Key = tuple[str, str]  #: namespace (empty if the kind has none) and name

_HEADS = {type: b'{"type":"%s","object":' % type.encode() for type in ("ADDED", "MODIFIED", "DELETED")}


class WatchEvent(msgspec.Struct, eq=False, gc=False):
    """One write of one object: ADDED, MODIFIED or DELETED."""

    type: str
    key: Key
    object: Object  #: as it is after the write; when DELETED, its last state with the version of the deletion
    previous: Object | None  #: as it was before; None when ADDED
    resource_version: int
    body: bytes  #: the JSON of `object`

    def parts(self) -> tuple[bytes, bytes, bytes]:
        """The event as a line of a watch stream, in parts of which the large one is never copied."""
        return _HEADS[self.type], self.body, b"}\n"

    def __repr__(self) -> str:
        return f"Event({self.type} {'/'.join(self.key)} {self.resource_version})"


class WatchFilter:
    """The objects of a kind that a list or watch selects, by namespace, labels and fields; what is empty selects all."""

    __slots__ = ("fields", "labels", "namespace")

    def __init__(self, namespace: str = "", labels: Selector = (), fields: FieldSelector = ()) -> None:
        self.namespace = namespace
        self.labels = labels
        self.fields = fields

    def passes(self, key: Key, obj: Object) -> bool:
        if self.namespace and key[0] != self.namespace:
            return False
        if self.labels and not matches(self.labels, obj["metadata"].get("labels") or {}):
            return False
        return not self.fields or fields_match(self.fields, obj)

    def by_content(self) -> bool:
        """Whether a change to an object may make it start or stop to pass."""
        return bool(self.labels or self.fields)


class Watch:
    """A reader's place in the events of one kind. Its `wake` function is called when there is an event to `take` after there was none."""

    def __init__(self, filter: WatchFilter, since: int) -> None:
        self.filter = filter
        self.resource_version = since  #: every event up to it was delivered or did not concern this watch
        self.cut_off = False
        self._waiting: deque[tuple[str, WatchEvent]] = deque()
        self._wake: Callable[[], None] | None = None
        self._is_by_content = filter.by_content()

    def offer(self, event: WatchEvent) -> None:
        """Keep an event for the reader if it passes the filter. The storage calls this for every event of the kind, in order."""
        if event.resource_version <= self.resource_version:
            return
        self.resource_version = event.resource_version
        if self._is_by_content:
            seen_as = self._seen_as(event)
        else:
            seen_as = event.type if self.filter.namespace in ("", event.key[0]) else None
        if seen_as is None or self.cut_off:
            return
        self._waiting.append((seen_as, event))
        if self._wake is not None and len(self._waiting) == 1:
            self._wake()

    @property
    def waits(self) -> bool:
        """Whether there is an event to take."""
        return bool(self._waiting)

    def rouse_with(self, wake: Callable[[], None] | None) -> None:
        self._wake = wake
        if wake is not None and self._waiting:
            wake()

    def _seen_as(self, event: WatchEvent) -> str | None:
        now = self.filter.passes(event.key, event.object)
        if event.previous is None:
            return event.type if now else None
        before = self.filter.passes(event.key, event.previous)
        if event.type == "DELETED":
            return "DELETED" if before else None
        if now:
            return event.type if before else "ADDED"
        return "DELETED" if before else None

    def forget(self, version: int) -> None:
        """Cut the reader off if it is too slow: an event up to `version`, which the storage forgets, still waits for it."""
        if self._waiting and self._waiting[0][1].resource_version <= version:
            self._waiting.clear()
            self.cut_off = True
            if self._wake is not None:
                self._wake()

    def take(self, limit: int = sys.maxsize, size: int = sys.maxsize) -> list[tuple[str, WatchEvent]]:
        """Take the events that wait, in order, each with the type that the reader sees: at most `limit`, and about `size` bytes."""
        waiting = self._waiting
        if limit == size == sys.maxsize:
            taken = list(waiting)
            waiting.clear()
            return taken
        taken = []
        while waiting and len(taken) < limit and size > 0:
            size -= len(waiting[0][1].body)
            taken.append(waiting.popleft())
        return taken

    def objects(self) -> list[tuple[str, Object]]:
        """Like `take`, for readers in this process: the type and the object of each event, as the reader sees them."""
        return [(seen_as, seen_object(seen_as, event)) for seen_as, event in self.take()]


def seen_object(seen_as: str, event: WatchEvent) -> Object:
    """The object of an event as a reader sees it. An object that no longer matches is shown as it was before, with the event's version."""
    if seen_as == event.type or seen_as != "DELETED" or event.previous is None:
        return event.object
    return event.previous | {"metadata": event.previous["metadata"] | {"resourceVersion": str(event.resource_version)}}
