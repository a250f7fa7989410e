"""The store as its readers see it: objects and lists of them, in the version of a kind that is asked for, and watches.

The objects that are returned are the stored ones: never change them.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from pumice.api import Object
from pumice.api.field_selectors import FieldSelector
from pumice.api.selectors import Selector
from pumice.cluster.apiserver import status
from pumice.cluster.apiserver.scheme.conversion import seen
from pumice.cluster.apiserver.scheme.kinds import KindTable, ServedKind
from pumice.cluster.apiserver.storage.in_memory import Storage
from pumice.cluster.apiserver.storage.watch import Key, Watch, WatchFilter


class ListPage(NamedTuple):
    """One page of a list. `rest` is its last key, or None if there is no further page; `remaining` counts the items after this page."""

    items: list[Object]
    version: int
    rest: Key | None
    remaining: int


class ReadableStore:
    """The kinds and the objects of a cluster."""

    def __init__(self, kinds: KindTable, storage: Storage) -> None:
        self.kinds = kinds
        self.storage = storage
        self.before_read: dict[str, Callable[[], None]] = {}  #: by storage: what writes objects that only their readers need

    def kind(self, resource: str | ServedKind) -> ServedKind:
        """The kind called "pods" or "jobs.batch.volcano.sh". Raises StatusError 404."""
        if isinstance(resource, ServedKind):
            return resource
        try:
            return self.kinds.named(resource)
        except KeyError:
            raise status.no_such_path() from None

    def find(self, resource: str, namespace: str, name: str) -> Object | None:
        """The object; None if there is no such object or no such kind."""
        kind = self.kinds.find(resource)
        return self.storage.get(self._read(kind), (namespace, name)) if kind is not None else None

    def _read(self, kind: ServedKind) -> str:
        """The storage of a kind, which is about to be read."""
        if kind.storage in self.before_read:
            self.before_read[kind.storage]()
        return kind.storage

    def all(self, resource: str, namespace: str = "") -> Iterator[Object]:
        """Every object of a kind, ordered by namespace and name; nothing if there is no such kind."""
        kind = self.kinds.find(resource)
        if kind is None or not self.storage.has_any(self._read(kind)):
            return iter(())
        return (obj for _, obj in self.storage.select(kind.storage, WatchFilter(namespace)))

    def get(self, resource: str | ServedKind, name: str, namespace: str = "") -> Object:
        """The object as this version of its kind shows it. Raises StatusError 404."""
        kind = self.kind(resource)
        obj = self.storage.get(self._read(kind), (namespace if kind.namespaced else "", name))
        if obj is None:
            raise kind.not_found(name)
        return seen(kind, obj)

    def list(
        self,
        resource: str | ServedKind,
        namespace: str = "",
        labels: Selector = (),
        fields: FieldSelector = (),
        limit: int = 0,
        version: int | None = None,
        after: Key | None = None,
    ) -> ListPage:
        """A list of objects, or one page of it as of `version`. Raises StatusError 410 if events since that version are forgotten."""
        kind = self.kind(resource)
        selected = self.storage.select(self._read(kind), WatchFilter(namespace, labels, fields), version, after)
        items: list[Object] = []
        last: Key | None = None
        rest: Key | None = None
        remaining = 0
        for key, obj in selected:
            if limit and len(items) == limit:
                rest = last
                remaining = 1 + sum(1 for _ in selected)
                break
            items.append(obj)
            last = key
        if kind.convert is not None:
            kind.convert.prepare(kind.api_version, items)
        return ListPage([seen(kind, obj) for obj in items], self.storage.version if version is None else version, rest, remaining)

    def watch(
        self,
        resource: str | ServedKind,
        namespace: str = "",
        labels: Selector = (),
        fields: FieldSelector = (),
        since: int | None = None,
        wake: Callable[[], None] | None = None,
    ) -> Watch:
        """A watch of the events after version `since` (None: from now on). Raises StatusError 410 if some of them are forgotten."""
        kind = self.kind(resource)
        start = self.storage.version if since is None else since
        return self.storage.watch(kind.storage, WatchFilter(namespace, labels, fields), start, wake)

    def unwatch(self, resource: str | ServedKind, watch: Watch) -> None:
        self.storage.unwatch(self.kind(resource).storage, watch)
