"""What a ResourceQuota charges for a pod, and sums of it: the unit in which Volcano states a PodGroup's minResources.

Names come in pairs (`cpu` and `requests.cpu`); extended resources appear as `requests.<name>` and, as Volcano adds, by their
plain name. Amounts are exact: thousandths for CPU, whole units for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pumice.api.quantity import format_bytes, format_milli, quantity
from pumice.controllers.objects import Object

Usage = dict[str, int]  #: thousandths by quota name

PAIRED = ("cpu", "memory", "ephemeral-storage")


def pod_usage(spec: Object) -> Usage:
    """The charge of one pod with this spec."""
    requests, limits = _total(spec, "requests"), _total(spec, "limits")
    usage = {"pods": 1000, "count/pods": 1000}
    for name, amount in requests.items():
        usage[f"requests.{name}"] = usage[name] = amount
    for name in PAIRED:
        if name in limits:
            usage[f"limits.{name}"] = limits[name]
    return usage


def _total(spec: Object, side: str) -> Usage:
    """Requests or limits of the pod: its containers and sidecars, at least its largest init step, plus overhead."""
    steady = add(_amounts(each, side) for each in spec.get("containers") or ())
    peak: Usage = {}
    sidecars: Usage = {}
    for container in spec.get("initContainers") or ():
        amounts = _amounts(container, side)
        if container.get("restartPolicy") == "Always":
            sidecars = add((sidecars, amounts))
            peak = _larger(peak, sidecars)
        else:
            peak = _larger(peak, add((sidecars, amounts)))
    total = _larger(add((steady, sidecars)), peak)
    overhead = {name: quantity(amount).milli for name, amount in (spec.get("overhead") or {}).items()}
    if side == "requests":
        return add((total, overhead))
    return {name: amount + overhead.get(name, 0) for name, amount in total.items()}


def _amounts(container: Object, side: str) -> Usage:
    resources = container.get("resources") or {}
    stated = {name: quantity(amount).milli for name, amount in (resources.get(side) or {}).items()}
    if side == "requests":  # a limit without a request is the request
        stated = {name: quantity(amount).milli for name, amount in (resources.get("limits") or {}).items()} | stated
    return stated


def add(usages: Iterable[Mapping[str, int]]) -> Usage:
    total: Usage = {}
    for usage in usages:
        for name, amount in usage.items():
            total[name] = total.get(name, 0) + amount
    return total


def times(usage: Mapping[str, int], count: int) -> Usage:
    return {name: amount * count for name, amount in usage.items()}


def _larger(left: Usage, right: Usage) -> Usage:
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in (*left, *(each for each in right if each not in left))}


def written(usage: Mapping[str, int]) -> dict[str, str]:
    """As quantities, in the order of the names."""
    return {name: _quantity(name, amount) for name, amount in sorted(usage.items())}


def _quantity(name: str, amount: int) -> str:
    binary = name.endswith(("memory", "storage")) or "hugepages-" in name
    return format_bytes(amount // 1000) if binary and amount % 1000 == 0 else format_milli(amount)
