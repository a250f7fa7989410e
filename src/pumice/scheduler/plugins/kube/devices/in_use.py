"""Which devices are in use: exclusively, or how much is taken of a shared device."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pumice.api.devices import AllocatedDevice, ResourceClaim
from pumice.api.quantity import Quantity
from pumice.scheduler.plugins.kube.devices.pools import DeviceKey


class DeviceUse(NamedTuple):
    """The use of one device by one request. `amounts`: what is taken of a shared device; None for exclusive use."""

    device: DeviceKey
    amounts: Mapping[str, Quantity] | None = None


class InUse:
    """Counts of the uses of devices. They are counts, since two claims may both say that they have a device."""

    def __init__(self) -> None:
        self.alone: dict[DeviceKey, int] = {}  #: never 0
        self.shares: dict[DeviceKey, int] = {}  #: never 0
        self.taken: dict[DeviceKey, dict[str, int]] = {}  #: in milli-units, by capacity

    def __contains__(self, device: DeviceKey) -> bool:
        return device in self.alone or device in self.shares

    def change(self, uses: Iterable[DeviceUse], sign: int) -> None:
        for device, amounts in uses:
            _count(self.alone if amounts is None else self.shares, device, sign)
            taken = self.taken.setdefault(device, {})
            for name, share in (amounts or {}).items():
                taken[name] = taken.get(name, 0) + sign * share.milli
            if device not in self.shares:
                del self.taken[device]

    def room(self, device: DeviceKey, has: Mapping[str, int], more: Mapping[str, Quantity]) -> bool:
        """Whether `more` can be taken of a shared device whose capacities are `has`, in milli-units."""
        taken = self.taken.get(device, {})
        return all(taken.get(name, 0) + amount.milli <= has[name] for name, amount in more.items())


def _count(counts: dict[DeviceKey, int], device: DeviceKey, sign: int) -> None:
    count = counts.get(device, 0) + sign
    if count:
        counts[device] = count
    else:
        del counts[device]


def uses_of(claim: ResourceClaim) -> list[DeviceUse]:
    """The uses of devices that the claim's status lists. Administrative access uses nothing."""
    results = claim.status.allocation.devices.results if claim.status.allocation else None
    return [use_of(result) for result in results or () if not result.admin_access]


def use_of(result: AllocatedDevice) -> DeviceUse:
    shared = result.share_id is not None
    return DeviceUse((result.driver, result.pool, result.device), (result.consumed_capacity or {}) if shared else None)
