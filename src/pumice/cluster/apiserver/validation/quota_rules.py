"""What is wrong with the amounts of ResourceQuotas and LimitRanges."""

from collections.abc import Iterator

from pumice.api import Object
from pumice.api.quantity import quantity
from pumice.cluster.apiserver.scheme.builtin_shapes import shape_of
from pumice.cluster.apiserver.validation.declared_rules import internal
from pumice.cluster.apiserver.validation.field_rules import Cause, invalid, required
from pumice.cluster.apiserver.validation.resource_rules import (
    OF_QUOTAS,
    amount_causes,
    container_resource_causes,
    is_quota_resource,
    may_overcommit,
    resource_name_causes,
)

_OF_PODS = {"pods", *(f"{side}{name}" for side in ("", "requests.", "limits.") for name in ("cpu", "memory"))}
#: what may be counted of the pods, or claims, of a scope
_SCOPES = {
    **dict.fromkeys(("Terminating", "NotTerminating", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity"), _OF_PODS),
    "BestEffort": {"pods"},
    "VolumeAttributesClass": {"persistentvolumeclaims", "requests.storage"},
}
_OPPOSITES = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_BARE = ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity")
_LISTED = [f"ResourceQuotaScope{each}" for each in _BARE]
_MUST_EXIST = f"must be 'Exists' when scope is any of {', '.join(_LISTED[:-1])} or {_LISTED[-1]}"


def quota_causes(spec: Object) -> Iterator[Cause]:
    yield from _selected(spec)
    hard, scopes = spec.get("hard") or {}, spec.get("scopes") or ()
    for name, amount in hard.items():
        place = f"hard[{name}]"
        yield from resource_name_causes(name, place)
        if "/" not in name and not is_quota_resource(name):
            yield invalid(place, name, "must be a standard resource for quota")
        yield from amount_causes(name, amount, place)
    for scope in scopes:
        if scope not in _SCOPES:
            yield invalid("scopes", scopes, "unsupported scope")
        elif _is_wrong_of(scope, hard):
            yield invalid("scopes", scopes, "unsupported scope applied to resource")
    if any(pair <= {*scopes} for pair in _OPPOSITES):
        yield invalid("scopes", scopes, "conflicting scopes")


def _is_wrong_of(scope: str, hard: Object) -> bool:
    return any(name in OF_QUOTAS and name not in _SCOPES[scope] for name in hard)


def _selected(spec: Object) -> Iterator[Cause]:
    selector = spec.get("scopeSelector") or {}
    place = "scopeSelector.matchExpressions"
    for each in selector.get("matchExpressions") or ():
        scope, operator, values = each.get("scopeName", ""), each.get("operator", ""), each.get("values") or ()
        if scope not in _SCOPES:
            yield invalid(f"{place}.scopeName", scope, "unsupported scope")
        elif _is_wrong_of(scope, spec.get("hard") or {}):
            shown = internal(shape_of("core.v1.ScopeSelector"), selector)
            yield invalid(place, shown, "unsupported scope applied to resource")
        if scope in _BARE and operator != "Exists":
            yield invalid(f"{place}.operator", operator, _MUST_EXIST)
        if operator in ("In", "NotIn") and not values:
            yield required(f"{place}.values", "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector")
        elif operator in ("Exists", "DoesNotExist") and values:
            yield invalid(f"{place}.values", values, "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector")
        elif operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            yield invalid(f"{place}.operator", operator, "not a valid selector operator")


def limit_causes(limit: Object) -> Iterator[Cause]:
    """What is wrong with the resources of one limit, and with their amounts."""
    sides = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
    of_containers = container_resource_causes if limit.get("type") in ("Pod", "Container") else resource_name_causes
    for side in sides:
        yield from (cause for name in limit.get(side) or () for cause in of_containers(name, f"{side}[{name}]"))
    for name in sorted({name for side in sides for name in limit.get(side) or ()}):
        yield from _order(name, {side: str(limit[side][name]) for side in sides if name in (limit.get(side) or {})})


#: a side, the side that it must not be above, the side that is at fault, and the side that is shown
_RISING = (
    ("min", "max", "min", "min"),
    ("min", "defaultRequest", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "max", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "default", "defaultRequest", "defaultRequest"),
    ("min", "default", "default", "min"),
    ("default", "max", "default", "max"),
)


def _order(name: str, stated: dict[str, str]) -> Iterator[Cause]:
    amounts = {side: quantity(amount).milli for side, amount in stated.items()}
    for low, high, at_fault, shown in _RISING:
        if low in stated and high in stated and amounts[low] > amounts[high]:
            words = [side.replace("defaultRequest", "default request") for side in (low, high)]
            words[1] = "default limit" if (low, high) == ("defaultRequest", "default") else words[1]
            text = f"{words[0]} value {stated[low]} is greater than {words[1]} value {stated[high]}"
            yield invalid(f"{at_fault}[{name}]", stated[shown], text)
    ratio, place = amounts.get("maxLimitRequestRatio"), f"maxLimitRequestRatio[{name}]"
    if ratio is not None and ratio < 1000:
        yield invalid(place, stated["maxLimitRequestRatio"], f"ratio {stated['maxLimitRequestRatio']} is less than 1")
    if ratio is not None and amounts.get("min") and "max" in amounts and ratio / 1000 > amounts["max"] / amounts["min"]:
        text = f"ratio {stated['maxLimitRequestRatio']} is greater than max/min = {amounts['max'] / amounts['min']:f}"
        yield invalid(place, stated["maxLimitRequestRatio"], text)
    request, default = stated.get("defaultRequest"), stated.get("default")
    if request and default and amounts["defaultRequest"] != amounts["default"] and not may_overcommit(name):
        text = f"default value {default} must equal to defaultRequest value {request} in {name}"
        yield invalid(f"defaultRequest[{name}]", request, text)
