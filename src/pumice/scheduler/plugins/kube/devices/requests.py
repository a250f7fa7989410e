"""What device claims request, read from their specs and classes; and the taints of devices, with the claims' tolerations.

A request may list alternatives, of which the first that can be satisfied is taken. Selectors are kept as text; `facts.py` evaluates them
and is loaded only where there are devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from pumice.api.devices import (
    Device,
    DeviceCapacity,
    DeviceConstraint,
    DeviceRequest,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    ExactRequest,
    RequestPolicy,
    ResourceClaim,
    SubRequest,
    ValidRange,
)
from pumice.api.quantity import Quantity, quantity
from pumice.scheduler.engine.rules import Reason

ALL = 0  #: as a count: every suitable device


class RequestedDevices(Struct, frozen=True):
    """A request, or one of its alternatives, for devices of one kind."""

    claim: str  #: "namespace/name"
    name: str  #: the request's name, or "request/alternative"
    number: int
    kind: tuple[str, ...]  #: the class and the selectors: what decides which devices are suitable
    selectors: tuple[Selector, ...]  #: of the class and of the request
    capacity: Mapping[str, Quantity]  #: the requested amount of each capacity
    tolerations: tuple[DeviceToleration, ...] = ()
    watches: bool = False  #: administrative access, also to devices in use, without using them
    alternative: int | None = None  #: the number of this alternative, from 0; None if the request has no alternatives

    @property
    def key(self) -> tuple[str, str]:
        return self.claim, self.name

    @property
    def short(self) -> str:
        """The name of the alternative, without the name of its request."""
        return self.name.rpartition("/")[2]


class ClaimedDevices(Struct, frozen=True):
    """All requests of a pod's claims. Each request is a tuple of its alternatives; each constraint comes with the key of its claim."""

    requests: tuple[tuple[RequestedDevices, ...], ...]
    constraints: tuple[tuple[str, DeviceConstraint], ...]

    @property
    def offers_alternatives(self) -> bool:
        return any(ways[0].alternative is not None for ways in self.requests)


