"""The questions about a world that need an index: who has this value in a field, who is owned by this uid, and whom does nobody control.

Whoever keeps the objects tells the index of every change; it holds keys, never objects.
"""

from __future__ import annotations

from pumice.controllers.objects import Key, Object, controller_of, field, owners_of
from pumice.controllers.world import ADOPTABLE, INDEXED

Place = tuple[str, Key]  #: kind and key of an object


class Index:
    """Keys by field and by owner."""

    def __init__(self) -> None:
        self._by_field: dict[tuple[str, str], dict[str, dict[Key, None]]] = {}
        self._owned: dict[str, dict[Place, None]] = {}  #: by the uid of the owner
        self._strays: dict[tuple[str, str], dict[Key, None]] = {}  #: by kind and namespace

    def with_value(self, kind: str, path: str, value: str) -> list[Place]:
        return [(kind, key) for key in sorted(self._by_field.get((kind, path), {}).get(value, ()))]

    def owned_by(self, uid: str, kind: str | None = None) -> list[Place]:
        return [place for place in sorted(self._owned.get(uid, ())) if kind is None or place[0] == kind]

    def strays(self, kind: str, namespace: str) -> list[Place]:
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

    def _index_owners(self, place: Place, old: Object | None, new: Object | None) -> None:
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
