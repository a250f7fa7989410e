"""Events about objects, counted and limited as client-go does it: event records in, writes out; the time is an argument.

There are three steps, each with a memory that forgets the entries which were not used for longest:

1. fold: the tenth different message of the same object, type and reason (each within ten minutes of the one before), and those after it,
   become one event whose message begins "(combined from similar events): ";
2. count: a repeated event becomes a patch of its count, message and last time;
3. spare: an object may get 25 events at once from us, and one more every 300 s. Events above that are counted, but not sent.
"""

from typing import Any, Generic, TypeVar

import msgspec

from pumice.api import rfc3339

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
