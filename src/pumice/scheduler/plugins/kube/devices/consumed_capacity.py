"""How much of its capacities a device gives to a request, by its request policies.

A request that names no amount gets the policy's default, or else the whole capacity. An amount is rounded up to what the policy allows.
Without the gate DRAFractionalCapacityRange, ranges are of whole units: the parts of a unit are rounded up first.
"""

from collections.abc import Mapping

from pumice.api.devices import Device, DeviceCapacity, RequestPolicy, ValidRange
from pumice.api.quantity import Quantity, quantity

WHOLE = 1000  #: milli-units
Amounts = dict[str, Quantity]


def consumption(asked: Mapping[str, Quantity], device: Device, *, fractions: bool) -> Amounts | None:
    """What the request takes of each capacity of the device; None if the device has less, or if its policy does not allow the amount."""
    has = device.capacity or {}
    if not has and not asked:
        return {}
    if not asked.keys() <= has.keys():
        return None
    unit = 1 if fractions else WHOLE
    amounts = {name: _amount(asked.get(name), capacity, unit) for name, capacity in has.items()}
    enough = all(amount.milli <= has[name].value.milli for name, amount in amounts.items())
    return amounts if enough and all(_is_allowed(amount, has[name].request_policy, unit) for name, amount in amounts.items()) else None


def _amount(asked: Quantity | None, capacity: DeviceCapacity, unit: int) -> Quantity:
    policy = capacity.request_policy
    if asked is None:
        return policy.default if policy is not None and policy.default is not None else capacity.value
    if policy is not None and policy.valid_range is not None and policy.valid_range.min is not None:
        return _stepped(asked, policy.valid_range.min, policy.valid_range, unit)
    values = (policy.valid_values if policy is not None else None) or ()
    return next((value for value in values if asked.milli <= value.milli), asked)


def _stepped(asked: Quantity, least: Quantity, valid: ValidRange, unit: int) -> Quantity:
    if asked.milli < least.milli:
        return least
    if valid.step is None or not valid.step.milli:
        return asked
    first, step = _in_units(least, unit), _in_units(valid.step, unit)
    milli = (first + -(-(_in_units(asked, unit) - first) // step) * step) * unit
    return quantity(f"{milli}m" if milli % WHOLE else str(milli // WHOLE))


def _in_units(amount: Quantity, unit: int) -> int:
    """The amount in units of so many thousandths, rounded up."""
    return -(-amount.milli // unit)


def _is_allowed(amount: Quantity, policy: RequestPolicy | None, unit: int) -> bool:
    if policy is None or (policy.default is not None and amount.milli == policy.default.milli):
        return True
    if policy.valid_range is not None:
        return _is_within(amount, policy.valid_range, unit)
    return not policy.valid_values or any(amount.milli == value.milli for value in policy.valid_values)


def _is_within(amount: Quantity, valid: ValidRange, unit: int) -> bool:
    if valid.max is not None and amount.milli > valid.max.milli:
        return False
    if valid.step is None or not valid.step.milli or valid.min is None:
        return True
    return (_in_units(amount, unit) - _in_units(valid.min, unit)) % _in_units(valid.step, unit) == 0
