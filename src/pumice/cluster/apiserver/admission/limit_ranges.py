"""LimitRanges as admission: default amounts of containers that state none, and the bounds that containers, pods and claims must keep."""

from collections.abc import Iterator

from pumice.api import Object
from pumice.api.quantity import quantity
from pumice.api.resource_quota import pod_totals, written
from pumice.cluster.apiserver.admission.attributes import AdmissionAttributes, AdmissionLister, AdmissionRefusal, AdmissionRule
from pumice.cluster.apiserver.pod_defaults import qos_class

Amounts = dict[str, int]  #: by resource: the amount in thousandths


def limit_range_rules() -> list[AdmissionRule]:
    return [
        AdmissionRule(("pods",), ("CREATE",), mutate=_with_defaults, validate=_pod_within),
        AdmissionRule(("pods/resize",), ("UPDATE",), validate=_pod_within),
        AdmissionRule(("persistentvolumeclaims",), ("CREATE", "UPDATE"), validate=_claim_within),
    ]


def _limits(review: AdmissionAttributes, lister: AdmissionLister, *types: str) -> list[Object]:
    specs = [obj.get("spec") or {} for obj in lister.all("limitranges", review.namespace)]
    return [limit for spec in specs for limit in spec.get("limits", ()) if limit.get("type") in types] if specs else specs


def _containers(spec: Object) -> list[Object]:
    return [*spec.get("containers", ()), *spec.get("initContainers", ())]


def _with_defaults(review: AdmissionAttributes, lister: AdmissionLister) -> Object:
    limits = _limits(review, lister, "Container")
    if not limits:
        return review.obj
    spec = review.obj["spec"]
    for limit in limits:
        for container in _containers(spec):
            for kind, source in (("limits", "default"), ("requests", "defaultRequest")):
                for name, amount in (limit.get(source) or {}).items():
                    container["resources"].setdefault(kind, {}).setdefault(name, amount)
    review.obj["status"]["qosClass"] = qos_class(spec)
    return review.obj


def _pod_within(review: AdmissionAttributes, lister: AdmissionLister) -> AdmissionRefusal | None:
    found: list[str] = []
    spec = review.obj["spec"]
    for limit in _limits(review, lister, "Container", "Pod"):
        if limit["type"] == "Pod":
            found += _complaints(limit, *pod_totals(spec))
            continue
        for container in _containers(spec):
            resources = container.get("resources") or {}
            found += _complaints(limit, *(_milli(resources.get(side) or {}) for side in ("requests", "limits")))
    return _outside_range(found)


def _claim_within(review: AdmissionAttributes, lister: AdmissionLister) -> AdmissionRefusal | None:
    requests = _milli(((review.obj.get("spec") or {}).get("resources") or {}).get("requests") or {})
    found: list[str] = []
    for limit in _limits(review, lister, "PersistentVolumeClaim"):
        found += _complaints(limit, requests, requests)
    return _outside_range(found)


def _milli(amounts: Object) -> Amounts:
    return {name: quantity(amount).milli for name, amount in amounts.items()}


def _outside_range(complaints: list[str]) -> AdmissionRefusal | None:
    if not complaints:
        return None
    return AdmissionRefusal(complaints[0] if len(complaints) == 1 else f"[{', '.join(complaints)}]")


def _complaints(limit: Object, requests: Amounts, limits: Amounts) -> Iterator[str]:
    sides = {"request": requests, "limit": limits}
    for field, most, words in (("min", "minimum", ("request", "limit")), ("max", "maximum", ("limit", "request"))):
        for name, bound in (limit.get(field) or {}).items():
            text = f"{most} {name} usage per {limit['type']} is {bound}"
            for word in words:
                asked, least = sides[word].get(name), quantity(bound).milli
                if asked is None and word == words[0]:
                    yield f"{text}.  No {word} is specified"
                elif asked is not None and (asked < least if field == "min" else asked > least):
                    yield f"{text}, but {word} is {_text(name, sides[word])}"
    for name, ratio in (limit.get("maxLimitRequestRatio") or {}).items():
        text = f"{name} max limit to request ratio per {limit['type']} is {ratio}, but"
        if not requests.get(name):
            yield f"{text} no request is specified or request is 0"
        elif not limits.get(name):
            yield f"{text} no limit is specified or limit is 0"
        elif limits[name] * 1000 > quantity(ratio).milli * requests[name]:
            yield f"{text} provided ratio is {limits[name] / requests[name]:f}"


def _text(name: str, amounts: Amounts) -> str:
    return written({name: amounts[name]})[name]
