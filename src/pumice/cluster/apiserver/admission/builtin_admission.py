"""The admission that every API server has: namespace lifecycle, service account, limit ranges, priority, PodGroups, tolerations, quota.

Only the parts are here that matter to scheduling. Mutations come first, in this order; the quota is checked last.

The priority of a pod, and of Kubernetes' own groups of pods, is that of its PriorityClass. Who states another priority is refused.
"""

from typing import Any

from pumice.api import Object
from pumice.api.annotations import CLAIM_PROTECTION, GROUP_PROTECTION, VOLUME_PROTECTION
from pumice.cluster.apiserver.admission.attributes import AdmissionAttributes, AdmissionLister, AdmissionRefusal, AdmissionRule
from pumice.cluster.apiserver.admission.limit_ranges import limit_range_rules
from pumice.cluster.apiserver.admission.policies import VALIDATING
from pumice.cluster.apiserver.admission.quota_admission import GROWING, within_quota
from pumice.cluster.apiserver.admission.runtime_classes import runtime_class_rules
from pumice.cluster.apiserver.admission.service_account_admission import service_account_rules
from pumice.cluster.apiserver.auth.escalation import escalation_rules
from pumice.cluster.apiserver.auth.signing import signing_rules
from pumice.cluster.apiserver.scheme.crd import CRDS, with_settled_names
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.validation.group_checks import GROUPS

CLASSES = "priorityclasses.scheduling.k8s.io"
_CLAIMING = ("resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io")
_ADMIN_LABEL = "resource.kubernetes.io/admin-access"
_COMPUTED = ("priority", "preemptionPolicy")
_GROUPS = {"PodGroup": "pod group", "CompositePodGroup": "composite pod group"}  #: by kind: what texts call it


def priority_rules() -> list[AdmissionRule]:
    return [
        AdmissionRule(("pods", *GROUPS), ("CREATE",), mutate=_with_priority),
        AdmissionRule(("pods",), ("UPDATE",), mutate=_keeping_priority),
        AdmissionRule((CLASSES,), ("CREATE", "UPDATE"), validate=_one_default),
    ]


def _class_of(pod: Object, lister: AdmissionLister) -> Object | None:
    """The PriorityClass that a pod or group names, else the global default. None if it does not exist."""
    name = pod["spec"].get("priorityClassName")
    if name:
        return lister.find(CLASSES, "", name)
    return min(_defaults(lister), key=lambda one: int(one["value"]), default=None)


def _defaults(lister: AdmissionLister) -> list[Object]:
    return [one for one in lister.all(CLASSES) if one.get("globalDefault")]


def _computed(found: Object | None, kind: ServedKind) -> dict[str, Any]:
    known = found or {}
    computed = {"priority": known.get("value", 0), "preemptionPolicy": known.get("preemptionPolicy", "PreemptLowerPriority")}
    if kind.kind in _GROUPS and "PodGroupPreemptionPolicy" not in kind.gates:
        del computed["preemptionPolicy"]
    return computed


def _with_priority(review: AdmissionAttributes, lister: AdmissionLister) -> Object:
    spec, found = review.obj["spec"], _class_of(review.obj, lister)
    if found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
    for field, value in _computed(found, review.kind).items():
        spec.setdefault(field, "PreemptLowerPriority" if field == "preemptionPolicy" and review.kind.kind in _GROUPS else value)
    if (refusal := _contradicts_its_class(review, found)) is not None:
        raise refusal.error(review)  # before the object is validated, as upstream
    return review.obj


def _contradicts_its_class(review: AdmissionAttributes, found: Object | None) -> AdmissionRefusal | None:
    spec = review.obj["spec"]
    if found is None and spec.get("priorityClassName"):
        return AdmissionRefusal(f"no PriorityClass with name {spec['priorityClassName']} was found")
    for field, value in _computed(found, review.kind).items():
        subject = _GROUPS.get(review.kind.kind, "pod")
        if spec[field] != value and field == "priority" and subject != "pod":
            given = f"priority set in the {subject} ({spec[field]}) must match the priority computed ({value})"
            return AdmissionRefusal(f"{given} based on the priority class set in the spec")
        if spec[field] != value:
            what = "integer value of priority" if field == "priority" else "string value of PreemptionPolicy"
            text = f"the {what} ({spec[field]}) must not be provided in {subject} spec; "
            return AdmissionRefusal(f"{text}priority admission controller computed {value} from the given PriorityClass name")
    return None


def _keeping_priority(review: AdmissionAttributes, lister: AdmissionLister) -> Object:
    """The pod of an update, with its priority kept if the update leaves it out."""
    assert review.old is not None
    for field in _COMPUTED:
        if field in review.old["spec"]:
            review.obj["spec"].setdefault(field, review.old["spec"][field])
    return review.obj


#: by storage: the finalizer that keeps an object while it is used
_PROTECTION = {GROUPS[0]: GROUP_PROTECTION, "persistentvolumes": VOLUME_PROTECTION, "persistentvolumeclaims": CLAIM_PROTECTION}


