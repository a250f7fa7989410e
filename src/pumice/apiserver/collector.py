"""What follows from a deletion: dependents go with their owners, orphans are let go, namespaces are emptied.

The collector hears of every write and notes what is to be done; `step` does a little of it, `run` all. The server calls `step` between
requests; whoever uses the store without a server calls `run` when it suits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pumice.apiserver.deletion import FOREGROUND, ORPHAN, Wish, is_finished
from pumice.apiserver.kinds import Kind
from pumice.apiserver.shapes import Object
from pumice.apiserver.status import ApiError
from pumice.apiserver.watching import Event, Key

if TYPE_CHECKING:
    from pumice.apiserver.store import Store

Place = tuple[str, Key]  #: storage and key of an object


class Collector:
    """Keeps who owns whom, and a list of things to do."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._dependents: dict[str, set[Place]] = {}  #: by the uid of the owner
        self._todo: deque[tuple[Callable[..., None], Any]] = deque()
        self.wake: Callable[[], None] | None = None  #: called when there is something to do after there was nothing

    def heard(self, storage: str, event: Event) -> None:
        metadata = event.object["metadata"]
        before = event.previous["metadata"].get("ownerReferences") if event.previous else None
        after = metadata.get("ownerReferences") if event.type != "DELETED" else None
        if before is not after:
            self.index((storage, event.key), before, after)
        if event.type == "DELETED":
            self._heard_removal(event, metadata)
        elif event.previous is None:
            if after and not any(self._lives(reference, event.key[0]) for reference in after):
                self.note(self._release, ((storage, event.key), ""))
        else:
            self.follow((storage, event.key), metadata)

    def follow(self, place: Place, metadata: dict[str, Any]) -> None:
        """See to what an object that is to go waits for."""
        if metadata.get("deletionTimestamp"):
            if place[0] == "namespaces":
                self.note(self._empty, place[1][1])
            elif {FOREGROUND, ORPHAN} & set(metadata.get("finalizers") or ()):
                self.note(self._prepare, place)

    def index(self, place: Place, before: list[Object] | None, after: list[Object] | None) -> None:
        for reference in before or ():
            places = self._dependents.get(reference["uid"])
            if places is not None:
                places.discard(place)
                if not places:
                    del self._dependents[reference["uid"]]
        for reference in after or ():
            self._dependents.setdefault(reference["uid"], set()).add(place)

    def _heard_removal(self, event: Event, metadata: dict[str, Any]) -> None:
        for place in sorted(self._dependents.get(metadata["uid"], ())):
            self.note(self._release, (place, metadata["uid"]))
        for reference in metadata.get("ownerReferences") or ():
            owner = self._owner(reference, event.key[0])
            if owner is not None and self._object(owner)["metadata"].get("deletionTimestamp"):
                self.note(self._prepare, owner)
        if event.key[0] and self._terminating(event.key[0]):
            self.note(self._empty, event.key[0])

    def _terminating(self, namespace: str) -> bool:
        found = self._store.find("namespaces", "", namespace)
        return found is not None and bool(found["metadata"].get("deletionTimestamp"))

    # Doing

    def note(self, work: Callable[..., None], subject: Any) -> None:
        """Something to be done later."""
        self._todo.append((work, subject))
        if len(self._todo) == 1 and self.wake is not None:
            self.wake()

    def step(self, limit: int = 100) -> bool:
        """Do so many things; whether there is more."""
        for _ in range(limit):
            if not self._todo:
                return False
            work, subject = self._todo.popleft()
            try:
                work(subject)
            except ApiError:
                continue  # it is gone already, or a rule keeps it
        return bool(self._todo)

    def run(self) -> None:
        while self.step():
            pass

    def _release(self, work: tuple[Place, str]) -> None:
        """An owner is gone: its dependent goes too, unless somebody else owns it."""
        place, uid = work
        obj = self._find(place)
        if obj is None:
            return
        references = obj["metadata"].get("ownerReferences") or []
        living = [reference for reference in references if reference["uid"] != uid and self._lives(reference, place[1][0])]
        if living and living == references:
            return
        if living:
            self._write(place, obj | {"metadata": obj["metadata"] | {"ownerReferences": living}})
        elif references:
            self._delete(place)

    def _prepare(self, place: Place) -> None:
        """An owner is to go after its dependents, or to leave them behind."""
        obj = self._find(place)
        if obj is None:
            return
        finalizers = obj["metadata"].get("finalizers") or []
        dependents = sorted(self._dependents.get(obj["metadata"]["uid"], ()))
        if ORPHAN in finalizers:
            for dependent in dependents:
                self._orphan(dependent, obj["metadata"]["uid"])
            self.unfinalize(place, obj, ORPHAN)
        elif FOREGROUND in finalizers:
            for dependent in dependents:
                if not self._object(dependent)["metadata"].get("deletionTimestamp"):
                    self._delete(dependent, "Foreground")
            uid = obj["metadata"]["uid"]
            if not any(self._blocks(dependent, uid) for dependent in self._dependents.get(uid, ())):
                self.unfinalize(place, obj, FOREGROUND)

    def _blocks(self, place: Place, uid: str) -> bool:
        """Whether the dependent holds up its owner's end."""
        references = self._object(place)["metadata"].get("ownerReferences") or ()
        return any(reference["uid"] == uid and reference.get("blockOwnerDeletion") for reference in references)

    def _orphan(self, place: Place, uid: str) -> None:
        obj = self._object(place)
        kept = [reference for reference in obj["metadata"].get("ownerReferences") or () if reference["uid"] != uid]
        self._write(place, obj | {"metadata": obj["metadata"] | {"ownerReferences": kept}})

    def unfinalize(self, place: Place, obj: Object, finalizer: str) -> None:
        left = [one for one in obj["metadata"].get("finalizers") or () if one != finalizer]
        self._write(place, obj | {"metadata": obj["metadata"] | {"finalizers": left}})

    def _empty(self, namespace: str) -> None:
        """Delete what is in a namespace; when nothing is left, let it go."""
        found = self._find(("namespaces", ("", namespace)))
        if found is None:
            return
        places = [(storage, key) for storage, shelf in self._store.ledger.shelves.items() for key in shelf.keys if key[0] == namespace]
        for place in places:
            if not self._object(place)["metadata"].get("deletionTimestamp"):
                self._delete(place)
        if not any(self._find(place) for place in places):
            spec = (found.get("spec") or {}) | {"finalizers": []}
            self._write(("namespaces", ("", namespace)), found | {"metadata": dict(found["metadata"]), "spec": spec})

    # The store

    def _find(self, place: Place) -> Object | None:
        return self._store.ledger.get(*place)

    def _object(self, place: Place) -> Object:
        obj = self._find(place)
        assert obj is not None
        return obj

    def _kind(self, place: Place) -> Kind:
        return self._store.kind(place[0])

    def _write(self, place: Place, obj: Object) -> None:
        self._store.ledger.put(*place, obj)
        if is_finished(self._kind(place), obj):
            self._store.ledger.remove(*place)

    def _delete(self, place: Place, propagation: str = "Background") -> None:
        self._store.delete(self._kind(place), place[1][1], place[1][0], Wish(propagation=propagation))

    def _owner(self, reference: Object, namespace: str) -> Place | None:
        kind = self._store.kinds.of_object(reference["apiVersion"], reference["kind"])
        if kind is None:
            return None
        place = (kind.storage, (namespace if kind.namespaced else "", reference["name"]))
        found = self._find(place)
        return place if found is not None and found["metadata"]["uid"] == reference["uid"] else None

    def _lives(self, reference: Object, namespace: str) -> bool:
        """An owner of a kind nobody knows is taken to live, as nobody can tell."""
        known = self._store.kinds.of_object(reference["apiVersion"], reference["kind"]) is not None
        return not known or self._owner(reference, namespace) is not None
