"""Deletion: at once, or after a grace period, or once all finalizers are gone.

A pod on a node gets its grace period, and is removed by the kubelet's second delete, which has no grace period. A namespace is removed when
it is empty. An object with finalizers is removed when the last of them is taken off. Until then the object has a deletionTimestamp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pumice.api import Object, instant, rfc3339
from pumice.cluster.apiserver import status
from pumice.cluster.apiserver.admission.attributes import AdmissionAttributes, WriteOptions
from pumice.cluster.apiserver.decoding import WrongType, conformed
from pumice.cluster.apiserver.scheme.builtin_shapes import shape_of
from pumice.cluster.apiserver.scheme.crd import CLEANUP, CRDS, terminating_status
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.validation.field_rules import compact

if TYPE_CHECKING:
    from pumice.cluster.apiserver.store import Store

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"  #: finalizers that the garbage collector takes off
_FINALIZERS = {"Foreground": FOREGROUND, "Orphan": ORPHAN}  #: by propagation policy: its finalizer
_ORPHANING = ("replicationcontrollers", "jobs.batch")  #: kinds older than garbage collection: their dependents are orphaned by default


class DeleteOptions(NamedTuple):
    """The body of a DELETE."""

    grace_s: int | None = None
    propagation: str = ""  #: Background, Foreground, Orphan; empty: as the object's finalizers say, else the default of its kind
    uid: str | None = None
    version: str | None = None
    dry_run: bool = False


DEFAULT = DeleteOptions()


def read_delete_options(body: Object, query: dict[str, str]) -> DeleteOptions:
    """The DeleteOptions of a request, from its body and its query parameters. Raises StatusError."""
    if body.get("kind", "DeleteOptions") != "DeleteOptions":
        raise status.bad_request(f'no kind "{body["kind"]}" is registered for version "{body.get("apiVersion", "")}"')
    try:
        stated, _ = conformed(shape_of("meta.v1.DeleteOptions"), _of_query(query) | body, "DeleteOptions")
    except WrongType as wrong:
        raise status.bad_request(str(wrong)) from None
    propagation, orphans = stated.get("propagationPolicy"), stated.get("orphanDependents")
    if orphans is not None and propagation is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        raise _invalid("propagationPolicy", f'Invalid value: "{propagation}": {text}')
    if propagation not in (None, "Background", "Foreground", "Orphan"):
        supported = '"Foreground", "Background", "Orphan", "nil"'
        raise _invalid("propagationPolicy", f'Unsupported value: "{propagation}": supported values: {supported}')
    dry_run = stated.get("dryRun") or []
    if {*dry_run} - {"All"}:
        raise _invalid("dryRun", f'Unsupported value: {compact(dry_run)}: supported values: "All"')
    if orphans is not None:
        propagation = "Orphan" if orphans else "Background"
    preconditions = stated.get("preconditions") or {}
    grace_s = stated.get("gracePeriodSeconds")
    return DeleteOptions(grace_s, propagation or "", preconditions.get("uid"), preconditions.get("resourceVersion"), bool(dry_run))


def _of_query(query: dict[str, str]) -> Object:
    """The options in a query, as a body has them. Raises StatusError."""
    stated: Object = {"propagationPolicy": query["propagationPolicy"]} if "propagationPolicy" in query else {}
    if "orphanDependents" in query:
        stated["orphanDependents"] = query["orphanDependents"].lower() not in ("", "0", "false")
    if grace := query.get("gracePeriodSeconds"):
        try:
            stated["gracePeriodSeconds"] = int(grace)
        except ValueError:
            raise status.bad_request(f'gracePeriodSeconds: "{grace}" is not a number of seconds') from None
    return stated


def _invalid(field: str, text: str) -> status.StatusError:
    return status.invalid("DeleteOptions", "meta.k8s.io", "", [(field, text)])


def is_finished(kind: ServedKind, obj: Object) -> bool:
    """Whether an object is being deleted and nothing keeps it any more: no finalizer and no grace period."""
    metadata = obj["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if kind.resource == "namespaces" and (obj.get("spec") or {}).get("finalizers"):
        return False
    return not metadata.get("deletionGracePeriodSeconds")


def delete(
    store: Store,
    kind: ServedKind,
    name: str,
    namespace: str,
    delete_options: DeleteOptions,
    options: WriteOptions,
    why: Object | None = None,
) -> tuple[Object, bool]:
    """See `Store.delete`. `why` is a condition that says why a pod is deleted."""
    key = (namespace if kind.namespaced else "", name)
    old = store.storage.get(kind.storage, key)
    if old is None:
        raise kind.not_found(name)
    _check_preconditions(kind, name, delete_options, old)
    review = AdmissionAttributes("DELETE", kind, key[0], name, "", old, old, options.user, options.dry_run, options.warnings)
    store.admission.check(review, store)
    store.webhooks.mutated(review)
    store.validate(review)
    metadata = dict(old["metadata"])
    grace_s = _grace_s(kind, old, delete_options)
    _set_finalizers(kind, metadata, delete_options)
    obj = old | {"metadata": metadata}
    if why is not None:
        now = old.get("status") or {}
        obj["status"] = now | {"conditions": [*(one for one in now.get("conditions") or () if one.get("type") != why["type"]), why]}
    held = bool(metadata.get("finalizers")) or _is_held_by_spec(kind, old)
    is_new = not metadata.get("deletionTimestamp") or grace_s < metadata.get("deletionGracePeriodSeconds", 0)
    if is_new and (held or kind.resource == "pods"):
        _mark(kind, obj, grace_s, store.now())
    if not held and not grace_s:
        last = obj if kind.resource == "pods" else old
        return (last, True) if options.dry_run else (store.remove_trusted(kind.storage, key, last), True)
    if obj == old or options.dry_run:
        return obj, False
    return store.put_trusted(kind.storage, key, obj), False


def _check_preconditions(kind: ServedKind, name: str, delete_options: DeleteOptions, old: Object) -> None:
    metadata = old["metadata"]
    for label, wanted, found in (
        ("UID", delete_options.uid, metadata["uid"]),
        ("ResourceVersion", delete_options.version, metadata["resourceVersion"]),
    ):
        if wanted is not None and wanted != found:
            why = f"the {label} in the precondition ({wanted}) does not match the {label} in record ({found})."
            why += f" The object might have been {'deleted and then recreated' if label == 'UID' else 'modified'}"
            raise status.conflict(kind.plural, kind.group, name, why)


def _grace_s(kind: ServedKind, pod: Object, delete_options: DeleteOptions) -> int:
    """The grace period in seconds. It is 0 except for pods that a kubelet may be running; a later request can only make it shorter."""
    metadata = pod["metadata"]
    if kind.resource != "pods":
        return 0
    if metadata.get("deletionTimestamp"):
        before: int = metadata.get("deletionGracePeriodSeconds", 0)
        return before if delete_options.grace_s is None else min(_positive(delete_options.grace_s), before)
    if not pod["spec"].get("nodeName") or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    return _positive(pod["spec"].get("terminationGracePeriodSeconds", 30) if delete_options.grace_s is None else delete_options.grace_s)


def _positive(seconds: int) -> int:
    return seconds if seconds >= 0 else 1


def _is_held_by_spec(kind: ServedKind, obj: Object) -> bool:
    return kind.resource == "namespaces" and bool((obj.get("spec") or {}).get("finalizers"))


def _set_finalizers(kind: ServedKind, metadata: dict[str, Any], delete_options: DeleteOptions) -> None:
    """Set the finalizers for the propagation policy that the request asks for, in place of those of an earlier request."""
    before = metadata.get("finalizers") or []
    propagation = delete_options.propagation
    if not propagation and kind.storage in _ORPHANING and not {*before} & {*_FINALIZERS.values()}:
        propagation = "Orphan"
    after = [each for each in before if not propagation or each not in _FINALIZERS.values()]
    if propagation in _FINALIZERS:
        after.append(_FINALIZERS[propagation])
    if kind.storage == CRDS and not metadata.get("deletionTimestamp") and CLEANUP not in after:
        after.append(CLEANUP)
    if after != before:
        metadata["finalizers"] = after


def _mark(kind: ServedKind, obj: Object, grace_s: int, now: float) -> None:
    metadata = obj["metadata"]
    begun = metadata.get("deletionTimestamp")
    start = instant(begun) - metadata.get("deletionGracePeriodSeconds", 0) if begun else now
    metadata["deletionTimestamp"] = rfc3339(start + grace_s)
    metadata["deletionGracePeriodSeconds"] = grace_s
    if "generation" in metadata and not begun:
        metadata["generation"] += 1
    if kind.resource == "namespaces":
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    elif kind.storage == CRDS:
        obj["status"] = terminating_status(obj, metadata["deletionTimestamp"])
