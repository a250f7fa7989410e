"""Who owns whom: dependents by the uid of their owner, and what their references to owners are worth.

An owner that waits for its dependents is as good as gone for those whose other owners live. Owners may go round in a circle: who is held up
only by somebody that it holds up itself waits for nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from pumice.apiserver.deletion import FOREGROUND
from pumice.apiserver.kinds import KindTable
from pumice.apiserver.shapes import Object
from pumice.apiserver.watching import Key

Place = tuple[str, Key]  #: storage and key of an object


class Owners(NamedTuple):
    """The references of one object, sorted."""

    living: list[Object]
    waiting: list[Object]  #: the owner goes once its dependents are gone
    gone: list[Object]
    certain: bool = True  #: no: a reference that nobody can follow, so that nothing may be concluded


class Ownership:
    """Looks objects up with `find`."""

    def __init__(self, kinds: KindTable, find: Callable[[Place], Object | None]) -> None:
        self._kinds = kinds
        self._find = find
        self._dependents: dict[str, set[Place]] = {}  #: by the uid of the owner

    def change(self, place: Place, before: list[Object] | None, after: list[Object] | None) -> None:
        """The references of the object there have changed."""
        for reference in before or ():
            places = self._dependents.get(reference["uid"])
            if places is not None:
                places.discard(place)
                if not places:
                    del self._dependents[reference["uid"]]
        for reference in after or ():
            self._dependents.setdefault(reference["uid"], set()).add(place)

    def of(self, uid: str) -> Collection[Place]:
        """The dependents of an owner."""
        return self._dependents.get(uid, ())

    def lost(self, alive: set[str]) -> list[Place]:
        """Dependents of owners that are not among those `alive`."""
        return sorted({place for uid, places in self._dependents.items() if uid not in alive for place in places})

    def owners(self, references: list[Object], namespace: str) -> Owners:
        """An owner of a kind nobody knows is taken to live, as nobody can tell. An object of the whole cluster cannot have an owner in a
        namespace, for the reference does not say in which."""
        found = Owners([], [], [])
        for reference in references:
            kind = self._kinds.of_object(reference["apiVersion"], reference["kind"])
            if kind is not None and kind.namespaced and not namespace:
                return found._replace(certain=False)
            owner = self.owner(reference, namespace)
            if kind is not None and owner is None:
                found.gone.append(reference)
            elif owner is not None and waits(self._object(owner)):
                found.waiting.append(reference)
            else:
                found.living.append(reference)
        return found

    def owner(self, reference: Object, namespace: str) -> Place | None:
        kind = self._kinds.of_object(reference["apiVersion"], reference["kind"])
        if kind is None:
            return None
        place = (kind.storage, (namespace if kind.namespaced else "", reference["name"]))
        found = self._find(place)
        return place if found is not None and found["metadata"]["uid"] == reference["uid"] else None

    def is_held(self, owner: Place) -> bool:
        """Whether dependents hold up the end of an owner that waits for them."""
        return any(not self._is_held_by(place, owner) for place in self._holders(owner))

    def _is_held_by(self, place: Place, holder: Place) -> bool:
        """Whether it waits for this holder, directly or through others that wait."""
        seen, todo = {place}, [place]
        while todo:
            one = todo.pop()
            if one == holder:
                return True
            if waits(self._object(one)):
                further = [each for each in self._holders(one) if each not in seen]
                seen.update(further)
                todo += further
        return False

    def _holders(self, owner: Place) -> Iterator[Place]:
        uid = self._object(owner)["metadata"]["uid"]
        return (place for place in self.of(uid) if _blocks(self._object(place), uid))

    def _object(self, place: Place) -> Object:
        obj = self._find(place)
        assert obj is not None
        return obj


def waits(obj: Object) -> bool:
    """Whether it is to go once its dependents are gone."""
    metadata: dict[str, Any] = obj["metadata"]
    return bool(metadata.get("deletionTimestamp")) and FOREGROUND in (metadata.get("finalizers") or ())


def _blocks(dependent: Object, uid: str) -> bool:
    references = dependent["metadata"].get("ownerReferences") or ()
    return any(reference["uid"] == uid and reference.get("blockOwnerDeletion") for reference in references)
