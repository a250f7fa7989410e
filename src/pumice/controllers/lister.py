"""The read-only view of a cluster that reconcilers and admission rules have.

The embedded store, a live cache and `in_memory.Memory` implement it. Lists are in the order of (namespace, name), so that equal
clusters give equal writes. Objects are shared and must not be changed. What is asked for often has an index: by owner, and by
the fields named in `INDEXED`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from pumice.api import kinds
from pumice.api.json_objects import Key, Object, controller_of, field, owners_of

INDEXED = {
    kinds.POD: ("spec.nodeName",),
    kinds.POD_GROUP: ("spec.queue",),
    kinds.JOB: ("spec.queue",),
    kinds.QUEUE: ("spec.parent",),
}  #: fields that `by_field` can be asked for, by kind
ADOPTABLE = (kinds.POD, kinds.REPLICA_SET, kinds.CONTROLLER_REVISION)


class Lister(Protocol):
    """A cluster as it is known at this moment."""

    def get(self, kind: str, namespace: str, name: str) -> Object | None: ...

    def all(self, kind: str, namespace: str | None = None) -> Iterable[Object]:
        """All objects of a kind, or those of one namespace. Unknown kinds have none."""
        ...

    def by_field(self, kind: str, field: str, value: str) -> Iterable[Object]:
        """Objects of all namespaces with this value in a field of `INDEXED`; "" finds those without the field."""
        ...

    def dependents(self, uid: str, kind: str | None = None) -> Iterable[Object]:
        """Objects with an owner reference (controlling or not) to this uid."""
        ...

    def strays(self, kind: str, namespace: str) -> Iterable[Object]:
        """Objects of a kind of `ADOPTABLE` that nobody controls."""
        ...

    def kinds(self) -> Iterable[str]:
        """Every kind of which there may be objects."""
        ...


# The questions to a lister that need an index: who has this value in a field, who is owned by this uid, and whom does nobody control.
#
# Whoever keeps the objects tells the index of every change; it holds keys, never objects.

IndexKey = tuple[str, Key]  #: kind and key of an object


class KeyIndex:
    """Keys by field and by owner."""

    def __init__(self) -> None:
        self._by_field: dict[tuple[str, str], dict[str, dict[Key, None]]] = {}
        self._owned: dict[str, dict[IndexKey, None]] = {}  #: by the uid of the owner
        self._strays: dict[tuple[str, str], dict[Key, None]] = {}  #: by kind and namespace

    def with_value(self, kind: str, path: str, value: str) -> list[IndexKey]:
        return [(kind, key) for key in sorted(self._by_field.get((kind, path), {}).get(value, ()))]

    def owned_by(self, uid: str, kind: str | None = None) -> list[IndexKey]:
        return [place for place in sorted(self._owned.get(uid, ())) if kind is None or place[0] == kind]

    def strays(self, kind: str, namespace: str) -> list[IndexKey]:
        return [(kind, key) for key in sorted(self._strays.get((kind, namespace), ()))]

    def changed(self, kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        for path in INDEXED.get(kind, ()):
            self._index_field(self._by_field.setdefault((kind, path), {}), path, key, old, new)
        self._index_owners((kind, key), old, new)
        if kind in ADOPTABLE:
            self._index_strays(self._strays.setdefault((kind, key.namespace), {}), key, new)

    def _index_strays(self, strays: dict[Key, None], key: Key, new: Object | None) -> None:
        if new is not None and controller_of(new) is None:
            strays[key] = None
        else:
            strays.pop(key, None)

    def _index_field(self, index: dict[str, dict[Key, None]], path: str, key: Key, old: Object | None, new: Object | None) -> None:
        before = None if old is None else str(field(old, path) or "")
        after = None if new is None else str(field(new, path) or "")
        if before == after:
            return
        if before is not None:
            index[before].pop(key, None)
            if not index[before]:
                del index[before]
        if after is not None:
            index.setdefault(after, {})[key] = None

    def _index_owners(self, place: IndexKey, old: Object | None, new: Object | None) -> None:
        before = owners_of(old) if old else []
        after = owners_of(new) if new else []
        if before is after or before == after:
            return
        for owner in before:
            owned = self._owned.get(owner["uid"], {})
            owned.pop(place, None)
            if not owned:
                self._owned.pop(owner["uid"], None)
        for owner in after:
            self._owned.setdefault(owner["uid"], {})[place] = None
