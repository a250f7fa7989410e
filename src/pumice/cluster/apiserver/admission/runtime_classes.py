"""A pod that names a RuntimeClass gets its overhead, and runs only on the nodes that the class is for."""

from pumice.api import Object
from pumice.api.pod_admission_defaults import selector_and_tolerations
from pumice.cluster.apiserver.admission.attributes import AdmissionAttributes, AdmissionLister, AdmissionRefusal, AdmissionRule

_RUNTIME_CLASSES = "runtimeclasses.node.k8s.io"


def runtime_class_rules() -> list[AdmissionRule]:
    return [AdmissionRule(("pods",), ("CREATE",), mutate=_with_runtime_class, validate=_runtime_class_fits)]


def _runtime_class(review: AdmissionAttributes, lister: AdmissionLister) -> Object | None:
    name = review.obj["spec"].get("runtimeClassName")
    return lister.find(_RUNTIME_CLASSES, "", name) if name else None


def _with_runtime_class(review: AdmissionAttributes, lister: AdmissionLister) -> Object:
    spec = review.obj["spec"]
    found = _runtime_class(review, lister) if "runtimeClassName" in spec else None
    if found is not None:
        overhead, scheduling = (found.get("overhead") or {}).get("podFixed"), found.get("scheduling") or {}
        if overhead:
            spec.setdefault("overhead", dict(overhead))
        fields = ("nodeSelector", "tolerations")
        merged = selector_and_tolerations(*(scheduling.get(field) for field in fields), *(spec.get(field) for field in fields))
        spec.update({field: found for field, found in zip(fields, merged, strict=True) if found})
    return review.obj


def _runtime_class_fits(review: AdmissionAttributes, lister: AdmissionLister) -> AdmissionRefusal | None:
    spec = review.obj["spec"]
    if "runtimeClassName" not in spec and "overhead" not in spec:
        return None
    found = _runtime_class(review, lister)
    name = spec.get("runtimeClassName")
    if name and found is None:
        return AdmissionRefusal(f'pod rejected: RuntimeClass "{name}" not found')
    wanted = ((found or {}).get("overhead") or {}).get("podFixed") or {}
    if (spec.get("overhead") or {}) != wanted:
        return AdmissionRefusal("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    selector = ((found or {}).get("scheduling") or {}).get("nodeSelector") or {}
    if any((spec.get("nodeSelector") or {}).get(key) != value for key, value in selector.items()):
        return AdmissionRefusal("pod rejected: conflict: RuntimeClass.scheduling.nodeSelector and pod's nodeSelector differ")
    return None
