"""Events about objects, counted and thinned out as client-go does it: occurrences in, writes out, the time an argument.

Three steps, each with a memory that forgets what it has not met for longest:

1. fold: the tenth different message of the same object, type and reason (each within ten minutes of the one before), and those after it,
   become one event whose message begins "(combined from similar events): ";
2. count: a repeat of an event is a patch of its count, message and last time;
3. spare: an object has 25 events at once from us, and one more each 300 s. What is above is counted, but not sent.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from pumice.api.times import rfc3339

REMEMBERED = 4096
FOLDED_FROM = 10
FOLD_GAP_S = 600.0
FOLDED = "(combined from similar events): "
SPARE_BURST = 25
SPARE_PERIOD_S = 300.0
ROUNDING_S = 0.001

K = TypeVar("K")
V = TypeVar("V")


class ObjectReference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The object an event is about, as it is written (`involvedObject`)."""

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
    """Something happened."""

    regarding: ObjectReference
    type: str  #: Normal or Warning
    reason: str
    message: str


class EventWrite(msgspec.Struct, frozen=True):
    """What to send: the whole event, and a patch if the server should have it already."""

    namespace: str
    name: str
    event: dict[str, Any]
    patch: dict[str, Any] | None


class _Told(msgspec.Struct):
    number: int  #: what the event's name ends with
    first: float
    count: int


class _Similar(msgspec.Struct):
    messages: tuple[str, ...]
    at: float


class _Memory(Generic[K, V]):
    """What was met last. (A dict keeps the order, in half the room of an OrderedDict.)"""

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
    """All that one component has said lately."""

    def __init__(self, component: str) -> None:
        self.component = component
        self._similar: _Memory[tuple[object, ...], _Similar] = _Memory()
        self._told: _Memory[tuple[object, ...], _Told] = _Memory()
        self._spared: _Memory[tuple[str, ...], float] = _Memory()  #: when the object's share would be whole again
        self._last_ns = 0

    def note(self, what: EventRecord, now: float) -> EventWrite | None:
        """The write that tells of it; None if the object had its share. `now` is seconds since 1970."""
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
        told = self._told.get(key)
        repeated = told is not None
        if told is None:
            told = self._told.put(key, _Told(self._number(now), now, 0))
        told.count += 1
        last = rfc3339(now)
        namespace, name = what.regarding.namespace or "default", f"{what.regarding.name}.{told.number:x}"
        event = {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": what.regarding,
            "reason": what.reason,
            "message": message,
            "source": {"component": self.component},
            "firstTimestamp": rfc3339(told.first),
            "lastTimestamp": last,
            "count": told.count,
            "type": what.type,
            "eventTime": None,
            "reportingComponent": self.component,
            "reportingInstance": "",
        }
        patch = {"count": told.count, "lastTimestamp": last, "message": message} if repeated else None
        return EventWrite(namespace, name, event, patch)

    def _number(self, now: float) -> int:
        """Nanoseconds, which never stand twice."""
        self._last_ns = max(int(now * 1e9), self._last_ns + 1)
        return self._last_ns

    def _has_share(self, identity: tuple[str, ...], now: float) -> bool:
        whole_at = max(self._spared.get(identity) or now, now) + SPARE_PERIOD_S
        if whole_at - now > SPARE_BURST * SPARE_PERIOD_S + ROUNDING_S:
            return False
        self._spared.put(identity, whole_at)
        return True
