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

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from pumice.api import Key, Object, key_of, kinds, namespace_of
from pumice.api.json_objects import controller_of, labels_of, owners_of, spec_of, status_of
from pumice.api.kinds import kind_of
from pumice.controllers.writes import Write

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

    def has_any(self, kind: str) -> bool: ...

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


EVERY = "*"  #: in `watches`: changes of all kinds
_WAITING = {"nominatedNodeName": None, "conditions": None}  #: fields that say why a pod waits, left out of a comparison
_VERSION = {"resourceVersion": None}


class _States(NamedTuple):
    old: Object | None
    new: Object | None


class ObjectChange(_States):
    """An object before and after a change; None where it did not exist. What several controllers ask of it is found out once."""

    @property
    def object(self) -> Object:
        """The object as last seen."""
        seen = self.new or self.old
        assert seen is not None
        return seen

    @property
    def states(self) -> list[Object]:
        return [state for state in (self.old, self.new) if state is not None]

    @cached_property
    def controllers(self) -> Mapping[str, Set[Key]]:
        """The keys of the objects that control, or controlled, the object, by their kind."""
        found: dict[str, set[Key]] = {}
        for state in self.states:
            if (owner := controller_of(state)) is not None:
                found.setdefault(kind_of(owner), set()).add(Key(namespace_of(state), owner["name"]))
        return found

    @property
    def concerns_owners(self) -> bool:
        """Whether the object has or had owners, or might get one."""
        old, new = self
        if (old is not None and owners_of(old)) or (new is not None and owners_of(new)):
            return True
        return new is not None and (old is None or labels_of(old) != labels_of(new))

    @property
    def is_of_interest(self) -> bool:
        """Whether more differs than why a pod waits, by which no controller of pods decides anything."""
        old, new = self
        if old is None or new is None or spec_of(old) is not spec_of(new):
            return True
        before, after = status_of(old), status_of(new)
        return (
            before.get("phase") != after.get("phase")
            or {**before, **_WAITING} != {**after, **_WAITING}
            or {**old["metadata"], **_VERSION} != {**new["metadata"], **_VERSION}
            or _other_conditions(before) != _other_conditions(after)
        )

    @property
    def is_adoptable(self) -> bool:
        """Whether the object has no controller now, and that or its labels are new."""
        old, new = self
        if new is None or controller_of(new) is not None:
            return False
        return old is None or controller_of(old) is not None or labels_of(old) != labels_of(new)


def _other_conditions(status: Object) -> list[Object]:
    return [each for each in status.get("conditions") or () if each.get("type") != "PodScheduled"]


class Result(Struct, frozen=True):
    """The writes to carry out now, and the keys to reconcile again later."""

    writes: tuple[Write, ...] = ()
    later: tuple[tuple[float, Hashable], ...] = ()  #: (seconds since 1970, key)


NOTHING = Result()

KeysOf = Callable[[ObjectChange, Lister], Iterable[Hashable]]


class Among:
    """A function to keys of objects of one kind: nobody asks it while there are none, or none that `counts`. With `owners`, nor about a
    change that concerns no owners."""

    def __init__(self, kind: str, keys_of: KeysOf, *, owners: bool = False, counts: Callable[[Object], bool] | None = None) -> None:
        self._kind = kind
        self._owners = owners
        self._counts = counts
        self._keys_of = keys_of

    def is_asked(self, lister: Lister, concerns_owners: bool) -> bool:
        """Whether it is asked about such changes now."""
        if not lister.has_any(self._kind) or (self._owners and not concerns_owners):
            return False
        return self._counts is None or any(map(self._counts, lister.all(self._kind)))

    def __call__(self, change: ObjectChange, lister: Lister) -> Iterable[Hashable]:
        return self._keys_of(change, lister)


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
    return (key_of(change.object),)


def its_controller(kind: str) -> KeysOf:
    """A function from a change to the keys of the objects of this kind that control, or controlled, the changed object."""
    return Among(kind, lambda change, lister: sorted(change.controllers.get(kind, ())), owners=True)


def all_of(kind: str) -> KeysOf:
    """A function from any change to the keys of all objects of a kind: for the rare change that concerns all of them."""
    return lambda change, lister: (key_of(subject) for subject in lister.all(kind))


def result(writes: Iterable[Write], later: Iterable[tuple[float, Hashable]] = ()) -> Result:
    return Result(tuple(writes), tuple(later))
