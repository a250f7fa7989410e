"""What names and amounts of resources may be: for containers, for pods as a whole, and in quotas."""

from typing import Any

from pumice.api.quantity import quantity
from pumice.cluster.apiserver.validation.field_rules import Causes, invalid, is_negative, unsupported
from pumice.cluster.apiserver.validation.name_rules import kept, misnamed, named

_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_COUNTED = frozenset(
    {"pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims"}
    | {"services.nodeports", "services.loadbalancers"}
)
OF_QUOTAS = {*_COMPUTE, *_COUNTED, "requests.storage", *(f"{side}.{name}" for side in ("requests", "limits") for name in _COMPUTE)}
HUGE_PAGES = "hugepages-"
_UNKNOWN = "must be a standard resource type or fully qualified"


def is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.") and not misnamed("label", f"requests.{name}")


def may_overcommit(name: str) -> bool:
    """Whether containers may request less of a resource than their limit."""
    return ("/" not in name or "kubernetes.io/" in name) and not name.startswith(HUGE_PAGES)


def is_quota_resource(name: str) -> bool:
    """Whether quotas know a resource without a domain."""
    return name in OF_QUOTAS or name.removeprefix("requests.").startswith(HUGE_PAGES)


def resource_name_causes(name: str, place: str, use: str = "") -> Causes:
    """The causes for refusing a name as that of a resource, for containers if this is its use."""
    return [] if name in _COMPUTE else [(place, text) for text in _faults(use, name)]


@kept
def _faults(use: str, name: str) -> tuple[str, ...]:
    found = named("label", name, "")
    if not found and "/" not in name and name != "storage" and not is_quota_resource(name):
        found.append(invalid("", name, _UNKNOWN))
    if use == "containers" and "/" not in name and not name.startswith(HUGE_PAGES):
        found.append(invalid("", name, "must be a standard resource for containers"))
    elif use == "containers" and "/" in name and "kubernetes.io/" not in name and not is_extended(name):
        found.append(invalid("", name, "doesn't follow extended resource name standard"))
    return tuple(text for _, text in found)


def container_resource_causes(name: str, place: str) -> Causes:
    return resource_name_causes(name, place, "containers")


def pod_resource_causes(name: str, place: str) -> Causes:
    """The causes for refusing a name as that of a resource of pods as a whole."""
    is_right = name in ("cpu", "memory") or name.startswith(HUGE_PAGES)
    return resource_name_causes(name, place) or ([] if is_right else unsupported(place, name, ("cpu", HUGE_PAGES, "memory")))


def amount_causes(name: str, amount: Any, place: str) -> Causes:
    """The causes for refusing an amount of a resource."""
    text = str(amount)
    if text.isdecimal():
        return []
    if is_negative(amount):
        return [invalid(place, text, "must be greater than or equal to 0")]
    is_odd = (name in _COUNTED or is_extended(name)) and quantity(amount).milli % 1000
    return [invalid(place, text, "must be an integer")] if is_odd else []
