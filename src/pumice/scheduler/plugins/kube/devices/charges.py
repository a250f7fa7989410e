"""What the devices of a pod's claims take of a node's own resources: cpu, memory, huge pages.

A device may be a part of such a resource (its mapping), as a whole or by what is taken of its capacity; and each pod that uses it, and each
container, may need some more (overhead). Nobody knows this before the devices are chosen, so a pod's request differs from node to node.
The pod's status tells it later. Where the pod as a whole has requests and limits, these must cover it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from pumice.api.devices import Device, NodeAllocatableMapping
from pumice.api.pod import ClaimCharge, MappedAmount, OverheadAmount, PodSpec, ResourceList
from pumice.api.quantity import Quantity, canonical, format_bytes, format_milli, quantity
from pumice.scheduler.model.pod_request import charged, is_pod_level, requested_by_containers
from pumice.scheduler.plugins.kube.devices.in_use import DeviceUse
from pumice.scheduler.plugins.kube.devices.pools import DeviceKey
from pumice.scheduler.plugins.kube.devices.requests import Failed

CHARGES = "DRANodeAllocatableResources"  #: the gate
ALONE = "node allocatable resource claim {} has a mapped device and cannot be shared across pods"
Find = Callable[[DeviceKey], Device | None]


def charges_of(spec: PodSpec, names: Mapping[str, str], uses: Mapping[str, Sequence[DeviceUse]], find: Find) -> list[ClaimCharge]:
    """What the claims of a pod take, sorted by name. `names`: by its name in the pod, the key of each claim. Raises Failed."""
    found = []
    for key in sorted(uses):
        devices = [find(use.device) for use in uses[key]]
        if not any(device is not None and device.node_allocatable_resources for device in devices):
            continue
        mapping, overhead = _Sum(), _Sum()
        for use, device in zip(uses[key], devices, strict=True):
            if device is None:
                driver, pool, name = use.device
                raise Failed(f"claim {key}, device {name}, driver {driver}: device {name} not found in pool {pool} for driver {driver}")
            for resource, taken in (device.node_allocatable_resources or {}).items():
                if taken.mapping is not None:
                    mapping.add(resource, "", _mapped(taken.mapping, use, key, resource))
                if taken.overhead is not None:
                    overhead.add(resource, "per_pod", taken.overhead.per_pod)
                    overhead.add(resource, "per_container", taken.overhead.per_container)
        if mapping.of or overhead.of:
            mapped = [MappedAmount(resource, amounts[""]) for resource, amounts in sorted(mapping.of.items())]
            more = [OverheadAmount(resource, **amounts) for resource, amounts in sorted(overhead.of.items())]
            found.append(ClaimCharge(key.partition("/")[2], list(_containers(spec, names, key)), mapped, more))
    return found


class _Sum:
    """Amounts by resource and name."""

    def __init__(self) -> None:
        self.of: dict[str, dict[str, Quantity]] = {}

    def add(self, resource: str, name: str, more: Quantity | None) -> None:
        if more is not None:
            amounts = self.of.setdefault(resource, {})
            amounts[name] = _written(amounts[name].milli + more.milli, amounts[name]) if name in amounts else more


def _mapped(mapping: NodeAllocatableMapping, use: DeviceUse, claim: str, resource: str) -> Quantity | None:
    key = mapping.capacity_key
    if not key:
        return mapping.device_multiplier
    if use.amounts is None:
        what = f"ConsumedCapacity is nil, but Capacity key '{key}' is set in NodeAllocatableResources for resource {resource}"
        raise Failed(f"claim {claim}, device {use.device[2]}: {what}")
    taken, times = use.amounts.get(key), mapping.capacity_multiplier
    return taken if taken is None or times is None else _written(-(-taken.milli * times.milli // 1000), taken)


def _written(milli: int, like: Quantity) -> Quantity:
    """The amount, with binary suffixes if the other one has them."""
    is_binary = like.text.endswith("i") and milli % 1000 == 0
    return quantity(format_bytes(milli // 1000) if is_binary else canonical(format_milli(milli)))


def _containers(spec: PodSpec, names: Mapping[str, str], claim: str) -> Iterator[str]:
    """The containers that name the claim, each as often as they do."""
    for container in (*(spec.init_containers or ()), *(spec.containers or ())):
        for ref in (container.resources.claims if container.resources else None) or ():
            if names.get(ref.name) == claim:
                yield container.name


def is_mapped(device: Device | None) -> bool:
    """Whether the device is a part of a node's own resources."""
    return device is not None and any(each.mapping is not None for each in (device.node_allocatable_resources or {}).values())


COVERED = "is insufficient to cover the aggregated container and node-allocatable DRA"


def uncovered(spec: PodSpec, charges: Sequence[ClaimCharge]) -> str:
    """Why the requests and limits of a pod as a whole do not cover what its devices take besides; empty if they do."""
    if spec.resources is None or not charges:
        return ""
    more = charged(charges)
    requested = requested_by_containers(spec)
    for name, amount in sorted((spec.resources.requests or {}).items()):
        if is_pod_level(name) and (name in requested or name in more) and requested.get(name, 0) + more.get(name, 0) > amount.milli:
            return f"pod level request for {name} {COVERED} requests"
    limits = spec.resources.limits or {}
    limited = requested_by_containers(spec, lambda container: (container.resources.limits if container.resources else None) or {})
    for name, limit in sorted(limits.items()):
        if _is_huge(name) and limited.get(name, 0) + more.get(name, 0) > limit.milli:
            return f"pod level limit for {name} {COVERED} limits"
    return next(_uncovered_limits(spec, charges, limits), "")


def _uncovered_limits(spec: PodSpec, charges: Sequence[ClaimCharge], limits: ResourceList) -> Iterator[str]:
    for container in spec.containers or ():
        more = charged(replace(each, containers=[container.name]) for each in charges if container.name in (each.containers or ()))
        for name, limit in sorted(((container.resources.limits if container.resources else None) or {}).items()):
            if not _is_huge(name) and name in limits and limit.milli + more.get(name, 0) > limits[name].milli:
                yield f"pod level limit for {name} is insufficient to cover the limit and DRA overhead for container {container.name}"


def _is_huge(name: str) -> bool:
    return name.startswith("hugepages-")