class Unclear(Exception):
    """A claim that cannot be evaluated, such as one whose device class does not exist."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.reason = Reason(text, final=True)


def wanted_by(claims: Mapping[str, ResourceClaim], classes: Mapping[str, Any]) -> ClaimedDevices:
    """The requests of all claims together. Raises Unclear."""
    requests, constraints = [], []
    for key, claim in claims.items():
        for request in claim.spec.devices.requests or ():
            ways: Sequence[DeviceRequest | ExactRequest | SubRequest] = request.first_available or (request.exactly or request,)
            requests.append(tuple(_asked(key, request, number, way, classes) for number, way in enumerate(ways)))
        for constraint in claim.spec.devices.constraints or ():
            if not (constraint.match_attribute or constraint.distinct_attribute):
                raise Unclear(f"claim {key}: a constraint that is neither of matchAttribute nor of distinctAttribute")
            constraints.append((key, constraint))
    return ClaimedDevices(tuple(requests), tuple(constraints))


def _asked(
    claim: str, request: DeviceRequest, number: int, way: DeviceRequest | ExactRequest | SubRequest, classes: Mapping[str, Any]
) -> RequestedDevices:
    is_one_of_several = isinstance(way, SubRequest)
    name = f"{request.name}/{way.name}" if isinstance(way, SubRequest) else request.name
    device_class = way.device_class_name or ""
    if device_class not in classes:
        raise Unclear(f"request {name}: device class {device_class} does not exist")
    selectors = [
        Selector(whose, index, selector.cel.expression)
        for whose, given in ((f"class {device_class}", classes[device_class].spec.selectors), (f"claim {claim}", way.selectors))
        for index, selector in enumerate(given or ())
        if selector.cel is not None
    ]
    return RequestedDevices(
        claim,
        name,
        ALL if way.allocation_mode == "All" else way.count or 1,
        (device_class, *(selector.expression for selector in selectors)),
        tuple(selectors),
        (way.capacity.requests if way.capacity is not None else None) or {},
        tuple(way.tolerations or ()),
        watches=not isinstance(way, SubRequest) and bool(way.admin_access),
        alternative=number if is_one_of_several else None,
    )


# How much of its capacities a device gives to a request, by its request policies.
#
# A request that names no amount gets the policy's default, or else the whole capacity. An amount is rounded up to what the policy allows.

WHOLE = 1000  #: milli-units
Amounts = dict[str, Quantity]


def consumption(asked: Mapping[str, Quantity], device: Device) -> Amounts | None:
    """What the request takes of each capacity of the device; None if the device has less, or if its policy does not allow the amount."""
    has = device.capacity or {}
    if not has and not asked:
        return {}
    if not asked.keys() <= has.keys():
        return None
    amounts = {name: _amount(asked.get(name), capacity) for name, capacity in has.items()}
    fine = all(amount.milli <= has[name].value.milli and _is_allowed(amount, has[name].request_policy) for name, amount in amounts.items())
    return amounts if fine else None


def _amount(asked: Quantity | None, capacity: DeviceCapacity) -> Quantity:
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
    if valid.step is None or not valid.step.milli:
        return asked
    unit = _unit(valid)
    first, step = _in_units(least, unit), _in_units(valid.step, unit)
    milli = (first + -(-(_in_units(asked, unit) - first) // step) * step) * unit
    return quantity(f"{milli}m" if milli % WHOLE else str(milli // WHOLE))


def _unit(valid: ValidRange) -> int:
    """What amounts of a range are counted in, in milli-units: whole units, or thousandths if the range has a fraction."""
    return 1 if any(each.milli % WHOLE for each in (valid.min, valid.max, valid.step) if each is not None) else WHOLE


def _in_units(amount: Quantity, unit: int) -> int:
    """The amount in such units, rounded up."""
    return -(-amount.milli // unit)


def _is_allowed(amount: Quantity, policy: RequestPolicy | None) -> bool:
    if policy is None or (policy.default is not None and amount.milli == policy.default.milli):
        return True
    if policy.valid_range is not None:
        return _is_within(amount, policy.valid_range)
    return not policy.valid_values or any(amount.milli == value.milli for value in policy.valid_values)


def _is_within(amount: Quantity, valid: ValidRange) -> bool:
    if valid.max is not None and amount.milli > valid.max.milli:
        return False
    if valid.step is None or not valid.step.milli or valid.min is None:
        return True
    unit = _unit(valid)
    return (_in_units(amount, unit) - _in_units(valid.min, unit)) % _in_units(valid.step, unit) == 0


class Failed(Exception):
    """A claim that cannot be evaluated on a node: the pod's scheduling attempt ends with this text."""


class Selector(Struct, frozen=True):
    whose: str  #: "class NAME" or "claim NAMESPACE/NAME"
    number: int
    expression: str

    @property
    def name(self) -> str:
        return f"{self.whose}: selector #{self.number}"


# Taints of devices, which claims must tolerate. Slices publish them, and DeviceTaintRules of administrators add to them.

HARD = ("NoSchedule", "NoExecute")  #: the effects that keep a device from being allocated; others only inform people


def taints_by_rules(rules: Iterable[DeviceTaintRule], driver: str, pool: str, device: str) -> list[DeviceTaint]:
    found = []
    for rule in rules:
        means = rule.spec.device_selector
        if means is not None and all(
            wanted in (None, is_) for wanted, is_ in ((means.driver, driver), (means.pool, pool), (means.device, device))
        ):
            found.append(rule.spec.taint)
    return found


def prevented(taints: Iterable[DeviceTaint], tolerations: Sequence[DeviceToleration]) -> bool:
    """Whether the taints keep a request with these tolerations from getting the device."""
    return any(taint.effect in HARD and not any(tolerates(each, taint) for each in tolerations) for taint in taints)


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in (None, "", "Equal") and (toleration.value or "") == (taint.value or "")
