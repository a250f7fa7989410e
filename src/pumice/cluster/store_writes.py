"""The writes of controllers, carried out on the store in the same process.

As `controllers.controller` demands: to create an object that exists already is no failure, nor is to delete one that is gone. An object
with another uid is another object and is left alone. Every other refusal of the store is a StatusError for the caller. Events are counted
and thinned out as in every component of Kubernetes, by the same correlator that our clients use.
"""

from pumice.api import Object, key_of, name_of, namespace_of, status_of, uid_of
from pumice.api.kinds import kind_of
from pumice.client.event_correlator import EventCorrelator, EventRecord, InvolvedObject
from pumice.cluster.apiserver import DeleteOptions, PatchRequest, StatusError, Store, WriteOptions
from pumice.cluster.apiserver.pending_calls import Pending
from pumice.cluster.store_lister import StoreLister
from pumice.controllers.pod_bursts import refused
from pumice.controllers.writes import Create, Delete, Emit, Patch, Write, status_change


class StoreWrites:
    """Carries out writes on one store under the name of one component."""

    def __init__(self, lister: StoreLister, component: str) -> None:
        self._lister = lister
        self._store: Store = lister.store
        self._options = WriteOptions(manager=component, validation="Ignore")
        self._book = EventCorrelator(component)

    def apply(self, write: Write) -> None:
        """Carry out one write. Raises StatusError."""
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
        """Write an event about an object. An event that cannot be written is lost, as events may be."""
        regarding = InvolvedObject(about["kind"], name_of(about), namespace_of(about), uid_of(about), about["apiVersion"])
        event = self._book.note(EventRecord(regarding, type_, reason, message), self._store.now())
        if event is None:
            return
        try:
            if event.patch is not None and self._store.find("events", event.namespace, event.name) is not None:
                self._store.patch("events", event.name, PatchRequest("merge", event.patch), event.namespace, options=self._options)
            else:
                self._store.create("events", event.event, event.namespace, self._options)
        except StatusError:
            pass  # most likely the namespace is being deleted

    def _create(self, write: Create) -> None:
        subject = write.object
        try:
            self._store.create(self._storage(kind_of(subject)), subject, namespace_of(subject), self._options)
        except Pending:
            raise
        except StatusError as error:
            if error.reason == "AlreadyExists":
                return
            if write.about is not None:
                self.tell(write.about, "Warning", write.refused[0], f"{write.refused[1]}: {error.message}")
                self._note_refusal(write.about, error.message)
            raise

    def _note_refusal(self, about: Object, message: str) -> None:
        """Say by a condition of a ReplicaSet or ReplicationController that its pods cannot be created."""
        owner = self._lister.get(kind_of(about), *key_of(about)) if about["kind"] in ("ReplicaSet", "ReplicationController") else None
        if owner is not None:
            for write in status_change(owner, refused(status_of(owner), message, self._store.now())):
                self.apply(write)

    def _patch(self, write: Patch) -> None:
        found = self._lister.get(write.kind, write.namespace, write.name)
        if found is None or (write.uid and uid_of(found) != write.uid):
            return
        patch = PatchRequest("merge", write.patch)
        self._store.patch(self._storage(write.kind), write.name, patch, write.namespace, write.subresource, self._options)

    def _delete(self, write: Delete) -> None:
        found = self._lister.get(write.kind, write.namespace, write.name)
        if found is None or (write.uid and uid_of(found) != write.uid):
            return
        delete_options = DeleteOptions(grace_s=write.grace_s, propagation=write.propagation)
        self._store.delete(self._storage(write.kind), write.name, write.namespace, delete_options, self._options)

    def _storage(self, kind: str) -> str:
        return self._lister.storage_of(kind) or kind
