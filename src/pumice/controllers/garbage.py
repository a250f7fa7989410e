"""Owner references: what belongs to an object goes with it, before it, or stays behind.

Background: an object whose owners are all gone is deleted. Foreground: an owner with the finalizer `foregroundDeletion` waits
until the dependents that block it are gone. Orphan: dependents forget their owner, then it goes. An owner is the same only if
its uid is: a new object of an old name owns nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from pumice.controllers import kinds
from pumice.controllers.controller import EVERY, NOTHING, Change, Result, result
from pumice.controllers.kinds import kind_of
from pumice.controllers.objects import Object, key_of, namespace_of, owners_of, terminating, uid_of
from pumice.controllers.world import World
from pumice.controllers.writes import Write, delete, patch

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
LIVING, GOING, GONE = "living", "going", "gone"


class Node(NamedTuple):
    """An object in the graph of owners."""

    kind: str
    namespace: str
    name: str


class Garbage:
    """Collects what nobody owns any more."""

    name = "garbage"

    def __init__(self) -> None:
        self.watches = {EVERY: _touched}

    def reconcile(self, key: Hashable, world: World, now: float) -> Result:
        assert isinstance(key, Node)
        subject = world.get(*key)
        if subject is None:
            return NOTHING
        if terminating(subject):
            return result(_let_go(subject, world))
        owners = owners_of(subject)
        fates = [_fate(owner, subject, world) for owner in owners]
        if LIVING in fates or not owners:
            kept = [owner for owner, fate in zip(owners, fates, strict=True) if fate == LIVING]
            return result([patch(subject, {"metadata": {"ownerReferences": kept}})] if len(kept) < len(owners) else [])
        return result([delete(subject, propagation="Foreground" if GOING in fates else "Background")])


def _fate(owner: Object, dependent: Object, world: World) -> str:
    """Whether an owner lives, is gone, or waits for its dependents to go before it. An unknown kind may well live."""
    found = _find(owner, dependent, world)
    if found is None:
        return GONE if kind_of(owner) in set(world.kinds()) else LIVING
    return GOING if terminating(found) and FOREGROUND in (found["metadata"].get("finalizers") or ()) else LIVING


def _find(owner: Object, dependent: Object, world: World) -> Object | None:
    kind = kind_of(owner)
    found = world.get(kind, "" if kind in kinds.CLUSTER_SCOPED else namespace_of(dependent), owner["name"])
    return found if found is not None and uid_of(found) == owner["uid"] else None


def _let_go(owner: Object, world: World) -> list[Write]:
    """Serve the finalizers of an object that is to go."""
    finalizers = owner["metadata"].get("finalizers") or []
    dependents = list(world.dependents(uid_of(owner)))
    if ORPHAN in finalizers:
        writes: list[Write] = []
        for each in dependents:
            left = [reference for reference in owners_of(each) if reference["uid"] != uid_of(owner)]
            writes.append(patch(each, {"metadata": {"ownerReferences": left or None}}))
        return [*writes, _without(owner, ORPHAN)]
    if FOREGROUND in finalizers and not any(_blocks(each, owner) for each in dependents):
        return [_without(owner, FOREGROUND)]
    return []


def _blocks(dependent: Object, owner: Object) -> bool:
    return any(reference["uid"] == uid_of(owner) and reference.get("blockOwnerDeletion") for reference in owners_of(dependent))


def _without(owner: Object, finalizer: str) -> Write:
    left = [each for each in owner["metadata"]["finalizers"] if each != finalizer]
    return patch(owner, {"metadata": {"finalizers": left or None}})


def _touched(change: Change, world: World) -> Iterable[Node]:
    """An object with owners or finalizers to serve; with a change of its own end, those around it."""
    subject = change.object
    if change.new is not None and (owners_of(subject) or terminating(subject)):
        yield Node(kind_of(subject), *key_of(subject))
    if change.new is None or terminating(subject):
        for dependent in world.dependents(uid_of(subject)):
            yield Node(kind_of(dependent), *key_of(dependent))
    if change.new is None:
        for owner in owners_of(subject):
            found = _find(owner, subject, world)
            if found is not None and terminating(found):
                yield Node(kind_of(found), *key_of(found))
