"""Eviction: a delete that needs the permission of the pod's PodDisruptionBudget, and uses up one of its allowed disruptions.

The disruptions that a budget still allows are in its status, which its controller maintains. Between two runs of that controller, granted
evictions are subtracted here and noted in `disruptedPods`, as the API server does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import Object, rfc3339
from pumice.api.json_objects import is_true
from pumice.api.selectors import matches_selector
from pumice.cluster.apiserver import status
from pumice.cluster.apiserver.admission.attributes import WriteOptions
from pumice.cluster.apiserver.deletion import DeleteOptions, delete

if TYPE_CHECKING:
    from pumice.cluster.apiserver.store import Store


_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."


def evict(store: Store, namespace: str, name: str, delete_options: DeleteOptions, options: WriteOptions) -> Object:
    pod = store.get("pods", name, namespace)
    phase = (pod.get("status") or {}).get("phase")
    spent: Object | None = None
    if phase not in ("Succeeded", "Failed", "Pending") and not pod["metadata"].get("deletionTimestamp"):
        budgets = [budget for budget in store.all("poddisruptionbudgets.policy", namespace) if _covers(budget, pod)]
        if len(budgets) > 1:
            raise status.StatusError(
                500, "InternalError", "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            )
        if budgets and not _spares_unready(budgets[0], pod):
            _refuse(budgets[0])
            spent = budgets[0]
    why = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
    why["lastTransitionTime"] = rfc3339(store.now())
    delete(store, store.kind("pods"), name, namespace, delete_options, options, why)
    if spent is not None and not options.dry_run:  # only now, as the write is begun again if a webhook must be asked
        _spend(store, spent, pod)
    return pod


def _covers(budget: Object, pod: Object) -> bool:
    selector = budget["spec"].get("selector")
    return selector is not None and matches_selector(selector, pod["metadata"].get("labels") or {})


def _spares_unready(budget: Object, pod: Object) -> bool:
    """Whether the pod is not ready and the budget lets such a pod be evicted without using up a disruption."""
    if is_true(pod, "Ready"):
        return False
    now = budget.get("status") or {}
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    return bool(now.get("currentHealthy", 0) >= now.get("desiredHealthy", 0) > 0)


def _refuse(budget: Object) -> None:
    """Raise StatusError if the budget allows no disruption."""
    name, now = budget["metadata"]["name"], budget.get("status") or {}
    if now.get("observedGeneration", 0) < budget["metadata"].get("generation", 1):
        cause = {"reason": "DisruptionBudget", "message": f"The disruption budget {name} is still being processed by the server."}
        raise status.too_many_requests(_REFUSED, 10, [cause])
    if now.get("disruptionsAllowed", 0) <= 0:
        needed, healthy = now.get("desiredHealthy", 0), now.get("currentHealthy", 0)
        text = f"The disruption budget {name} needs {needed} healthy pods and has {healthy} currently"
        raise status.too_many_requests(_REFUSED, 0, [{"reason": "DisruptionBudget", "message": text}])


def _spend(store: Store, budget: Object, pod: Object) -> None:
    metadata, now = budget["metadata"], budget.get("status") or {}
    spent = now | {
        "disruptionsAllowed": now["disruptionsAllowed"] - 1,
        "disruptedPods": {**(now.get("disruptedPods") or {}), pod["metadata"]["name"]: rfc3339(store.now())},
    }
    changed = budget | {"metadata": dict(metadata), "status": spent}
    store.put_trusted("poddisruptionbudgets.policy", (metadata["namespace"], metadata["name"]), changed)
