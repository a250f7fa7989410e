"""How much of its capacities a device gives to a request, as its request policies say.

A request that says nothing gets the policy's default, or else all there is. What it says is rounded up to what the policy allows.
"""

from __future__ import annotations

from collections.abc import Mapping

from pumice.api.devices import Capacity, Device, RequestPolicy, ValidRange
from pumice.api.quantity import Quantity, quantity

Amounts = dict[str, Quantity]


def consumption(asked: Mapping[str, Quantity], device: Device) -> Amounts | None:
    """What the request takes of each capacity of the device; None if it asks for what the device does not have, or may not give."""
    has = device.capacity or {}
    if not has and not asked:
        return {}
    if not asked.keys() <= has.keys():
        return None
    amounts = {name: _amount(asked.get(name), capacity) for name, capacity in has.items()}
    fine = all(amount.milli <= has[name].value.milli and _is_allowed(amount, has[name].request_policy) for name, amount in amounts.items())
    return amounts if fine else None


def _amount(asked: Quantity | None, capacity: Capacity) -> Quantity:
    policy = capacity.request_policy
    if asked is None:
        return policy.default if policy is not None and policy.default is not None else capacity.value
    if policy is not None and policy.valid_range is not None and policy.valid_range.min is not None:
        return _stepped(asked, policy.valid_range.min, policy.valid_range)
    values = (policy.valid_values if policy is not None else None) or ()
    return next((value for value in values if asked.milli <= value.milli), asked)


def _stepped(asked: Quantity, least: Quantity, valid: ValidRange) -> Quantity:
    if asked.milli < least.milli:
        return least
    if valid.step is None or not valid.step.whole:
        return asked
    steps = -(-(asked.whole - least.whole) // valid.step.whole)
    return quantity(str(least.whole + steps * valid.step.whole))


def _is_allowed(amount: Quantity, policy: RequestPolicy | None) -> bool:
    if policy is None or (policy.default is not None and amount.milli == policy.default.milli):
        return True
    if policy.valid_range is not None:
        return _is_within(amount, policy.valid_range)
    return not policy.valid_values or any(amount.milli == value.milli for value in policy.valid_values)


def _is_within(amount: Quantity, valid: ValidRange) -> bool:
    if valid.max is not None and amount.milli > valid.max.milli:
        return False
    if valid.step is None or not valid.step.whole or valid.min is None:
        return True
    return (amount.whole - valid.min.whole) % valid.step.whole == 0
