"""What controllers want written, carried out on the store in process.

As `controllers.writes` says: what exists already is created well enough, an object with another uid is another object and left alone, what
is gone is deleted well enough. Everything else that the store refuses is an ApiError for the caller.
Events are counted and thinned out as every component of Kubernetes does it, with the same book.
"""

from __future__ import annotations

from pumice.apiserver import ApiError, Options, Store, Wish
from pumice.apiserver import Patch as StorePatch
from pumice.controllers.kinds import kind_of
from pumice.controllers.objects import Object, name_of, namespace_of, uid_of
from pumice.controllers.writes import Create, Delete, Emit, Patch, Write
from pumice.kube.events import EventBook, Occurrence, Regarding
from pumice.sim.store_world import StoreWorld


class StoreWrites:
    """Writes to one store under the name of one component."""

    def __init__(self, world: StoreWorld, component: str) -> None:
        self._world = world
        self._store: Store = world.store
        self._options = Options(manager=component, validation="Ignore")
        self._book = EventBook(component)

    def apply(self, write: Write) -> None:
        """Raises ApiError."""
        match write:
            case Create():
                self._create(write)
            case Patch():
                self._patch(write)
            case Delete():
                self._delete(write)
            case Emit():
                self.tell(write.about, write.type, write.reason, write.message)

    def tell(self, about: Object, type_: str, reason: str, message: str) -> None:
        """An event. One that cannot be written is lost, as events may be."""
        regarding = Regarding(about["kind"], name_of(about), namespace_of(about), uid_of(about), about["apiVersion"])
        event = self._book.note(Occurrence(regarding, type_, reason, message), self._store.now())
        if event is None:
            return
        try:
            if event.patch is not None and self._store.find("events", event.namespace, event.name) is not None:
                self._store.patch("events", event.name, StorePatch("merge", event.patch), event.namespace, options=self._options)
            else:
                self._store.create("events", event.event, event.namespace, self._options)
        except ApiError:
            pass  # the namespace is going, most likely

    def _create(self, write: Create) -> None:
        subject = write.object
        try:
            self._store.create(self._storage(kind_of(subject)), subject, namespace_of(subject), self._options)
        except ApiError as error:
            if error.reason == "AlreadyExists":
                return
            if write.about is not None:
                self.tell(write.about, "Warning", "FailedCreate", f"Error creating: {error.message}")
            raise

    def _patch(self, write: Patch) -> None:
        found = self._world.get(write.kind, write.namespace, write.name)
        if found is None or (write.uid and uid_of(found) != write.uid):
            return
        patch = StorePatch("merge", write.patch)
        self._store.patch(self._storage(write.kind), write.name, patch, write.namespace, write.subresource, self._options)

    def _delete(self, write: Delete) -> None:
        found = self._world.get(write.kind, write.namespace, write.name)
        if found is None or (write.uid and uid_of(found) != write.uid):
            return
        wish = Wish(grace_s=write.grace_s, propagation=write.propagation)
        self._store.delete(self._storage(write.kind), write.name, write.namespace, wish, self._options)

    def _storage(self, kind: str) -> str:
        return self._world.storage_of(kind) or kind
