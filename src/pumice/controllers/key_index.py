"""The look-ups of a lister that need an index: objects with a value in a field, objects owned by a uid, and objects without a controller.

The store that keeps the objects passes every change to the index. The index holds keys, never objects.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

from pumice.api import Key, Object
from pumice.api.json_objects import controller_of, owners_of
from pumice.controllers.controller import ADOPTABLE, INDEXED, LABELS, RARE

IndexKey = tuple[str, Key]  #: kind and key of an object
#: by field: the steps to it
_WAYS = {
    path: ["metadata", "labels", path.removeprefix(LABELS)] if path.startswith(LABELS) else path.split(".")
    for path in chain.from_iterable(INDEXED.values())
}


class KeyIndex:
    """An index of keys: by the value of a field, by owner, and those of objects without a controller."""

    def __init__(self) -> None:
        self.numbers: Counter[str] = Counter()  #: of objects, by kind
        self._by_field: dict[tuple[str, str], dict[str, dict[Key, None]]] = {}
        self._owned: dict[str, dict[IndexKey, None]] = {}  #: by the uid of the owner
        self._strays: dict[tuple[str, str], dict[Key, None]] = {}  #: by kind and namespace

    def with_value(self, kind: str, path: str, value: str) -> list[IndexKey]:
        return [(kind, key) for key in sorted(self._by_field.get((kind, path), {}).get(value, ()))]

    def owned_by(self, uid: str, kind: str | None = None) -> list[IndexKey]:
        return [place for place in sorted(self._owned.get(uid, ())) if kind is None or place[0] == kind]

    def number_owned(self, uid: str) -> int:
        return len(self._owned.get(uid, ()))

    def strays(self, kind: str, namespace: str) -> list[IndexKey]:
        return [(kind, key) for key in sorted(self._strays.get((kind, namespace), ()))]

    def changed(self, kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and not _may_move(old, new):
            return
        self.numbers[kind] += (new is not None) - (old is not None)
        for path in INDEXED.get(kind, ()):
            before, after = _indexed(old, path), _indexed(new, path)
            if before != after:
                self._index_field(self._by_field.setdefault((kind, path), {}), key, before, after)
        owners, owners_now = owners_of(old) if old else [], owners_of(new) if new else []
        if old is None or new is None or owners != owners_now:
            self._index_owners((kind, key), owners, owners_now)
            if kind in ADOPTABLE:
                self._index_strays((kind, key.namespace), key, new)

    def _index_strays(self, place: tuple[str, str], key: Key, new: Object | None) -> None:
        if new is not None and controller_of(new) is None:
            self._strays.setdefault(place, {})[key] = None
        elif strays := self._strays.get(place):
            strays.pop(key, None)
            if not strays:
                del self._strays[place]

    def _index_field(self, index: dict[str, dict[Key, None]], key: Key, before: str | None, after: str | None) -> None:
        if before is not None:
            index[before].pop(key, None)
            if not index[before]:
                del index[before]
        if after is not None:
            index.setdefault(after, {})[key] = None

    def _index_owners(self, place: IndexKey, before: list[Object], after: list[Object]) -> None:
        for owner in before:
            owned = self._owned.get(owner["uid"], {})
            owned.pop(place, None)
            if not owned:
                self._owned.pop(owner["uid"], None)
        for owner in after:
            self._owned.setdefault(owner["uid"], {})[place] = None


class IndexedLister:
    """A lister with these look-ups; whoever has the objects says how one is got, and passes changes to `_index`."""

    def __init__(self) -> None:
        self._index = KeyIndex()

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        raise NotImplementedError

    def has_any(self, kind: str) -> bool:
        return self._index.numbers[kind] > 0

    def by_field(self, kind: str, path: str, value: str) -> Iterator[Object]:
        return self._found(self._index.with_value(kind, path, value))

    def dependents(self, uid: str, kind: str | None = None) -> Iterator[Object]:
        return self._found(self._index.owned_by(uid, kind))

    def strays(self, kind: str, namespace: str) -> Iterator[Object]:
        return self._found(self._index.strays(kind, namespace))

    def _found(self, places: list[IndexKey]) -> Iterator[Object]:
        found = (self.get(kind, *key) for kind, key in places)
        return (subject for subject in found if subject is not None)


def _may_move(old: Object, new: Object) -> bool:
    """Whether anything by which an object is found may differ."""
    before, after = old["metadata"], new["metadata"]
    return (
        old.get("spec") is not new.get("spec")
        or before.get("labels") != after.get("labels")
        or before.get("ownerReferences") != after.get("ownerReferences")
    )


def _indexed(subject: Object | None, path: str) -> str | None:
    """The value by which an object is found; None if it cannot be found by this field."""
    found: Any = subject
    for step in _WAYS[path]:
        found = found.get(step) if isinstance(found, dict) else None
    return None if subject is None else str(found) if found else None if path in RARE else ""
