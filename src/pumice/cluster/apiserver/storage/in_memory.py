"""What is stored: objects by kind and key, one resourceVersion for all, and the last events of each kind.

The storage does not interpret objects. Writes are numbered 1, 2, 3 ... across all kinds. Each write is kept as an event of its kind,
so that a watch can start in the past and a paged list can be read as of its first page. The events are bounded in number and, over all
kinds, in bytes: the kind with the most bytes forgets its oldest events first. The objects are bounded in bytes too, each one and all
together; the bound on all together never refuses a write that deletes or shrinks an object. With a journal, an event is published (shown
to watches) only after the journal has it; without a journal, at once.

Objects are shared with callers, never copied: to change an object, make a new one.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Protocol

import msgspec

from pumice.api import Object
from pumice.cluster.apiserver.status import LARGEST_OBJECT, StatusError, expired, full, too_large
from pumice.cluster.apiserver.storage.watch import Key, Watch, WatchEvent, WatchFilter

RING = 16_384  #: events kept of each kind, at least, if they are small
MOST_STORED = 1024 * 1024 * 1024  #: bytes of the JSON of all objects; in memory they take several times as much
FORGOTTEN_AT_ONCE = 1000  #: events that one call to `compact` forgets at most
HISTORY_BYTES = 64 * 1024 * 1024  #: bytes of the JSON of all events kept
_encode = msgspec.json.encode
_version_of = attrgetter("resource_version")

Listener = Callable[[str, WatchEvent], None]


class StoreJournal(Protocol):
    """The journal of a storage, which records every write."""

    def record(self, storage: str, event: WatchEvent) -> None: ...


class KindStorage:
    """All objects of one kind, and its last events."""

    def __init__(self, start: int, listeners: list[Listener]) -> None:
        self.objects: dict[Key, Object] = {}
        self.keys: list[Key] = []  #: the keys of `objects`, sorted
        self.sizes: dict[Key, int] = {}  #: bytes of the JSON of `objects`
        self.events: list[WatchEvent] = []  #: ascending by version
        self.complete_since = start  #: every event after this version is in `events`
        self.size = 0  #: bytes of the JSON of `events`
        self.watches: list[Watch] = []
        self.listeners = listeners

    def forget(self, count: int) -> None:
        """Forget the oldest `count` events. Watches for which some of them still wait are cut off."""
        gone = self.events[:count]
        del self.events[:count]
        self.size -= sum(len(event.body) for event in gone)
        self.complete_since = gone[-1].resource_version
        for watch in self.watches:
            watch.forget(self.complete_since)

    def since(self, version: int) -> int:
        """The index of the first event after `version`. Raises StatusError 410 if events after it were forgotten."""
        if version < self.complete_since:
            raise expired(f"too old resource version: {version} ({self.complete_since})")
        return bisect_right(self.events, version, key=_version_of)

    def as_of(self, version: int) -> tuple[list[Key], dict[Key, Object]]:
        """The sorted keys, and the objects by key, as they were at `version`. Raises StatusError 410 if events after it were forgotten."""
        later = self.events[self.since(version) :]
        if not later:
            return self.keys, self.objects
        objects = dict(self.objects)
        for event in reversed(later):
            if event.previous is None:
                objects.pop(event.key, None)
            else:
                objects[event.key] = event.previous
        return sorted(objects), objects


class Storage:
    """The objects of all kinds, with one version for all of them."""

    def __init__(self, journal: StoreJournal | None = None, version: int = 0) -> None:
        self.version = version  #: of the last write
        self.published = version  #: of the last write that watches may see
        self.kind_storages: dict[str, KindStorage] = {}
        self.journal = journal
        self._start = version
        self.stored = 0  #: bytes of the JSON of all objects
        self._history = 0  #: bytes of the JSON of the events of all kinds
        self._unpublished: list[tuple[KindStorage, WatchEvent]] = []
        self._listeners: list[tuple[Listener, tuple[str, ...]]] = []  #: each with the kinds that it is about; with none, all
        self.on_publish: list[Callable[[], None]] = []  #: called when watches have been offered what the journal has

    def kind_storage(self, storage: str) -> KindStorage:
        kind_storage = self.kind_storages.get(storage)
        if kind_storage is None:
            listeners = [listener for listener, storages in self._listeners if not storages or storage in storages]
            kind_storage = self.kind_storages[storage] = KindStorage(self._start, listeners)
        return kind_storage

    def listen(self, listener: Listener, *storages: str) -> None:
        """Call the listener at every write of these kinds, at once; if none is named, of all kinds."""
        self._listeners.append((listener, storages))
        for storage, kind_storage in self.kind_storages.items():
            if not storages or storage in storages:
                kind_storage.listeners.append(listener)

    def get(self, storage: str, key: Key) -> Object | None:
        kind_storage = self.kind_storages.get(storage)
        return kind_storage.objects.get(key) if kind_storage else None

    def json(self, storage: str, obj: Object) -> bytes:
        """The JSON of an object, which the event of its last write has, if that is still kept."""
        events = self.kind_storage(storage).events
        if events and events[-1].object is obj:
            return events[-1].body
        at = bisect_left(events, int(obj["metadata"].get("resourceVersion") or 0), key=_version_of)
        return events[at].body if at < len(events) and events[at].object is obj else _encode(obj)

    def has_any(self, storage: str) -> bool:
        return bool((kind_storage := self.kind_storages.get(storage)) and kind_storage.objects)

    def put(self, storage: str, key: Key, obj: Object, *, bounded: bool = False) -> Object:
        """Store an object and return it. Its `metadata` must be shared with nothing: the resourceVersion is set in it here.

        If `bounded`, raises StatusError 413 for an object that is too large, and 507 if all objects would be too large.
        """
        kind_storage = self.kind_storage(storage)
        previous = kind_storage.objects.get(key)
        obj["metadata"]["resourceVersion"] = str(self.version + 1)
        body = _encode(obj)
        size = len(body)
        grown = size - kind_storage.sizes.get(key, 0)
        if bounded and size > LARGEST_OBJECT:
            raise too_large(size, LARGEST_OBJECT)
        if bounded and grown > 0 and self.stored + grown > MOST_STORED:
            raise full(self.stored + grown, MOST_STORED)
        self.version += 1
        self.stored += grown
        kind_storage.objects[key], kind_storage.sizes[key] = obj, size
        if previous is None:
            insort(kind_storage.keys, key)
        self._write(storage, kind_storage, WatchEvent("ADDED" if previous is None else "MODIFIED", key, obj, previous, self.version, body))
        return obj

    def remove(self, storage: str, key: Key, last: Object | None = None) -> Object:
        """Remove an object. Returns its last state (`last`, or as it was stored), with the version of its removal."""
        kind_storage = self.kind_storage(storage)
        previous = kind_storage.objects.pop(key)
        del kind_storage.keys[bisect_left(kind_storage.keys, key)]
        self.stored -= kind_storage.sizes.pop(key)
        self.version += 1
        last = last or previous
        last = last | {"metadata": last["metadata"] | {"resourceVersion": str(self.version)}}
        self._write(storage, kind_storage, WatchEvent("DELETED", key, last, previous, self.version, _encode(last)))
        return last

    def _write(self, storage: str, kind_storage: KindStorage, event: WatchEvent) -> None:
        kind_storage.events.append(event)
        kind_storage.size += len(event.body)
        self._history += len(event.body)
        if self._history > HISTORY_BYTES or len(kind_storage.events) > 2 * RING:
            self._bound(kind_storage)
        if self.journal is None:
            self.published = event.resource_version
            for watch in kind_storage.watches:
                watch.offer(event)
        else:
            self._unpublished.append((kind_storage, event))
            self.journal.record(storage, event)
        for listener in kind_storage.listeners:  # listeners may write, too: such a write follows this event everywhere
            listener(storage, event)

    def _bound(self, kind_storage: KindStorage) -> None:
        if len(kind_storage.events) > 2 * RING:
            self._forget(kind_storage, RING)
        while self._history > HISTORY_BYTES:
            largest = max(self.kind_storages.values(), key=lambda kind_storage: kind_storage.size)
            self._forget(largest, 1 + len(largest.events) // 8)

    def compact(self, version: int) -> bool:
        """Forget some of the events up to this version. Objects stay. Returns whether there may be more of these events."""
        left = FORGOTTEN_AT_ONCE
        for kind_storage in self.kind_storages.values():
            if count := min(bisect_right(kind_storage.events, version, key=_version_of), left):
                self._forget(kind_storage, count)
                left -= count
        return not left

    def _forget(self, kind_storage: KindStorage, count: int) -> None:
        before = kind_storage.size
        kind_storage.forget(count)
        self._history -= before - kind_storage.size

    def publish(self, version: int) -> None:
        """Show watches all events up to `version`: the journal now has them."""
        count = 0
        for kind_storage, event in self._unpublished:
            if event.resource_version > version:
                break
            count += 1
            for watch in kind_storage.watches:
                watch.offer(event)
        del self._unpublished[:count]
        self.published = max(self.published, version)
        for call in self.on_publish:
            call()

    def restore(self, storage: str, key: Key, obj: Object) -> None:
        """Put back an object of a journal or archive, with the version that it has. Call this only before the first write and watch."""
        kind_storage = self.kind_storage(storage)
        kind_storage.objects[key], kind_storage.sizes[key] = obj, len(_encode(obj))
        self.stored += kind_storage.sizes[key]
        insort(kind_storage.keys, key)

    def everything(self) -> Iterator[tuple[tuple[str, str, str], Object]]:
        """Every object, with its storage, namespace and name."""
        return (((storage, *key), obj) for storage, kind_storage in self.kind_storages.items() for key, obj in kind_storage.objects.items())

    def select(
        self, storage: str, filter: WatchFilter, version: int | None = None, after: Key | None = None
    ) -> Iterator[tuple[Key, Object]]:
        """The objects that pass the filter, in order of their keys: now or as of `version`, and after the key `after` if it is given.

        Raises StatusError 410 if events after `version` were forgotten.
        """
        kind_storage = self.kind_storage(storage)
        if not kind_storage.keys and version in (None, self.version):
            return iter(())
        keys, objects = (
            (kind_storage.keys, kind_storage.objects) if version is None or version == self.version else kind_storage.as_of(version)
        )
        start = bisect_right(keys, after) if after else bisect_left(keys, (filter.namespace, ""))
        end = bisect_left(keys, (filter.namespace + "\0", "")) if filter.namespace else len(keys)
        return ((key, objects[key]) for key in keys[start:end] if filter.passes(key, objects[key]))

    def watch(self, storage: str, filter: WatchFilter, since: int, wake: Callable[[], None] | None = None) -> Watch:
        """A watch of all events after version `since`. Raises StatusError 410 if some were forgotten, 504 if `since` is in the future."""
        if since > self.version:
            raise StatusError(504, "Timeout", f"Too large resource version: {since}, current: {self.version}", {"retryAfterSeconds": 1})
        kind_storage = self.kind_storage(storage)
        index = kind_storage.since(since)
        watch = Watch(filter, since)
        for event in kind_storage.events[index:]:
            if event.resource_version > self.published:
                break
            watch.offer(event)
        watch.rouse_with(wake)
        kind_storage.watches.append(watch)
        return watch

    def unwatch(self, storage: str, watch: Watch) -> None:
        watches = self.kind_storage(storage).watches
        if watch in watches:
            watches.remove(watch)
