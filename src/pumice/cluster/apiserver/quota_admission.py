"""ResourceQuota as admission: a write that would take a namespace over one of its quotas is refused.

Usage is counted from the objects themselves whenever a quota stands in the way of a write; nothing is kept in between, so it cannot drift.
Namespaces without a quota pay nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from pumice.api.quantity import quantity
from pumice.api.quota import pod_totals, why_refused, written
from pumice.cluster.apiserver.admission import Refusal, Review, Rule, World
from pumice.cluster.apiserver.pod_defaults import qos_class
from pumice.cluster.apiserver.schema import Object

GROWING = ("services", "persistentvolumeclaims", "pods/resize")  #: what a change may make dearer


def within_quota(review: Review, world: World) -> Refusal | None:
    """Refuses what would take a namespace over one of its quotas, and pods that do not say what a quota asks."""
    if not review.namespace:
        return None
    resource = review.kind.resource
    for quota in world.all("resourcequotas", review.namespace):
        why = why_refused(quota, resource, review.obj, review.old, lambda counted: world.all(counted, review.namespace))
        if why:
            return Refusal(why)
    return None


# LimitRanges as admission: what containers ask for that ask for nothing, and between which bounds all must ask.

Amounts = dict[str, int]  #: thousandths by resource


def limit_range_rules() -> list[Rule]:
    return [
        Rule(("pods",), ("CREATE",), mutate=_with_defaults, validate=_pod_within),
        Rule(("pods/resize",), ("UPDATE",), validate=_pod_within),
        Rule(("persistentvolumeclaims",), ("CREATE", "UPDATE"), validate=_claim_within),
    ]


def _limits(review: Review, world: World, *types: str) -> list[Object]:
    ranges = (limit for obj in world.all("limitranges", review.namespace) for limit in (obj.get("spec") or {}).get("limits", ()))
    return [limit for limit in ranges if limit.get("type") in types]


def _containers(spec: Object) -> list[Object]:
    return [*spec.get("containers", ()), *spec.get("initContainers", ())]


def _with_defaults(review: Review, world: World) -> Object:
    limits = _limits(review, world, "Container")
    if not limits:
        return review.obj
    spec = review.obj["spec"]
    for limit in limits:
        for container in _containers(spec):
            for field, source in (("limits", "default"), ("requests", "defaultRequest")):
                for name, amount in (limit.get(source) or {}).items():
                    container["resources"].setdefault(field, {}).setdefault(name, amount)
    review.obj["status"]["qosClass"] = qos_class(spec)
    return review.obj


def _pod_within(review: Review, world: World) -> Refusal | None:
    found: list[str] = []
    spec = review.obj["spec"]
    for limit in _limits(review, world, "Container", "Pod"):
        if limit["type"] == "Pod":
            found += _complaints(limit, *pod_totals(spec))
            continue
        for container in _containers(spec):
            resources = container.get("resources") or {}
            found += _complaints(limit, *(_milli(resources.get(side) or {}) for side in ("requests", "limits")))
    return _outside_range(found)


def _claim_within(review: Review, world: World) -> Refusal | None:
    requests = _milli(((review.obj.get("spec") or {}).get("resources") or {}).get("requests") or {})
    found: list[str] = []
    for limit in _limits(review, world, "PersistentVolumeClaim"):
        found += _complaints(limit, requests, requests)
    return _outside_range(found)


def _milli(amounts: Object) -> Amounts:
    return {name: quantity(amount).milli for name, amount in amounts.items()}


def _outside_range(complaints: list[str]) -> Refusal | None:
    if not complaints:
        return None
    return Refusal(complaints[0] if len(complaints) == 1 else f"[{', '.join(complaints)}]")


def _complaints(limit: Object, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, bound in (limit.get("min") or {}).items():
        for word, asked in (("request", requests), ("limit", limits)):
            text = f"minimum {name} usage per {limit['type']} is {bound}"
            if name not in asked:
                if word == "request":
                    yield f"{text}.  No request is specified"
            elif asked[name] < quantity(bound).milli:
                yield f"{text}, but {word} is {_text(name, asked)}"
    for name, bound in (limit.get("max") or {}).items():
        for word, asked in (("limit", limits), ("request", requests)):
            text = f"maximum {name} usage per {limit['type']} is {bound}"
            if name not in asked:
                if word == "limit":
                    yield f"{text}.  No limit is specified"
            elif asked[name] > quantity(bound).milli:
                yield f"{text}, but {word} is {_text(name, asked)}"
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
