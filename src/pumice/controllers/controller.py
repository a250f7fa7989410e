"""What a controller is: the kinds it watches, which keys a change touches, and what to write for a key.

`watches` maps a kind (or EVERY kind) to a function from a change to keys. A key is any value that can be a dictionary key;
most controllers use `Key`, the job controller one that also says what happened. `reconcile` is pure and repeatable: run again
on the objects that its writes have made, it writes nothing. Whoever runs it looks at one key at a time and shows it its own earlier
writes: a decision made on older objects could be made twice.

A `Lister` is the read-only view of a cluster that reconcilers and admission rules have; the embedded store, a live cache and
`in_memory.Memory` are such. Lists are in the order of (namespace, name), so that equal
clusters give equal writes. Objects are shared and must not be changed. What is asked for often has an index: by owner, and by
the fields named in `INDEXED`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from pumice.api import kinds
from pumice.api.json_objects import (
    Key,
    Object,
    controller_of,
    difference,
    field,
    key_of,
    name_of,
    namespace_of,
    owners_of,
    status_of,
    uid_of,
)
from pumice.api.kinds import kind_of

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


# What a reconciler wants done, as values. Somebody else sends them to an API server or applies them to a store.
#
# The writes of one result are applied in order; the first that fails ends it and the key is tried again, so what must happen at
# most once (taking a job's Command) comes first, and `surely`. Patches are JSON merge patches and are made by comparing what is
# with what should be (`status_change`, `change`): where nothing differs there is no write.


class Create(Struct, frozen=True):
    """Store a new object; it is no failure if one of this name exists."""

    object: Object
    about: Object | None = None  #: who is told in an Event if it is refused


class Patch(Struct, frozen=True):
    """Merge `patch` into an object, if it still has the uid."""

    kind: str
    namespace: str
    name: str
    patch: Object
    subresource: str = ""  #: "status", or "" for the object itself
    uid: str = ""


class Delete(Struct, frozen=True):
    """Delete an object, if it still has the uid; one that is gone already is well."""

    kind: str
    namespace: str
    name: str
    uid: str = ""
    propagation: str = "Background"  #: Background, Foreground or Orphan
    grace_s: int | None = None  #: None: as the object says
    surely: bool = False  #: what follows is not decided again: where it may have been carried out though it failed, ask on


class Emit(Struct, frozen=True):
    """Tell about an object in an Event; repeats are counted where it is carried out."""

    about: Object
    type: str  #: Normal or Warning
    reason: str
    message: str


Write = Create | Patch | Delete | Emit


def delete(subject: Object, *, propagation: str = "Background", grace_s: int | None = None, surely: bool = False) -> Delete:
    return Delete(kind_of(subject), namespace_of(subject), name_of(subject), uid_of(subject), propagation, grace_s, surely)


def patch(subject: Object, content: Object, subresource: str = "") -> Patch:
    return Patch(kind_of(subject), namespace_of(subject), name_of(subject), content, subresource, uid_of(subject))


def change(subject: Object, wanted: Object) -> list[Write]:
    """Make `subject` equal to `wanted` (its status left alone), if it is not."""
    now, then = ({key: value for key, value in each.items() if key != "status"} for each in (subject, wanted))
    news = difference(now, then)
    return [patch(subject, news)] if news else []


def status_change(subject: Object, status: Object, subresource: str = "status") -> list[Write]:
    """Make the status of `subject` equal to `status`, if it is not."""
    news = difference(status_of(subject), status)
    return [patch(subject, {"status": news}, subresource)] if news else []


EVERY = "*"  #: in `watches`: changes of all kinds


class ObjectChange(NamedTuple):
    """One object before and after; None where it did not exist."""

    old: Object | None
    new: Object | None

    @property
    def object(self) -> Object:
        """The object as last seen."""
        seen = self.new or self.old
        assert seen is not None
        return seen

    @property
    def states(self) -> list[Object]:
        return [state for state in (self.old, self.new) if state is not None]


class Result(Struct, frozen=True):
    """What to do now, and what to look at again later."""

    writes: tuple[Write, ...] = ()
    later: tuple[tuple[float, Hashable], ...] = ()  #: (seconds since 1970, key)


NOTHING = Result()

KeysOf = Callable[[ObjectChange, Lister], Iterable[Hashable]]


class Controller(Protocol):
    """One reconciler. Read-only attributes, so that classes may state them once."""

    @property
    def name(self) -> str: ...

    @property
    def watches(self) -> Mapping[str, KeysOf]: ...

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result: ...


@runtime_checkable
class GivesUp(Protocol):
    """A controller that does something else with a key whose writes have failed too often in a row."""

    @property
    def max_failures(self) -> int:
        """Negative: it never does."""
        ...

    def gave_up(self, key: Hashable) -> Hashable:
        """The key to work on instead."""
        ...


@runtime_checkable
class Consults(Protocol):
    """A controller that looks at single objects of kinds of which otherwise not all are read."""

    @property
    def consults(self) -> Sequence[tuple[str, Key]]: ...


@runtime_checkable
class LooksUp(Protocol):
    """A controller that asks for objects by name: a role may let these be read that does not let all of their kind be watched."""

    def looks_up(self, key: Hashable, lister: Lister) -> Iterable[tuple[str, Key]]: ...


def itself(change: ObjectChange, lister: Lister) -> Iterable[Key]:
    """The changed object."""
    return (key_of(change.object),)


def its_controller(kind: str) -> Callable[[ObjectChange, Lister], Iterable[Key]]:
    """The object of this kind that controls, or did control, the changed one."""

    def keys(change: ObjectChange, lister: Lister) -> Iterable[Key]:
        found: dict[Key, None] = {}
        for state in change.states:
            owner = controller_of(state)
            if owner is not None and kind_of(owner) == kind:
                found[Key(namespace_of(state), owner["name"])] = None
        return found

    return keys


def all_of(kind: str) -> KeysOf:
    """Every object of a kind: for the rare change that concerns them all."""
    return lambda change, lister: (key_of(subject) for subject in lister.all(kind))


def result(writes: Iterable[Write], later: Iterable[tuple[float, Hashable]] = ()) -> Result:
    return Result(tuple(writes), tuple(later))
