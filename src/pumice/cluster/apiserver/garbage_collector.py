"""Garbage collection: dependents are deleted with their owners or orphaned, and deleted namespaces are emptied (`namespace_deletion.py`).

The collector follows every write and notes the work that results from it; `step` does a little of this work, `run` all of it. The server
calls `step` between requests. Code that uses the store without a server calls `run` when it suits.

Ownership: the dependents by the uid of their owner, and the state of the owners to which an object's owner references point.
An owner that waits for its dependents counts as gone for a dependent that has another, living owner. Owner references may form a circle:
an owner that is blocked only by dependents which wait for that owner itself is not blocked.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pumice.api import Object
from pumice.cluster.apiserver.deletion import FOREGROUND, ORPHAN, DeleteOptions, is_finished
from pumice.cluster.apiserver.namespace_deletion import NamespaceDeletion, Place
from pumice.cluster.apiserver.scheme.kinds import KindTable, ServedKind
from pumice.cluster.apiserver.status import StatusError
from pumice.cluster.apiserver.storage.watch import WatchEvent

if TYPE_CHECKING:
    from pumice.cluster.apiserver.store import Store


class Owners(NamedTuple):
    """The owner references of one object, sorted by the state of the owner."""

    living: list[Object]
    waiting: list[Object]  #: the owner is being deleted and waits for its dependents
    gone: list[Object]
    certain: bool = True  #: False if a reference cannot be followed, so that the object must be left alone


class OwnerGraph:
    """The owner references of all objects. The objects themselves are looked up with `find`."""

    def __init__(self, kinds: KindTable, find: Callable[[Place], Object | None]) -> None:
        self._kinds = kinds
        self._find = find
        self._dependents: dict[str, set[Place]] = {}  #: by the uid of the owner: the places of its dependents

    def change(self, place: Place, before: list[Object] | None, after: list[Object] | None) -> None:
        """Note that the owner references of the object at this place have changed."""
        for reference in before or ():
            places = self._dependents.get(reference["uid"])
            if places is not None:
                places.discard(place)
                if not places:
                    del self._dependents[reference["uid"]]
        for reference in after or ():
            self._dependents.setdefault(reference["uid"], set()).add(place)

    def of(self, uid: str) -> Collection[Place]:
        return self._dependents.get(uid, ())

    def lost(self, alive: set[str]) -> list[Place]:
        """The places of the dependents of owners whose uid is not in `alive`, sorted."""
        return sorted({place for uid, places in self._dependents.items() if uid not in alive for place in places})

    def owners(self, references: list[Object], namespace: str) -> Owners:
        """The owner references, sorted by the state of the owner. An owner of an unknown kind counts as living, as it cannot be looked up.
        A cluster-wide object cannot have an owner in a namespace, as the reference does not name the namespace: `certain` is then False."""
        found = Owners([], [], [])
        for reference in references:
            kind = self._kinds.of_object(reference["apiVersion"], reference["kind"])
            if kind is not None and kind.namespaced and not namespace:
                return found._replace(certain=False)
            owner = self.owner(reference, namespace)
            if kind is not None and owner is None:
                found.gone.append(reference)
            elif owner is not None and waits(self.object(owner)):
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
        """Whether dependents block the deletion of an owner that waits for them."""
        return any(not self._is_held_by(place, owner) for place in self._holders(owner))

    def _is_held_by(self, place: Place, holder: Place) -> bool:
        """Whether the object at `place` waits for `holder` as its dependent, directly or through other objects that wait."""
        seen, todo = {place}, [place]
        while todo:
            one = todo.pop()
            if one == holder:
                return True
            if waits(self.object(one)):
                further = [each for each in self._holders(one) if each not in seen]
                seen.update(further)
                todo += further
        return False

    def _holders(self, owner: Place) -> Iterator[Place]:
        uid = self.object(owner)["metadata"]["uid"]
        return (place for place in self.of(uid) if _blocks(self.object(place), uid))

    def object(self, place: Place) -> Object:
        obj = self._find(place)
        assert obj is not None
        return obj


def waits(obj: Object) -> bool:
    """Whether the object is being deleted and waits for its dependents to be gone (foreground deletion)."""
    metadata: dict[str, Any] = obj["metadata"]
    return bool(metadata.get("deletionTimestamp")) and FOREGROUND in (metadata.get("finalizers") or ())


def _blocks(dependent: Object, uid: str) -> bool:
    references = dependent["metadata"].get("ownerReferences") or ()
    return any(reference["uid"] == uid and reference.get("blockOwnerDeletion") for reference in references)


class GarbageCollector:
    """Keeps a list of work that deletions have caused, and does it step by step."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ownership = OwnerGraph(store.kinds, self._find)
        self._namespaces = NamespaceDeletion(store.kinds, store.storage, store.now, self._goes, self._write)
        self._todo: OrderedDict[tuple[Callable[..., None], Any], None] = OrderedDict()
        self.wake: Callable[[], None] | None = None  #: called when there is work after there was none

    def on_write(self, storage: str, event: WatchEvent) -> None:
        place, metadata = (storage, event.key), event.object["metadata"]
        old = event.previous["metadata"] if event.previous else {}
        before = old.get("ownerReferences")
        after = metadata.get("ownerReferences") if event.type != "DELETED" else None
        if before is not after:
            self._ownership.change(place, before, after)
            self._on_owners(place, before or [], after or [])
        if event.type == "DELETED":
            self._on_removal(event, metadata)
        elif event.previous is not None and (
            storage == "namespaces"
            or old.get("deletionTimestamp") != metadata.get("deletionTimestamp")
            or old.get("finalizers") != metadata.get("finalizers")
        ):
            self.follow(place, metadata)

    def restored(self, place: Place, metadata: dict[str, Any]) -> None:
        """Note the work that was left for an object when the store ended. Called for each object that is restored."""
        if references := metadata.get("ownerReferences"):
            self._ownership.change(place, None, references)
            self.note(self._sweep, None)
        self.follow(place, metadata)

    def follow(self, place: Place, metadata: dict[str, Any]) -> None:
        """Note the work for which an object that is being deleted waits."""
        if metadata.get("deletionTimestamp"):
            if place[0] == "namespaces":
                self.note(self._empty, place[1][1])
            elif {FOREGROUND, ORPHAN} & set(metadata.get("finalizers") or ()):
                self.note(self._prepare, place)

    def _on_owners(self, place: Place, before: list[Object], after: list[Object]) -> None:
        namespace = place[1][0]
        for reference in before:
            owner = self._ownership.owner(reference, namespace)
            if owner is not None and waits(self._ownership.object(owner)):
                self.note(self._let_go, owner)
        if after and len(self._ownership.owners(after, namespace).living) < len(after):
            self.note(self._collect, place)

    def _on_removal(self, event: WatchEvent, metadata: dict[str, Any]) -> None:
        for place in sorted(self._ownership.of(metadata["uid"])):
            self.note(self._collect, place)
        if event.key[0] and self._terminating(event.key[0]):
            self.note(self._empty, event.key[0])

    def _terminating(self, namespace: str) -> bool:
        found = self._store.find("namespaces", "", namespace)
        return found is not None and bool(found["metadata"].get("deletionTimestamp"))

    # Doing

    def note(self, work: Callable[..., None], subject: Any) -> None:
        """Note work to be done later. The same work for the same subject is done once."""
        self._todo[(work, subject)] = None
        if len(self._todo) == 1 and self.wake is not None:
            self.wake()

    def step(self, limit: int = 20) -> bool:
        """Do at most `limit` pieces of work. Return whether there is more."""
        for _ in range(limit):
            if not self._todo:
                return False
            (work, subject), _ = self._todo.popitem(last=False)
            try:
                work(subject)
            except StatusError:
                continue  # the object is gone already, or an admission rule refused
        return bool(self._todo)

    def run(self) -> None:
        while self.step():
            pass

    def _sweep(self, subject: None) -> None:
        """Find the dependents of owners that were deleted just before the store ended."""
        alive = {
            obj["metadata"]["uid"] for kind_storage in self._store.storage.kind_storages.values() for obj in kind_storage.objects.values()
        }
        for place in self._ownership.lost(alive):
            self.note(self._collect, place)

    def _collect(self, place: Place) -> None:
        """Delete a dependent whose owner is gone or waits for it, unless another owner lives: then remove only the dead references."""
        obj = self._find(place)
        references = obj["metadata"].get("ownerReferences") if obj else None
        if obj is None or not references or obj["metadata"].get("deletionTimestamp"):
            return
        owners = self._ownership.owners(references, place[1][0])
        if not owners.certain or len(owners.living) == len(references):
            return
        if owners.living:
            self._write(place, obj | {"metadata": obj["metadata"] | {"ownerReferences": owners.living}})
        elif ORPHAN in (obj["metadata"].get("finalizers") or ()):
            self._delete(place, "Orphan")
        else:
            self._delete(place, "Foreground" if owners.waiting and self._ownership.of(obj["metadata"]["uid"]) else "Background")

    def _prepare(self, place: Place) -> None:
        """Prepare the end of an owner: orphan its dependents, or have them deleted before it."""
        obj = self._find(place)
        if obj is None:
            return
        dependents = sorted(self._ownership.of(obj["metadata"]["uid"]))
        if ORPHAN in (obj["metadata"].get("finalizers") or ()):
            for dependent in dependents:
                self._orphan(dependent, obj["metadata"]["uid"])
            self.unfinalize(place, obj, ORPHAN)
        else:
            for dependent in dependents:
                self.note(self._collect, dependent)
            self.note(self._let_go, place)

    def _let_go(self, place: Place) -> None:
        """Take the foreground finalizer off an owner as soon as none of its dependents blocks it."""
        obj = self._find(place)
        if obj is not None and waits(obj) and not self._ownership.is_held(place):
            self.unfinalize(place, obj, FOREGROUND)

    def _orphan(self, place: Place, uid: str) -> None:
        obj = self._ownership.object(place)
        kept = [reference for reference in obj["metadata"].get("ownerReferences") or () if reference["uid"] != uid]
        self._write(place, obj | {"metadata": obj["metadata"] | {"ownerReferences": kept}})

    def unfinalize(self, place: Place, obj: Object, finalizer: str) -> None:
        left = [one for one in obj["metadata"].get("finalizers") or () if one != finalizer]
        self._write(place, obj | {"metadata": obj["metadata"] | {"finalizers": left}})

    def _empty(self, namespace: str) -> None:
        if self._namespaces.step(namespace):
            self.note(self._empty, namespace)

    def _goes(self, place: Place) -> bool:
        """Delete the object. Return False if an admission rule refuses."""
        try:
            self._delete(place)
        except StatusError:
            return False
        return True

    # The store

    def _find(self, place: Place) -> Object | None:
        return self._store.storage.get(*place)

    def _kind(self, place: Place) -> ServedKind:
        return self._store.kind(place[0])

    def _write(self, place: Place, obj: Object) -> None:
        if is_finished(self._kind(place), obj):
            self._store.remove_trusted(*place)
        else:
            self._store.put_trusted(*place, obj)

    def _delete(self, place: Place, propagation: str = "Background") -> None:
        self._store.delete(self._kind(place), place[1][1], place[1][0], DeleteOptions(propagation=propagation))
