"""Whether a pod may be on a node by its node selector, its required node affinity and its tolerations, for controllers and kubelets."""

from collections.abc import Iterable, Mapping

from pumice.api import Object, name_of
from pumice.api.json_objects import labels_of
from pumice.api.selectors import matches, requirements


def fits(pod_spec: Object, node: Object) -> bool:
    """Whether a node matches the node selector and the required node affinity of a pod."""
    selector = pod_spec.get("nodeSelector") or {}
    if not selector.items() <= labels_of(node).items():
        return False
    affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_term_holds(term, node) for term in required.get("nodeSelectorTerms") or ())


def _term_holds(term: Object, node: Object) -> bool:
    labels, fields = requirements(term.get("matchExpressions")), requirements(term.get("matchFields"))
    return bool(labels or fields) and matches(labels, labels_of(node)) and matches(fields, {"metadata.name": name_of(node)})


def tolerates(tolerations: Iterable[Mapping[str, object]], taints: Iterable[Object]) -> bool:
    stated = list(tolerations)
    return all(any(covers(each, taint) for each in stated) for taint in taints)


def covers(toleration: Mapping[str, object], taint: Object) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("key") not in (None, "", taint.get("key")):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")
