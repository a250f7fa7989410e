"""Binding: the most frequent write of a scheduler, so it touches only what changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.api import Object, rfc3339
from pumice.api.annotations import REGION_LABEL, ZONE_LABEL
from pumice.cluster.apiserver import status

if TYPE_CHECKING:
    from pumice.cluster.apiserver.admission.attributes import WriteOptions
    from pumice.cluster.apiserver.store import Store


_TOPOLOGY_LABELS = (ZONE_LABEL, REGION_LABEL)


def bind(store: Store, namespace: str, name: str, node: str, uid: str, annotations: dict[str, str] | None, options: WriteOptions) -> Object:
    """Bind the pod and return it: `spec.nodeName` is set, its condition PodScheduled is true, and annotations of the binding replace or
    extend its own. Labels for the zone and region of the node are added where the pod has none. Raises StatusError."""
    pod = store.storage.get("pods", (namespace, name))
    if pod is None:
        raise status.not_found("pods", "", name)
    spec, metadata = pod["spec"], pod["metadata"]
    _check_bindable(pod, name, node, uid)
    now = rfc3339(store.now())
    changed = dict(metadata)
    if annotations:
        changed["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
    labels = _topology(store, node)
    if labels:
        changed["labels"] = {**labels, **(metadata.get("labels") or {})}
    generation = metadata.get("generation", 1)
    bound = pod | {"metadata": changed, "spec": spec | {"nodeName": node}, "status": _scheduled(pod.get("status") or {}, generation, now)}
    return bound if options.dry_run else store.put_trusted("pods", (namespace, name), bound)


def _check_bindable(pod: Object, name: str, node: str, uid: str) -> None:
    metadata, spec = pod["metadata"], pod["spec"]
    if not node:
        raise status.invalid("Binding", "", name, [("target.name", "Required value")])
    if uid and uid != metadata["uid"]:
        raise status.conflict("pods", "", name, f"Precondition failed: UID in precondition: {uid}, UID in object meta: {metadata['uid']}")
    if metadata.get("deletionTimestamp"):
        raise status.conflict("pods/binding", "", name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise status.conflict("pods/binding", "", name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise status.conflict("pods/binding", "", name, f"pod {name} has non-empty .spec.schedulingGates")


def _topology(store: Store, node: str) -> dict[str, str]:
    found = store.storage.get("nodes", ("", node))
    labels = found["metadata"].get("labels") if found else None
    return {key: labels[key] for key in _TOPOLOGY_LABELS if key in labels} if labels else {}


def _scheduled(pod_status: dict[str, Any], generation: int, now: str) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "True", "observedGeneration": generation, "lastTransitionTime": now}
    others = [other for other in pod_status.get("conditions") or () if other.get("type") != "PodScheduled"]
    return pod_status | {"conditions": [*others, condition]}
