"""What a ResourceClaim takes, by device class: so are quotas on devices, and what queues hold, counted.

`deviceclass/CLASS` is a number of devices, `AMOUNT.deviceclass/CLASS` what is requested of an amount of their capacity.
"""

from pumice.api.devices import DeviceRequest, ExactRequest, ResourceClaim, SubRequest

CLASS = "deviceclass/"
MILLI = 1000.0


def claimed(claim: ResourceClaim) -> dict[str, float]:
    """The amounts that a claim takes, in thousandths."""
    amounts: dict[str, float] = {}
    for request in claim.spec.devices.requests or ():
        wanted = _wanted(request)
        if wanted is None:
            continue
        count = _count(claim, request, wanted)
        per_device = {CLASS + (wanted.device_class_name or ""): MILLI}
        capacity = getattr(wanted, "capacity", None)
        for name, quantity in ((capacity.requests if capacity else None) or {}).items():
            per_device[f"{name}.{CLASS}{wanted.device_class_name}"] = quantity.milli
        for name, amount in per_device.items():
            amounts[name] = amounts.get(name, 0.0) + amount * count
    return amounts


def _wanted(request: DeviceRequest) -> ExactRequest | SubRequest | DeviceRequest | None:
    """The part of the request that says what is requested: the first one of alternatives; None if nothing is requested."""
    if request.exactly is not None:
        return request.exactly
    if request.first_available:
        return request.first_available[0]
    return request if request.device_class_name else None


def _count(claim: ResourceClaim, request: DeviceRequest, wanted: ExactRequest | SubRequest | DeviceRequest) -> int:
    """The number of devices that are allocated for the request, or that it requests if the claim is not allocated yet."""
    allocation = claim.status.allocation
    if allocation is not None:
        return sum(result.request.partition("/")[0] == request.name for result in allocation.devices.results or ())
    return wanted.count or 1
