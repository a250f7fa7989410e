"""ResourceQuota as admission: a write that would take a namespace over one of its quotas is refused.

Usage is counted from the objects themselves whenever a quota stands in the way of a write; nothing is kept in between, so it cannot drift.
Namespaces without a quota pay nothing.
"""

from __future__ import annotations

from pumice.api.quantity import quantity
from pumice.api.quota import charge, in_scope, used, written
from pumice.apiserver.admission import Refusal, Review, World
from pumice.apiserver.shapes import Object

GROWING = ("services", "persistentvolumeclaims", "pods/resize")  #: what a change may make dearer
_MUST_SAY = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})


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
    if resource == "pods" and not in_scope(quota, review.obj):
        return None
    paid = charge(resource, review.old) if review.old is not None else {}
    charged = {key: amount - paid.get(key, 0) for key, amount in charge(resource, review.obj).items() if key in hard}
    asked = {key: amount for key, amount in charged.items() if amount > 0 or review.old is None}
    if resource == "pods" and review.old is None:
        unsaid = [key for key in hard if key in _MUST_SAY and key not in asked]
        if unsaid:
            return Refusal(f"failed quota: {name}: must specify {','.join(sorted(unsaid))}")
    if not asked:
        return None
    taken = used(quota, asked, lambda counted: world.all(counted, review.namespace))
    over = sorted(key for key, amount in asked.items() if taken.get(key, 0) + amount > quantity(hard[key]).milli)
    if not over:
        return None
    requested, before = ({key: amounts.get(key, 0) for key in over} for amounts in (asked, taken))
    shown = [",".join(f"{key}={amount}" for key, amount in each.items()) for each in (written(requested), written(before))]
    limited = ",".join(f"{key}={hard[key]}" for key in over)
    return Refusal(f"exceeded quota: {name}, requested: {shown[0]}, used: {shown[1]}, limited: {limited}")