def _protected(review: AdmissionAttributes, lister: AdmissionLister) -> Object:
    """The new object with the finalizer that keeps it while it is used."""
    finalizers, own = review.obj["metadata"].get("finalizers") or [], _PROTECTION[review.kind.storage]
    if own not in finalizers:
        review.obj["metadata"]["finalizers"] = [*finalizers, own]
    return review.obj


def _one_default(review: AdmissionAttributes, lister: AdmissionLister) -> AdmissionRefusal | None:
    others = [one["metadata"]["name"] for one in _defaults(lister) if one["metadata"]["name"] != review.name]
    if not review.obj.get("globalDefault") or not others:
        return None
    return AdmissionRefusal(f"PriorityClass {others[0]} is already marked as default. Only one default can exist")


_PERMANENT = ("default", "kube-system", "kube-public", "kube-node-lease")
_TOLERATED_S = 300


def _with_type_checking(review: AdmissionAttributes, lister: AdmissionLister) -> Object:
    from pumice.cluster.apiserver.admission.policy_types import with_type_checking  # importing CEL takes 20 ms; most have no policies

    return with_type_checking(review, lister)


def own_rules() -> list[AdmissionRule]:
    return [
        AdmissionRule(("*",), ("CREATE",), validate=_namespace_lives),
        AdmissionRule(("namespaces",), ("DELETE",), validate=_namespace_may_go),
        AdmissionRule((CRDS,), ("CREATE", "UPDATE"), mutate=with_settled_names),
        AdmissionRule((VALIDATING,), ("CREATE", "UPDATE"), mutate=_with_type_checking),
        *service_account_rules(),
        *signing_rules(),
        *runtime_class_rules(),
        *limit_range_rules(),
        *priority_rules(),
        AdmissionRule(tuple(_PROTECTION), ("CREATE",), mutate=_protected),
        AdmissionRule(("pods",), ("CREATE", "UPDATE"), mutate=_with_tolerations),
        *escalation_rules(),
        AdmissionRule(_CLAIMING, ("CREATE",), validate=_may_watch_devices),
        AdmissionRule((f"{_CLAIMING[0]}/status",), ("UPDATE",), validate=_may_watch_devices),
        AdmissionRule(("*",), ("CREATE",), validate=within_quota),
        AdmissionRule(GROWING, ("UPDATE",), validate=within_quota),
    ]


def _namespace_lives(review: AdmissionAttributes, lister: AdmissionLister) -> AdmissionRefusal | None:
    if not review.namespace:
        return None
    namespace = lister.find("namespaces", "", review.namespace)
    if namespace is not None and namespace["metadata"].get("deletionTimestamp"):
        return AdmissionRefusal(f"unable to create new content in namespace {review.namespace} because it is being terminated")
    return None


def _may_watch_devices(review: AdmissionAttributes, lister: AdmissionLister) -> AdmissionRefusal | None:
    """Only in namespaces with a label for it may claims ask for devices whoever uses them, or be given them."""
    spec, namespace = review.obj["spec"], lister.find("namespaces", "", review.namespace)
    if namespace is not None and (namespace["metadata"].get("labels") or {}).get(_ADMIN_LABEL) == "true":
        return None
    place, ways = "status.allocation.devices.results", _given(review.obj)
    if not review.subresource:
        requests = (spec.get("devices") or (spec.get("spec") or {}).get("devices") or {}).get("requests") or ()
        place, ways = "spec.devices.requests", [request.get("exactly") or {} for request in requests]
    had_before = any(way.get("adminAccess") for way in _given(review.old or {}))
    for index, way in enumerate(() if had_before else ways):
        if way.get("adminAccess"):
            text = f"Forbidden: admin access to devices requires the `{_ADMIN_LABEL}: true` label on the containing namespace"
            raise review.kind.invalid(review.name, [(f"{place}[{index}].adminAccess", text)])
    return None


def _given(claim: Object) -> list[Object]:
    devices = ((claim.get("status") or {}).get("allocation") or {}).get("devices") or {}
    return devices.get("results") or []


def _namespace_may_go(review: AdmissionAttributes, lister: AdmissionLister) -> AdmissionRefusal | None:
    return AdmissionRefusal("this namespace may not be deleted") if review.name in _PERMANENT[:2] else None


def _with_tolerations(review: AdmissionAttributes, lister: AdmissionLister) -> Object:
    """The pod with tolerations that let it stay five minutes on a node that is not ready or not reachable."""
    spec = review.obj["spec"]
    tolerations = spec.get("tolerations") or []
    for taint in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(_tolerates(toleration, taint) for toleration in tolerations):
            tolerations = [*tolerations, {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_S}]
    spec["tolerations"] = tolerations
    return review.obj


def _tolerates(toleration: Object, taint: str) -> bool:
    return toleration.get("key") in (None, "", taint) and toleration.get("effect") in (None, "", "NoExecute")
