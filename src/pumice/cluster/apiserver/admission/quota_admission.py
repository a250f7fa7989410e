"""ResourceQuota as admission: a write that would take a namespace over one of its quotas is refused.

Usage is counted from the objects themselves whenever a quota applies to a write. No sum is kept in between that could become wrong.
Writes in namespaces without a quota cost nothing.
"""

from collections.abc import Callable, Iterable

from pumice.api import Object, spec_of
from pumice.api.quantity import quantity
from pumice.api.resource_quota import charge, in_scope, unsaid, used, written
from pumice.cluster.apiserver.admission.attributes import AdmissionAttributes, AdmissionLister, AdmissionRefusal

GROWING = ("services", "persistentvolumeclaims", "pods/resize")  #: resources whose usage an update may increase


def within_quota(review: AdmissionAttributes, lister: AdmissionLister) -> AdmissionRefusal | None:
    """Refuse a write that would take its namespace over a quota, and a pod that does not state the amounts which a quota demands."""
    if not review.namespace:
        return None
    resource = review.kind.resource
    for quota in lister.all("resourcequotas", review.namespace):
        why = why_refused(quota, resource, review.obj, review.old, lambda counted: lister.all(counted, review.namespace))
        if why:
            return AdmissionRefusal(why)
    return None


def why_refused(quota: Object, resource: str, new: Object, old: Object | None, existing: Callable[[str], Iterable[Object]]) -> str:
    """Why a write would exceed a quota of its namespace; empty if it would not. `existing` gives that namespace's objects of a resource."""
    name, hard = quota["metadata"]["name"], spec_of(quota).get("hard") or {}
    if resource == "pods" and not in_scope(quota, new):
        return ""
    paid = charge(resource, old) if old is not None else {}
    charged = {key: amount - paid.get(key, 0) for key, amount in charge(resource, new).items() if key in hard}
    asked = {key: amount for key, amount in charged.items() if amount > 0 or old is None}
    if resource == "pods" and old is None:
        lacking = [f"{key} for: {','.join(containers)}" for key, containers in unsaid(spec_of(new), hard).items()]
        if lacking:
            return f"failed quota: {name}: must specify {'; '.join(lacking)}"
    if not asked:
        return ""
    taken = used(quota, asked, existing)
    over = sorted(key for key, amount in asked.items() if taken.get(key, 0) + amount > quantity(hard[key]).milli)
    if not over:
        return ""
    requested, before = ({key: amounts.get(key, 0) for key in over} for amounts in (asked, taken))
    shown = [",".join(f"{key}={amount}" for key, amount in each.items()) for each in (written(requested), written(before))]
    limited = ",".join(f"{key}={hard[key]}" for key in over)
    return f"exceeded quota: {name}, requested: {shown[0]}, used: {shown[1]}, limited: {limited}"
