"""The store: the API's verbs without HTTP, synchronous, in process.

The HTTP layer is one user of the store, the simulator another. Every write takes the same steps: the object's shape is checked and cleaned,
defaults are filled in, admission may change the object, it is validated, admission may refuse it, and only then it is put into the storage.
Only the control plane's own writes pass by these steps, through one door: `put_trusted` and `remove_trusted`.
The clock and the source of uids are arguments, so the same calls give the same cluster.

The objects that the store returns are the stored ones: never change them. The objects that it is given are copied, except with
`WriteOptions.owned`.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from msgspec.json import decode, encode

from pumice.api import Object
from pumice.api.json_objects import clone, same
from pumice.cluster.apiserver import binding, deletion, eviction, status
from pumice.cluster.apiserver.admission.attributes import Admission, AdmissionAttributes, AdmissionRule, WriteOptions
from pumice.cluster.apiserver.admission.audit_notes import AuditNotes, log_notes
from pumice.cluster.apiserver.admission.builtin_admission import own_rules
from pumice.cluster.apiserver.admission.expressions import ExpressionThread, Work
from pumice.cluster.apiserver.admission.policies import KINDS as POLICIES, Policies
from pumice.cluster.apiserver.admission.service_account_admission import impersonal
from pumice.cluster.apiserver.admission.webhooks import MUTATING, VALIDATING, Webhooks
from pumice.cluster.apiserver.decoding import Misshaped, schema_causes, shaped
from pumice.cluster.apiserver.discovery import VERSION
from pumice.cluster.apiserver.garbage_collector import GarbageCollector
from pumice.cluster.apiserver.known_specs import CompletedSpec, KnownSpecs
from pumice.cluster.apiserver.metadata import (
    check_head,
    check_version,
    count_generation,
    deduplicate_owners,
    keep_identity,
    metadata_causes,
    set_identity,
)
from pumice.cluster.apiserver.patches.managed_fields import note_create, note_update
from pumice.cluster.apiserver.patches.patch import PatchRequest, patched
from pumice.cluster.apiserver.pending_calls import Attempt, Caller, OutsideCall, Pending, call_about
from pumice.cluster.apiserver.readable_store import ReadableStore
from pumice.cluster.apiserver.scheme.builtin_kinds import builtin_kinds
from pumice.cluster.apiserver.scheme.conversion import seen, seen_early, seen_late, stored
from pumice.cluster.apiserver.scheme.crd import CRDS, CustomKinds
from pumice.cluster.apiserver.scheme.kinds import KindTable, ServedKind
from pumice.cluster.apiserver.service_allocator import IP_ADDRESSES, SERVICES, ServiceAllocator
from pumice.cluster.apiserver.storage.in_memory import Storage, StoreJournal
from pumice.cluster.apiserver.storage.watch import Key
from pumice.cluster.apiserver.strategies import causes_of, default, strategy_of
from pumice.cluster.apiserver.subresource_writes import kept, own, own_metadata, untouched
from pumice.cluster.apiserver.validation import handwritten_rules
from pumice.cluster.apiserver.validation.field_rules import Causes, compact, invalid
from pumice.cluster.apiserver.validation.gated_fields import drop_disabled

Done = TypeVar("Done")

_DEFAULT = WriteOptions()


class Store(ReadableStore):
    """A cluster's objects. `clock` returns seconds since 1970, `new_uid` a new uid; `gates` are the feature gates that are on."""

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        new_uid: Callable[[], str],
        rules: Iterable[AdmissionRule] = (),
        journal: StoreJournal | None = None,
        version: int = 0,
        gates: frozenset[str] = frozenset(),
    ) -> None:
        self.now = clock
        self.new_uid = new_uid
        super().__init__(KindTable(builtin_kinds(gates)), Storage(journal, version))
        self.version = VERSION["gitVersion"]  #: what the server says of itself
        self.admission = Admission(own_rules())
        self.admission.add(rules)
        self.custom_kinds = CustomKinds(self)
        self.collector = GarbageCollector(self)
        self.services = ServiceAllocator(self)
        self.caller = Caller(self)
        self.expressions = ExpressionThread()
        self.attempt: Attempt | None = None  #: the write that is under way, if it can wait
        self.webhooks = Webhooks(self)
        self.policies = Policies(self)
        self._right_specs = KnownSpecs[bool]()
        self._completed_specs = KnownSpecs[CompletedSpec]()
        self.storage.listen(self.custom_kinds.on_write)
        self.storage.listen(self.collector.on_write)
        self.storage.listen(self.services.on_write, SERVICES, IP_ADDRESSES)
        self.storage.listen(lambda storage, event: self.webhooks.changed(), MUTATING, VALIDATING)
        self.storage.listen(lambda storage, event: self.policies.changed(), *POLICIES)

    def answer(self, call: OutsideCall) -> Any:
        """The answer to a call that the present write needs. Raises Pending if it is not there yet."""
        if self.attempt is None:
            raise Pending(call)
        return self.attempt.answer(call)

    def evaluated(self, what: str, review: AdmissionAttributes, work: Work[Done]) -> Done:
        """What expressions about a write come to. Raises CelError, and Pending if they cost much and the write can wait."""
        if self.attempt is None:
            return work(None)
        return self.attempt.evaluated(call_about(what, review, partial(self.expressions.evaluate, work)), work)

    def restore(self, storage: str, key: Key, obj: Object) -> None:
        """Put back an object of a journal. Call this only before the first write and watch."""
        self.storage.restore(storage, key, obj)
        self.collector.restored((storage, key), obj["metadata"])
        self.services.restored(storage, obj)
        if storage == CRDS:
            self.custom_kinds.install(obj)

    # Writing

    def create(self, resource: str | ServedKind, obj: Object, namespace: str = "", options: WriteOptions = _DEFAULT) -> Object:
        kind = self.kind(resource)
        if not options.owned:
            obj = clone(obj)
        if isinstance(obj.get("metadata"), dict):
            obj["metadata"].pop("managedFields", None)
        return self._created(kind, obj, namespace, options)

    def _created(self, kind: ServedKind, obj: Object, namespace: str, options: WriteOptions) -> Object:
        if "create" not in kind.verbs:
            raise status.method_not_allowed("create")
        stated = obj.get("spec")
        spec = encode(stated) if kind.storage == "pods" else b""
        known = self._completed_specs.get(spec)
        obj = self._taken(kind, obj, namespace, options, None if known is None else {"spec": stated})
        namespace = (namespace or obj["metadata"].get("namespace") or "default") if kind.namespaced else ""
        shown, kind = kind, kind.stored_as or kind
        now = self.now()
        uid = self.attempt.uid if self.attempt is not None and self.attempt.uid else self.new_uid()
        name = set_identity(kind, obj, namespace, uid, now)
        strategy_of(kind).begin(obj)
        if known is None:
            is_whole = obj.get("spec") is stated
            drop_disabled(kind.shape, obj, None, kind.gates)
            default(kind, obj)
            if spec and is_whole:
                known = CompletedSpec(encode(obj["spec"]), obj["status"]["qosClass"])
                self._completed_specs.add(spec, known)
        else:
            obj["spec"], obj["status"]["qosClass"] = decode(known.json), known.quality
        if options.tracked and "managedFields" not in obj["metadata"]:
            fields = note_create(kind, obj, options.manager, now, {"spec": known.fields} if known and known.fields else {})
            if known is not None:
                known.fields = fields.get("f:spec")
        warnings = [] if options is _DEFAULT else options.warnings
        review = AdmissionAttributes("CREATE", kind, namespace, name, "", obj, None, options.user, options.dry_run, warnings)
        if kind.namespaced and self.find("namespaces", "", namespace) is None:
            raise status.not_found("namespaces", "", namespace)
        obj = self._admitted(review, options)
        key = (namespace, name)
        if self.storage.get(kind.storage, key) is not None:
            raise status.already_exists(kind.plural, kind.group, name)
        return self._put(shown, key, obj, options)

    def update(self, resource: str | ServedKind, obj: Object, subresource: str = "", options: WriteOptions = _DEFAULT) -> Object:
        """Replace an object, or the part of it that is a subresource. Raises StatusError 409 if `obj` has a resourceVersion and the stored
        object has another one."""
        kind = self.kind(resource)
        if not options.owned:
            obj = dict(obj) if subresource == "status" else clone(obj)
        check_head(kind, obj, "")
        metadata = obj["metadata"]
        key = (str(metadata.get("namespace") or "default") if kind.namespaced else "", str(metadata.get("name") or ""))
        old = self.storage.get(kind.storage, key)
        if subresource == "status" and not options.owned:  # the other fields are not written
            obj |= {"metadata": own_metadata(metadata, old)} | ({"status": clone(obj["status"])} if "status" in obj else {})
        obj = stored(kind, shaped(kind, obj, options, untouched(kind, old, obj, subresource)))
        if old is None:
            raise kind.not_found(key[1])
        if kind.versioned_update and metadata.get("resourceVersion") in (None, "", "0"):
            causes = [("metadata.resourceVersion", "Invalid value: 0: must be specified for an update")]
            raise status.invalid(kind.plural, kind.group, key[1], causes)
        check_version(kind, key[1], obj["metadata"], old)
        return self.replace(kind, key, old, obj, subresource, options)

    def replace(
        self,
        kind: ServedKind,
        key: Key,
        old: Object,
        obj: Object,
        subresource: str = "",
        options: WriteOptions = _DEFAULT,
        applied: bool = False,
    ) -> Object:
        """Replace the stored object `old` by `obj`, which is well-formed and may be changed here."""
        shown, kind = kind, kind.stored_as or kind
        keep_identity(kind, key[1], obj["metadata"], old["metadata"])
        now = self.now()
        obj = kept(kind, obj, old, subresource, now)
        drop_disabled(kind.shape, obj, old, kind.gates)
        if subresource != "status":
            default(kind, obj)
        if not applied:
            note_update(kind, obj, old, options.manager, now, subresource)
        warnings = [] if options is _DEFAULT else options.warnings
        review = AdmissionAttributes("UPDATE", kind, key[0], key[1], subresource, obj, old, options.user, options.dry_run, warnings)
        obj = self._admitted(review, options)
        metadata = obj["metadata"]
        metadata["resourceVersion"] = old["metadata"]["resourceVersion"]
        if same(obj, old):
            return seen(shown, old)
        if deletion.is_finished(kind, obj):
            return self._drop(shown, key, obj, options)
        return self._put(shown, key, obj, options)

    def patch(
        self,
        resource: str | ServedKind,
        name: str,
        patch: PatchRequest,
        namespace: str = "",
        subresource: str = "",
        options: WriteOptions = _DEFAULT,
    ) -> Object:
        """Apply a patch of one of the four types. A server-side apply creates the object if it does not exist."""
        kind = self.kind(resource)
        key = (namespace if kind.namespaced else "", name)
        old = self.storage.get(kind.storage, key)
        now = self.now()
        if old is None:
            if patch.type != "apply" or subresource:
                raise kind.not_found(name)
            fresh = patched(kind, None, patch, key, options, now, subresource)
            return self._created(kind, clone(fresh), namespace, options)
        shown = seen(kind, old)
        fresh = patched(kind, shown, patch, key, options, now, subresource)
        same_fields = untouched(kind, old, fresh, subresource) or {key: value for key, value in fresh.items() if old.get(key) is value}
        fresh = own(fresh, same_fields, old) if subresource == "status" and shown is old and not kind.custom else clone(fresh)
        try:
            obj = self._taken(kind, fresh, namespace, options, same_fields)
        except Misshaped as error:
            if patch.type == "apply":
                raise
            text = error.patched if patch.type == "strategic" else error.text
            raise status.invalid("", "", "", [("patch", f"Invalid value: {compact(patch.body)}: {text}")]) from None
        check_version(kind, name, obj["metadata"], old)
        if (uid := obj["metadata"].get("uid")) and uid != old["metadata"]["uid"]:
            raise kind.invalid(name, [invalid("metadata.uid", uid, "field is immutable")])
        if obj["metadata"].get("name") != name:
            raise status.bad_request("the name of the object does not match the name on the URL")
        return self.replace(kind, key, old, obj, subresource, options, patch.type == "apply")

    def delete(
        self,
        resource: str | ServedKind,
        name: str,
        namespace: str = "",
        delete_options: deletion.DeleteOptions = deletion.DEFAULT,
        options: WriteOptions = _DEFAULT,
    ) -> tuple[Object, bool]:
        """Delete an object. Returns it, and whether it is removed at once (else it has a deletionTimestamp and is removed later)."""
        return deletion.delete(self, self.kind(resource), name, namespace, delete_options, options)

    def bind(
        self,
        namespace: str,
        name: str,
        node: str,
        uid: str = "",
        annotations: dict[str, str] | None = None,
        options: WriteOptions = _DEFAULT,
    ) -> Object:
        """Bind a pod to a node. Raises StatusError 409 if the pod has a node already."""
        return binding.bind(self, namespace, name, node, uid, annotations, options)

    def evict(
        self, namespace: str, name: str, delete_options: deletion.DeleteOptions = deletion.DEFAULT, options: WriteOptions = _DEFAULT
    ) -> Object:
        """Delete a pod if its disruption budgets allow it. Raises StatusError 429 if not."""
        return eviction.evict(self, namespace, name, delete_options, options)

    def is_reviewed(self, kind: ServedKind, subresource: str, operation: str) -> bool:
        """Whether policies or webhooks may have something to say of such writes."""
        return self.policies.exist or self.webhooks.sees(kind, subresource, operation)

    def admit(self, review: AdmissionAttributes) -> Object:
        """What is asked of a subresource that stores nothing of its own (a binding, an eviction, a connection), as policies and webhooks
        leave it. Raises StatusError."""
        review, _ = self.webhooks.mutated(self.policies.mutated(review))
        self.validate(review)
        return review.obj

    def validate(self, review: AdmissionAttributes) -> None:
        """Ask the validating policies, then the webhooks. Raises StatusError."""
        notes: AuditNotes = {}
        try:
            self.policies.check(review, notes)
            self.webhooks.check(review)
        except Pending:
            notes.clear()  # the write is begun again
            raise
        finally:
            if notes:
                log_notes(review, notes)

    # Writes of the control plane itself

    def put_trusted(self, storage: str, key: Key, obj: Object) -> Object:
        """Store what kubelets, the garbage collector, binds and deletions make of stored objects, and nodes like a stored one. Nothing is
        checked or admitted.

        The object's `metadata` must be shared with nothing.
        """
        return self.storage.put(storage, key, obj)

    def remove_trusted(self, storage: str, key: Key, last: Object | None = None) -> Object:
        """Remove an object from which nothing holds it back any more. Returns its last state, which is `last` if that is given."""
        return self.storage.remove(storage, key, last)

    # Steps of a write

    def _taken(self, kind: ServedKind, obj: Object, namespace: str, options: WriteOptions, untouched: Object | None = None) -> Object:
        """The object in its stored form, with its shape checked and without fields that its kind does not have."""
        check_head(kind, obj, namespace)
        return stored(kind, shaped(kind, obj, options, untouched or {}))

    def _admitted(self, review: AdmissionAttributes, options: WriteOptions) -> Object:
        obj = self.admission.mutated(review, self)
        kind = review.kind
        is_reviewed = self.is_reviewed(kind, review.subresource, review.operation)
        if is_reviewed:
            obj = self._reviewed(review if obj is review.obj else review.about(obj), options)
        old = review.old
        if kind.storage == SERVICES:
            self.services.give(kind, obj, old)
        if old is not None and review.subresource != "status":
            count_generation(kind, obj, old)
        causes: Causes = []
        if old is None or obj["metadata"] != old["metadata"]:
            review.warnings.extend(deduplicate_owners(obj["metadata"]))
            causes += metadata_causes(kind, obj["metadata"], None if old is None else old["metadata"])
        spec = impersonal(obj) if old is None and kind.storage == "pods" else b""
        if not spec or not self._right_specs.get(spec):
            causes += self._causes(kind, obj, review)
            if spec and not causes:
                self._right_specs.add(spec, True)
        if causes:
            raise kind.invalid(review.name, list(dict.fromkeys(causes)))
        if obj is not review.obj:
            review = review.about(obj)
        self.admission.check(review, self)
        if is_reviewed:
            self.validate(review)
        return obj

    def _reviewed(self, review: AdmissionAttributes, options: WriteOptions) -> Object:
        """The object of a write as policies and webhooks have changed it."""
        by_policy = self.policies.mutated(review)
        changed, by_others = self.webhooks.mutated(by_policy)
        if not by_others and by_policy is review:
            return changed.obj
        is_new = review.operation == "CREATE" and not review.subresource
        return self._changed(review.kind, changed.obj, review.obj, options, is_new=is_new)

    def _causes(self, kind: ServedKind, obj: Object, review: AdmissionAttributes) -> Causes:
        """The causes for refusing what admission has left, besides its metadata."""
        causes = causes_of(kind, obj, review.old, review.subresource)
        if not (kind.custom or kind.to_stored is not None or review.subresource):
            causes = handwritten_rules.causes(kind.shape, obj, review.old) + causes
        if kind.rules is None:
            return causes + schema_causes(kind, obj, review.old, None)
        return causes + self.evaluated("the rules of its kind", review, partial(schema_causes, kind, obj, review.old))

    def _changed(self, kind: ServedKind, obj: Object, before: Object, options: WriteOptions, *, is_new: bool) -> Object:
        """The object as webhooks have changed it: well-formed, with defaults, and still the same object. A new one begins anew."""
        check_head(kind, obj, before["metadata"].get("namespace", ""))
        obj = shaped(kind, obj, options) if kind.to_stored is None else obj
        for field in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "managedFields"):
            if field in before["metadata"]:
                obj["metadata"][field] = before["metadata"][field]
        if is_new:
            strategy_of(kind).begin(obj)
        default(kind, obj)
        return obj

    def _put(self, kind: ServedKind, key: Key, obj: Object, options: WriteOptions) -> Object:
        if kind.convert is None and not options.dry_run:
            return seen(kind, self.storage.put(kind.storage, key, obj, bounded=True))
        shown = seen_early(kind, obj)
        if options.dry_run:
            return shown
        return seen_late(kind, shown, self.storage.put(kind.storage, key, obj, bounded=True))

    def _drop(self, kind: ServedKind, key: Key, obj: Object, options: WriteOptions) -> Object:
        """Remove an object from which a write takes what held it back. Its watches see it as it was stored before."""
        shown = seen_early(kind, obj)
        if not options.dry_run:
            self.storage.remove(kind.storage, key)
        return shown
