"""The `Lister` that controllers read, on the embedded store.

Objects are not copied. A `KeyIndex` that follows every write answers the look-ups for which the store has no index. Changes are kept until
the controllers fetch them with `take`; `wake` is called when there are some. Controllers are told of a change when watches are, so that
nobody else learns at once of an object and of what a controller has made of it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator

from pumice.api import Key, Object
from pumice.api.kinds import kind_of
from pumice.cluster.apiserver import Store
from pumice.cluster.apiserver.storage.watch import WatchEvent
from pumice.controllers.controller import ObjectChange
from pumice.controllers.key_index import IndexedLister

_UNSEEN = ("events",)  #: storages at which no controller looks, and which have many objects


class StoreLister(IndexedLister):
    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        self.wake: Callable[[], None] | None = None  #: called when there is a change to take after there was none
        self._changes: list[ObjectChange] = []
        self._versions: list[int] = []  #: of the changes
        self._storages: dict[str, str] = {}  #: kind to the storage of its objects
        self._revision = -1  #: the revision of the table of kinds from which `_storages` was made
        for storage, kind_storage in store.storage.kind_storages.items():
            for key in kind_storage.keys if storage not in _UNSEEN else ():
                obj = kind_storage.objects[key]
                self._note(kind_of(obj), key, None, obj, 0)
        store.storage.listen(self._on_write)
        store.storage.on_publish.append(self._wake)

    # What controllers look up

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        storage = self.storage_of(kind)
        return self.store.storage.get(storage, (namespace, name)) if storage else None

    def all(self, kind: str, namespace: str | None = None) -> Iterator[Object]:
        storage = self.storage_of(kind)
        return self.store.all(storage, namespace or "") if storage else iter(())

    def number(self, kind: str, namespace: str) -> int:
        """How many objects of a kind a namespace has."""
        keys = self.store.storage.kind_storage(self.storage_of(kind) or "").keys
        return bisect_left(keys, (f"{namespace}\0", "")) - bisect_left(keys, (namespace, ""))

    def number_of_dependents(self, uid: str) -> int:
        return self._index.number_owned(uid)

    def storage_of(self, kind: str) -> str | None:
        """The store's name for a kind such as "Job.batch"; None if it serves no such kind."""
        return self._all_storages().get(kind)

    def _all_storages(self) -> dict[str, str]:
        table = self.store.kinds
        if self._revision != table.revision:
            served = (kind for kind in table if kind.storage == kind.resource and not kind.reviewed_only)
            self._storages = {kind.name: kind.storage for kind in served}
            self._revision = table.revision
        return self._storages

    # The store's feed

    def take(self) -> list[ObjectChange]:
        """The changes since the last call that watches may see, in order."""
        count = bisect_right(self._versions, self.store.storage.published)
        taken, self._changes = self._changes[:count], self._changes[count:]
        del self._versions[:count]
        return taken

    def _wake(self) -> None:
        if self.wake is not None and self._versions and self._versions[0] <= self.store.storage.published:
            self.wake()

    def _on_write(self, storage: str, event: WatchEvent) -> None:
        if storage not in _UNSEEN:
            new = None if event.type == "DELETED" else event.object
            self._note(kind_of(event.object), event.key, event.previous, new, event.resource_version)

    def _note(self, kind: str, key: tuple[str, str], old: Object | None, new: Object | None, version: int) -> None:
        self._index.changed(kind, Key(*key), old, new)
        self._changes.append(ObjectChange(old, new))
        self._versions.append(version)
        if len(self._changes) == 1:
            self._wake()
