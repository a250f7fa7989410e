"""Binding a pod to a node: the write a scheduler does most, so it touches nothing but what changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.api.annotations import REGION_LABEL, ZONE_LABEL
from pumice.api.selectors import matches_selector
from pumice.api.times import rfc3339
from pumice.cluster.apiserver import status
from pumice.cluster.apiserver.admission import WriteOptions
from pumice.cluster.apiserver.deletion import DeleteOptions
from pumice.cluster.apiserver.schema import Object

if TYPE_CHECKING:
    from pumice.cluster.apiserver.store import Store


_TOPOLOGY_LABELS = (ZONE_LABEL, REGION_LABEL)


def bind(store: Store, namespace: str, name: str, node: str, uid: str, annotations: dict[str, str] | None, options: WriteOptions) -> Object:
    """The pod with `spec.nodeName` set, its PodScheduled condition true, the binding's annotations laid over its own."""
    pod = store.ledger.get("pods", (namespace, name))
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
    return bound if options.dry_run else store.ledger.put("pods", (namespace, name), bound)


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
    found = store.ledger.get("nodes", ("", node))
    labels = found["metadata"].get("labels") if found else None
    return {key: labels[key] for key in _TOPOLOGY_LABELS if key in labels} if labels else {}


def _scheduled(pod_status: dict[str, Any], generation: int, now: str) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "True", "observedGeneration": generation, "lastTransitionTime": now}
    others = [other for other in pod_status.get("conditions") or () if other.get("type") != "PodScheduled"]
    return pod_status | {"conditions": [*others, condition]}


# Eviction: a delete that asks the pod's disruption budgets first, and takes from them what it uses.
#
# What a budget still allows stands in its status, where its controller keeps it; between two runs of that controller the evictions granted
# are counted down here and noted in `disruptedPods`, as the API server does.

_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."


def evict(store: Store, namespace: str, name: str, wish: DeleteOptions, options: WriteOptions) -> Object:
    pod = store.get("pods", name, namespace)
    phase = (pod.get("status") or {}).get("phase")
    if phase not in ("Succeeded", "Failed", "Pending") and not pod["metadata"].get("deletionTimestamp"):
        budgets = [budget for budget in store.all("poddisruptionbudgets.policy", namespace) if _covers(budget, pod)]
        if len(budgets) > 1:
            raise status.StatusError(
                500, "InternalError", "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            )
        if budgets and not _spares_unready(budgets[0], pod):
            _spend(store, budgets[0], pod, options)
    store.delete("pods", name, namespace, wish, options)
    return pod


def _covers(budget: Object, pod: Object) -> bool:
    selector = budget["spec"].get("selector")
    return selector is not None and matches_selector(selector, pod["metadata"].get("labels") or {})


def _is_ready(pod: Object) -> bool:
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in (pod.get("status") or {}).get("conditions") or ())


def _spares_unready(budget: Object, pod: Object) -> bool:
    """Whether the budget lets go of a pod that is not ready without being asked."""
    if _is_ready(pod):
        return False
    now = budget.get("status") or {}
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    return bool(now.get("currentHealthy", 0) >= now.get("desiredHealthy", 0) > 0)


def _spend(store: Store, budget: Object, pod: Object, options: WriteOptions) -> None:
    name, now = budget["metadata"]["name"], budget.get("status") or {}
    if now.get("observedGeneration", 0) < budget["metadata"].get("generation", 1):
        cause = {"reason": "DisruptionBudget", "message": f"The disruption budget {name} is still being processed by the server."}
        raise status.too_many_requests(_REFUSED, 10, [cause])
    if now.get("disruptionsAllowed", 0) <= 0:
        needed, healthy = now.get("desiredHealthy", 0), now.get("currentHealthy", 0)
        text = f"The disruption budget {name} needs {needed} healthy pods and has {healthy} currently"
        raise status.too_many_requests(_REFUSED, 0, [{"reason": "DisruptionBudget", "message": text}])
    spent = now | {
        "disruptionsAllowed": now["disruptionsAllowed"] - 1,
        "disruptedPods": {**(now.get("disruptedPods") or {}), pod["metadata"]["name"]: rfc3339(store.now())},
    }
    changed = budget | {"metadata": dict(budget["metadata"]), "status": spent}
    if not options.dry_run:
        store.ledger.put("poddisruptionbudgets.policy", (budget["metadata"]["namespace"], name), changed)
