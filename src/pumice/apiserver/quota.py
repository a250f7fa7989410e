"""ResourceQuota: what a namespace's objects may use together.

Usage is counted from the objects themselves whenever a quota stands in the way of a write, and by `usage` for the quota's status; nothing
is kept in between, so it cannot drift. Namespaces without a quota pay nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from pumice.api.quantity import format_milli, quantity
from pumice.apiserver.admission import Refusal, Review, World
from pumice.apiserver.shapes import Object

_COUNTED = {
    "pods": "pods",
    "services": "services",
    "configmaps": "configmaps",
    "secrets": "secrets",
    "persistentvolumeclaims": "persistentvolumeclaims",
    "replicationcontrollers": "replicationcontrollers",
    "resourcequotas": "resourcequotas",
}


def pod_usage(pod: Object) -> dict[str, int]:
    """What a pod is charged, in thousandths, by the names quotas use."""
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return {}
    used = {"pods": 1000, "count/pods": 1000}
    for field, prefix in (("requests", "requests."), ("limits", "limits.")):
        for name, amount in _total(pod["spec"], field).items():
            used[prefix + name] = amount
            if field == "requests" and name in ("cpu", "memory", "ephemeral-storage"):
                used[name] = amount
    return used


def _total(spec: Object, field: str) -> dict[str, int]:
    """Containers together, or the largest init container if that is more, plus overhead."""
    total: dict[str, int] = {}
    for container in spec.get("containers", ()):
        for name, amount in (container.get("resources", {}).get(field) or {}).items():
            total[name] = total.get(name, 0) + quantity(amount).milli
    for container in spec.get("initContainers", ()):
        for name, amount in (container.get("resources", {}).get(field) or {}).items():
            total[name] = max(total.get(name, 0), quantity(amount).milli)
    for name, amount in (spec.get("overhead") or {}).items():
        if field == "requests" or name in total:
            total[name] = total.get(name, 0) + quantity(amount).milli
    return total


def _charge(resource: str, obj: Object) -> dict[str, int]:
    if resource == "pods":
        return pod_usage(obj)
    charge = {f"count/{resource}": 1000}
    if resource in _COUNTED:
        charge[_COUNTED[resource]] = 1000
    if resource == "persistentvolumeclaims":
        storage = ((obj.get("spec") or {}).get("resources") or {}).get("requests", {}).get("storage")
        charge |= {"requests.storage": quantity(storage).milli} if storage else {}
    return charge


def usage(quota: Object, world: World) -> dict[str, str]:
    """What is used of everything the quota limits, as its status shows it."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    used = _used(quota, hard, world)
    return {name: format_milli(used.get(name, 0)) for name in hard}


def _used(quota: Object, names: Iterable[str], world: World) -> dict[str, int]:
    used: dict[str, int] = {}
    for resource in {_resource_of(name) for name in names}:
        for obj in world.all(resource, quota["metadata"]["namespace"]):
            if resource == "pods" and not _in_scope(quota, obj):
                continue
            for name, amount in _charge(resource, obj).items():
                used[name] = used.get(name, 0) + amount
    return used


def _resource_of(name: str) -> str:
    if name.startswith("count/"):
        return name.removeprefix("count/")
    if name == "requests.storage":
        return "persistentvolumeclaims"
    return name if name in _COUNTED else "pods"


def _in_scope(quota: Object, pod: Object) -> bool:
    spec = quota.get("spec") or {}
    terms = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    terms += (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    return all(_scope_holds(term, pod) for term in terms)


def _scope_holds(term: Object, pod: Object) -> bool:
    best_effort = (pod.get("status") or {}).get("qosClass") == "BestEffort"
    terminating = pod["spec"].get("activeDeadlineSeconds") is not None
    match term["scopeName"]:
        case "BestEffort":
            return best_effort
        case "NotBestEffort":
            return not best_effort
        case "Terminating":
            return terminating
        case "NotTerminating":
            return not terminating
        case "PriorityClass":
            name, values = pod["spec"].get("priorityClassName"), term.get("values") or ()
            return {"In": name in values, "NotIn": name not in values, "Exists": bool(name), "DoesNotExist": not name}[term["operator"]]
        case _:
            return True


def within_quota(review: Review, world: World) -> Refusal | None:
    """Refuses what would take a namespace over one of its quotas, and pods that do not say what a quota asks."""
    if not review.namespace:
        return None
    for quota in world.all("resourcequotas", review.namespace):
        refusal = _refusal(quota, review, world)
        if refusal is not None:
            return refusal
    return None


def _refusal(quota: Object, review: Review, world: World) -> Refusal | None:
    resource, name = review.kind.resource, quota["metadata"]["name"]
    hard = (quota.get("spec") or {}).get("hard") or {}
    if resource == "pods" and not _in_scope(quota, review.obj):
        return None
    charge = {key: amount for key, amount in _charge(resource, review.obj).items() if key in hard}
    if resource == "pods":
        unsaid = [key for key in hard if key in _MUST_SAY and key not in charge]
        if unsaid:
            return Refusal(f"failed quota: {name}: must specify {','.join(sorted(unsaid))}")
    if not charge:
        return None
    used = _used(quota, charge, world)
    over = sorted(key for key, amount in charge.items() if used.get(key, 0) + amount > quantity(hard[key]).milli)
    if not over:
        return None
    requested, taken, limited = (
        ",".join(f"{key}={amount}" for key, amount in pairs)
        for pairs in (
            [(key, format_milli(charge[key])) for key in over],
            [(key, format_milli(used.get(key, 0))) for key in over],
            [(key, hard[key]) for key in over],
        )
    )
    return Refusal(f"exceeded quota: {name}, requested: {requested}, used: {taken}, limited: {limited}")


_MUST_SAY = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
