"""The admission that every API server has: namespace lifecycle, service account, limit ranges, priority, tolerations, quota.

Only what scheduling sees of it. Mutations come first, in this order; the quota is asked last.
"""

from __future__ import annotations

from pumice.apiserver import quota
from pumice.apiserver.admission import Refusal, Review, Rule, World
from pumice.apiserver.custom_kinds import CRDS, with_settled_names
from pumice.apiserver.escalation import escalation_rules
from pumice.apiserver.pod_defaults import qos_class
from pumice.apiserver.shapes import Object

_PERMANENT = ("default", "kube-system", "kube-public", "kube-node-lease")
_TOLERATED_S = 300
_CLASSES = "priorityclasses.scheduling.k8s.io"


def own_rules() -> list[Rule]:
    return [
        Rule(("*",), ("CREATE",), validate=_namespace_lives),
        Rule(("namespaces",), ("DELETE",), validate=_namespace_may_go),
        Rule((CRDS,), ("CREATE", "UPDATE"), mutate=with_settled_names),
        Rule(("pods",), ("CREATE",), mutate=_with_service_account),
        Rule(("pods",), ("CREATE",), mutate=_with_limit_ranges),
        Rule(("pods",), ("CREATE",), mutate=_with_priority, validate=_priority_class_exists),
        Rule(("pods",), ("CREATE",), mutate=_with_tolerations),
        *escalation_rules(),
        Rule(("*",), ("CREATE",), validate=quota.within_quota),
    ]


def _namespace_lives(review: Review, world: World) -> Refusal | None:
    if not review.namespace:
        return None
    namespace = world.find("namespaces", "", review.namespace)
    if namespace is not None and namespace["metadata"].get("deletionTimestamp"):
        return Refusal(f"unable to create new content in namespace {review.namespace} because it is being terminated")
    return None


def _namespace_may_go(review: Review, world: World) -> Refusal | None:
    return Refusal("this namespace may not be deleted") if review.name in _PERMANENT[:2] else None


def _with_service_account(review: Review, world: World) -> Object:
    spec = review.obj["spec"]
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    return review.obj


def _with_limit_ranges(review: Review, world: World) -> Object:
    """What a namespace's LimitRanges give to containers that ask for nothing."""
    limits = [
        limit
        for obj in world.all("limitranges", review.namespace)
        for limit in (obj.get("spec") or {}).get("limits", ())
        if limit.get("type") == "Container"
    ]
    if not limits:
        return review.obj
    spec = review.obj["spec"]
    for limit in limits:
        for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
            for field, source in (("limits", "default"), ("requests", "defaultRequest")):
                for name, amount in (limit.get(source) or {}).items():
                    container["resources"].setdefault(field, {}).setdefault(name, amount)
    review.obj["status"]["qosClass"] = qos_class(spec)
    return review.obj


def _priority_class(review: Review, world: World) -> Object | None:
    """The class a pod names, or the one that is the default for all."""
    name = review.obj["spec"].get("priorityClassName")
    if name:
        return world.find(_CLASSES, "", name)
    defaults = [one for one in world.all(_CLASSES) if one.get("globalDefault")]
    return min(defaults, key=lambda one: int(one["value"]), default=None)


def _with_priority(review: Review, world: World) -> Object:
    spec = review.obj["spec"]
    found = _priority_class(review, world)
    if found is None:
        spec.setdefault("priority", 0)
        spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    else:
        spec["priorityClassName"] = found["metadata"]["name"]
        spec["priority"] = found["value"]
        spec.setdefault("preemptionPolicy", found.get("preemptionPolicy", "PreemptLowerPriority"))
    return review.obj


def _priority_class_exists(review: Review, world: World) -> Refusal | None:
    name = review.obj["spec"].get("priorityClassName")
    if name and world.find(_CLASSES, "", name) is None:
        return Refusal(f"no PriorityClass with name {name} was found")
    return None


def _with_tolerations(review: Review, world: World) -> Object:
    """A pod stays five minutes on a node that is not ready or not reachable."""
    spec = review.obj["spec"]
    tolerations = spec.get("tolerations") or []
    for taint in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(_tolerates(toleration, taint) for toleration in tolerations):
            tolerations = [*tolerations, {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_S}]
    spec["tolerations"] = tolerations
    return review.obj


def _tolerates(toleration: Object, taint: str) -> bool:
    return toleration.get("key") in (None, "", taint) and toleration.get("effect") in (None, "", "NoExecute")
