"""What a controller is: the kinds it watches, which keys a change touches, and what to write for a key.

`watches` maps a kind (or EVERY kind) to a function from a change to keys. A key is any value that can be a dictionary key;
most controllers use `Key`, the job controller one that also says what happened. `reconcile` is pure and repeatable: run again
on the world that its writes have made, it writes nothing. Whoever runs it looks at one key at a time and shows it its own earlier
writes: a decision made on an older world could be made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from pumice.controllers.kinds import kind_of
from pumice.controllers.objects import Key, Object, controller_of, key_of, namespace_of
from pumice.controllers.world import World
from pumice.controllers.writes import Write

EVERY = "*"  #: in `watches`: changes of all kinds


class Change(NamedTuple):
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


class Result(NamedTuple):
    """What to do now, and what to look at again later."""

    writes: tuple[Write, ...] = ()
    later: tuple[tuple[float, Hashable], ...] = ()  #: (seconds since 1970, key)


NOTHING = Result()

KeysOf = Callable[[Change, World], Iterable[Hashable]]


class Controller(Protocol):
    """One reconciler. Read-only attributes, so that classes may state them once."""

    @property
    def name(self) -> str: ...

    @property
    def watches(self) -> Mapping[str, KeysOf]: ...

    def reconcile(self, key: Hashable, world: World, now: float) -> Result: ...


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

    def looks_up(self, key: Hashable, world: World) -> Iterable[tuple[str, Key]]: ...


def itself(change: Change, world: World) -> Iterable[Key]:
    """The changed object."""
    return (key_of(change.object),)


def its_controller(kind: str) -> Callable[[Change, World], Iterable[Key]]:
    """The object of this kind that controls, or did control, the changed one."""

    def keys(change: Change, world: World) -> Iterable[Key]:
        owners = ((namespace_of(state), controller_of(state)) for state in change.states)
        return {Key(namespace, owner["name"]): None for namespace, owner in owners if owner and kind_of(owner) == kind}

    return keys


def all_of(kind: str) -> KeysOf:
    """Every object of a kind: for the rare change that concerns them all."""
    return lambda change, world: (key_of(subject) for subject in world.all(kind))


def result(writes: Iterable[Write], later: Iterable[tuple[float, Hashable]] = ()) -> Result:
    return Result(tuple(writes), tuple(later))
