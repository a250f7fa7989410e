"""The store as controllers see it: their `World`, read straight from the store, and the changes they have not heard of yet.

Objects are not copied. The two questions that the store has no answer for, who has this value in a field and who is owned by this uid, are
answered by indexes that follow every write. Changes wait in `take` until the controllers have time for them; `wake` says that some do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pumice.apiserver import Store
from pumice.apiserver.watching import Event
from pumice.controllers.controller import Change
from pumice.controllers.kinds import kind_of
from pumice.controllers.objects import Key, Object, field, owners_of
from pumice.controllers.world import INDEXED


class StoreWorld:
    """A World over a store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.wake: Callable[[], None] | None = None  #: called when there is something to take after there was nothing
        self._changes: list[Change] = []
        self._storages: dict[str, str] = {}  #: kind to where its objects live
        self._revision = -1  #: of the table of kinds that `_storages` is made of
        self._by_field: dict[tuple[str, str], dict[str, dict[Key, None]]] = {}
        self._dependents: dict[str, dict[tuple[str, Key], None]] = {}  #: by the uid of the owner
        for storage, shelf in store.ledger.shelves.items():
            for key in shelf.keys:
                self._heard(storage, None, shelf.objects[key])
        store.ledger.listeners.append(self._written)

    # The world that controllers see

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        storage = self.storage_of(kind)
        return self.store.ledger.get(storage, (namespace, name)) if storage else None

    def all(self, kind: str, namespace: str | None = None) -> Iterator[Object]:
        storage = self.storage_of(kind)
        return self.store.all(storage, namespace or "") if storage else iter(())

    def by_field(self, kind: str, path: str, value: str) -> Iterator[Object]:
        return self._objects((kind, key) for key in sorted(self._by_field.get((kind, path), {}).get(value, ())))

    def dependents(self, uid: str, kind: str | None = None) -> Iterator[Object]:
        return self._objects(place for place in sorted(self._dependents.get(uid, ())) if kind is None or place[0] == kind)

    def kinds(self) -> Iterator[str]:
        return iter(sorted(self._all_storages()))

    def _objects(self, places: Iterable[tuple[str, Key]]) -> Iterator[Object]:
        found = (self.get(kind, *key) for kind, key in list(places))
        return (subject for subject in found if subject is not None)

    def storage_of(self, kind: str) -> str | None:
        """The store's name for a kind such as "Job.batch"; None if it serves no such kind."""
        return self._all_storages().get(kind)

    def _all_storages(self) -> dict[str, str]:
        table = self.store.kinds
        if self._revision != table.revision:
            served = (kind for kind in table if kind.storage == kind.resource and not kind.reviewed_only)
            self._storages = {f"{kind.kind}.{kind.group}" if kind.group else kind.kind: kind.storage for kind in served}
            self._revision = table.revision
        return self._storages

    # The store's feed

    def take(self) -> list[Change]:
        """What has changed since the last time, in order."""
        taken, self._changes = self._changes, []
        return taken

    def _written(self, storage: str, event: Event) -> None:
        self._heard(storage, event.previous, None if event.type == "DELETED" else event.object)

    def _heard(self, storage: str, old: Object | None, new: Object | None) -> None:
        if storage == "events":  # no controller looks at them, and there are many
            return
        change = Change(old, new)
        kind = kind_of(change.object)
        metadata = change.object["metadata"]
        key = Key(metadata.get("namespace") or "", metadata["name"])
        self._index_fields(kind, key, old, new)
        self._index_owners((kind, key), old, new)
        self._changes.append(change)
        if len(self._changes) == 1 and self.wake is not None:
            self.wake()

    def _index_fields(self, kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        for path in INDEXED.get(kind, ()):
            before = None if old is None else str(field(old, path) or "")
            after = None if new is None else str(field(new, path) or "")
            if before == after:
                continue
            index = self._by_field.setdefault((kind, path), {})
            if before is not None:
                index[before].pop(key, None)
                if not index[before]:
                    del index[before]
            if after is not None:
                index.setdefault(after, {})[key] = None

    def _index_owners(self, place: tuple[str, Key], old: Object | None, new: Object | None) -> None:
        before = owners_of(old) if old else []
        after = owners_of(new) if new else []
        if before is after or before == after:
            return
        for owner in before:
            owned = self._dependents.get(owner["uid"], {})
            owned.pop(place, None)
            if not owned:
                self._dependents.pop(owner["uid"], None)
        for owner in after:
            self._dependents.setdefault(owner["uid"], {})[place] = None
