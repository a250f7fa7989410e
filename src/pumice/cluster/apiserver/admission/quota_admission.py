"""ResourceQuota as admission: a write that would take a namespace over one of its quotas is refused.

Usage is counted from the objects themselves whenever a quota applies to a write. No sum is kept in between that could become wrong.
Writes in namespaces without a quota cost nothing.
"""

from pumice.api.resource_quota import why_refused
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
