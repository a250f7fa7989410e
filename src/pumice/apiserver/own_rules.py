"""The admission that every API server has: namespace lifecycle, service account, limit ranges, priority, tolerations, quota.

Only what scheduling sees of it. Mutations come first, in this order; the quota is asked last.
"""

from __future__ import annotations

from pumice.apiserver import quota
from pumice.apiserver.admission import Refusal, Review, Rule, World
from pumice.apiserver.custom_kinds import CRDS, with_settled_names
from pumice.apiserver.escalation import escalation_rules
from pumice.apiserver.limit_ranges import limit_range_rules
from pumice.apiserver.pod_priority import priority_rules
from pumice.apiserver.service_accounts import service_account_rules
from pumice.apiserver.shapes import Object

_PERMANENT = ("default", "kube-system", "kube-public", "kube-node-lease")
_TOLERATED_S = 300


def own_rules() -> list[Rule]:
    return [
        Rule(("*",), ("CREATE",), validate=_namespace_lives),
        Rule(("namespaces",), ("DELETE",), validate=_namespace_may_go),
        Rule((CRDS,), ("CREATE", "UPDATE"), mutate=with_settled_names),
        *service_account_rules(),
        *limit_range_rules(),
        *priority_rules(),
        Rule(("pods",), ("CREATE", "UPDATE"), mutate=_with_tolerations),
        *escalation_rules(),
        Rule(("*",), ("CREATE",), validate=quota.within_quota),
        Rule(quota.GROWING, ("UPDATE",), validate=quota.within_quota),
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
