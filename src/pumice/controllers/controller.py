"""The shape of a controller: the kinds that it watches, the keys that a change touches, and the writes for a key.

`watches` maps a kind (or EVERY kind) to a function from a change to keys. A key is any value that can be a dictionary key;
most controllers use `Key`, the job controller uses a key that also holds an event. `reconcile` is pure and repeatable: called again
on the objects that its writes have made, it writes nothing. The caller handles the keys of one object one after the other and lets
the controller see its own earlier writes: a decision based on older objects could be made twice.

A `Lister` is the read-only view of a cluster for reconcilers and admission rules; the embedded store, the live cache and
`in_memory.Memory` implement it. Lists are in the order of (namespace, name), so that equal
clusters give equal writes. Objects are shared and must not be changed. Frequent look-ups have an index: by owner, and by
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
    labels_of,
    name_of,
    namespace_of,
    owners_of,
    status_of,
    uid_of,
)
from pumice.api.kinds import kind_of

LABELS = "metadata.labels."  #: begins the path of a label in `INDEXED`: its name has dots itself
GANG_FIELD, GANG_LABEL = "spec.schedulingGroup.podGroupName", f"{LABELS}scheduling.x-k8s.io/pod-group"
INDEXED = {
    kinds.POD: ("spec.nodeName", GANG_FIELD, GANG_LABEL),
    kinds.POD_GROUP: ("spec.queue",),
    kinds.JOB: ("spec.queue",),
    kinds.QUEUE: ("spec.parent",),
}  #: the fields that `by_field` can look up, by kind
RARE = frozenset({GANG_FIELD, GANG_LABEL})  #: fields that few objects have: those without are not looked up
ADOPTABLE = (kinds.POD, kinds.REPLICA_SET, kinds.CONTROLLER_REVISION)


class Lister(Protocol):
    """The cluster as it is known at this moment."""

    def get(self, kind: str, namespace: str, name: str) -> Object | None: ...

    def all(self, kind: str, namespace: str | None = None) -> Iterable[Object]:
        """All objects of a kind, or its objects in one namespace. An unknown kind has no objects."""
        ...

    def by_field(self, kind: str, field: str, value: str) -> Iterable[Object]:
        """The objects of all namespaces with this value in a field of `INDEXED`; "" finds the objects without the field,
        unless it is in `RARE`."""
        ...

    def dependents(self, uid: str, kind: str | None = None) -> Iterable[Object]:
        """The objects with an owner reference (controlling or not) to this uid."""
        ...

    def strays(self, kind: str, namespace: str) -> Iterable[Object]:
        """The objects of a kind of `ADOPTABLE` that have no controller."""
        ...

    def kinds(self) -> Iterable[str]:
        """Every kind of which there may be objects."""
        ...


# The look-ups of a lister that need an index: objects with a value in a field, objects owned by a uid, and objects without a controller.
#
# The store that keeps the objects passes every change to the index. The index holds keys, never objects.

IndexKey = tuple[str, Key]  #: kind and key of an object


class KeyIndex:
    """An index of keys: by the value of a field, by owner, and those of objects without a controller."""

    def __init__(self) -> None:
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
        before, after = _indexed(old, path), _indexed(new, path)
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


def _indexed(subject: Object | None, path: str) -> str | None:
    """The value by which an object is found; None if it cannot be found by this field."""
    if subject is None:
        return None
    found = labels_of(subject).get(path.removeprefix(LABELS)) if path.startswith(LABELS) else field(subject, path)
    return str(found) if found else None if path in RARE else ""


# The writes that a reconciler wants, as values. Its caller sends them to an API server or applies them to a store.
#
# The writes of one result are applied in order. The first failure ends them, and the key is tried again. So a write that must happen at
# most once (the deletion of a job's Command) comes first, and `surely`. Patches are JSON merge patches, made by comparing the present
# object with the wanted one (`status_change`, `change`): if nothing differs, there is no write.


class Create(Struct, frozen=True):
    """Store a new object; it is no failure if an object of this name exists."""

    object: Object
    about: Object | None = None  #: the object that gets an Event if the creation is refused
    refused: tuple[str, str] = ("FailedCreate", "Error creating")  #: the reason of that Event, and how its text begins


class Patch(Struct, frozen=True):
    """Merge `patch` into an object, if it still has the uid."""

    kind: str
    namespace: str
    name: str
    patch: Object
    subresource: str = ""  #: "status", or "" for the object itself
    uid: str = ""


class Delete(Struct, frozen=True):
    """Delete an object, if it still has the uid; it is no failure if the object is gone already."""

    kind: str
    namespace: str
    name: str
    uid: str = ""
    propagation: str = "Background"  #: Background, Foreground or Orphan
    grace_s: int | None = None  #: None: the grace period of the object
    surely: bool = False  #: repeat it until the object is gone: a failed deletion may have been carried out, and is not decided again


class Emit(Struct, frozen=True):
    """Write an Event about an object; repeated Events are counted where this is carried out."""

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
    """The patch that makes `subject` equal to `wanted`, except for its status; no write if nothing differs."""
    now, then = ({key: value for key, value in each.items() if key != "status"} for each in (subject, wanted))
    changed = difference(now, then)
    return [patch(subject, changed)] if changed else []


def status_change(subject: Object, status: Object, subresource: str = "status") -> list[Write]:
    """The patch that makes the status of `subject` equal to `status`; no write if nothing differs."""
    changed = difference(status_of(subject), status)
    return [patch(subject, {"status": changed}, subresource)] if changed else []


EVERY = "*"  #: in `watches`: changes of all kinds


class ObjectChange(NamedTuple):
    """An object before and after a change; None where it did not exist."""

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
    """The writes to carry out now, and the keys to reconcile again later."""

    writes: tuple[Write, ...] = ()
    later: tuple[tuple[float, Hashable], ...] = ()  #: (seconds since 1970, key)


NOTHING = Result()

KeysOf = Callable[[ObjectChange, Lister], Iterable[Hashable]]


class Controller(Protocol):
    """One reconciler. Its attributes are read-only, so that they may be class attributes."""

    @property
    def name(self) -> str: ...

    @property
    def watches(self) -> Mapping[str, KeysOf]: ...

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result: ...


@runtime_checkable
class GivesUp(Protocol):
    """A controller that gives up a key whose writes were refused too often in a row, and works on another key instead."""

    @property
    def max_failures(self) -> int:
        """The most refusals in a row that are tried again; negative: the controller never gives up."""
        ...

    def gave_up(self, key: Hashable) -> Hashable:
        """The key to reconcile instead."""
        ...


@runtime_checkable
class Consults(Protocol):
    """A controller that needs the single objects in `consults`: otherwise not all objects of their kinds are watched."""

    @property
    def consults(self) -> Sequence[tuple[str, Key]]: ...


@runtime_checkable
class LooksUp(Protocol):
    """A controller that gets objects by name: a role may allow these objects to be read, but not their kind to be watched."""

    def looks_up(self, key: Hashable, lister: Lister) -> Iterable[tuple[str, Key]]: ...


@runtime_checkable
class Prepares(Protocol):
    """A controller for which something is made before it reconciles a key that takes longer than an event loop may be held."""

    def prepares(self, key: Hashable, lister: Lister) -> Callable[[], None] | None:
        """What makes it, on any thread; None if nothing is missing."""
        ...


def itself(change: ObjectChange, lister: Lister) -> Iterable[Key]:
    """The key of the changed object."""
    return (key_of(change.object),)


def its_controller(kind: str) -> Callable[[ObjectChange, Lister], Iterable[Key]]:
    """A function from a change to the keys of the objects of this kind that control, or controlled, the changed object."""

    def keys(change: ObjectChange, lister: Lister) -> Iterable[Key]:
        found: dict[Key, None] = {}
        for state in change.states:
            owner = controller_of(state)
            if owner is not None and kind_of(owner) == kind:
                found[Key(namespace_of(state), owner["name"])] = None
        return found

    return keys


def all_of(kind: str) -> KeysOf:
    """A function from any change to the keys of all objects of a kind: for the rare change that concerns all of them."""
    return lambda change, lister: (key_of(subject) for subject in lister.all(kind))


def result(writes: Iterable[Write], later: Iterable[tuple[float, Hashable]] = ()) -> Result:
    return Result(tuple(writes), tuple(later))
