"""What device claims request, read from their specs and classes; and the taints of devices, with the claims' tolerations.

A request may list alternatives, of which the first that can be satisfied is taken. Selectors are kept as text; `device_attributes.py`
evaluates them and is loaded only where there are devices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from pumice.api.devices import DeviceConstraint, DeviceRequest, DeviceToleration, ExactRequest, ResourceClaim, SubRequest
from pumice.api.quantity import Quantity
from pumice.scheduler.engine import Reason

ALL = 0  #: as a count: every suitable device


class RequestedDevices(Struct, frozen=True):
    claim: str  #: "namespace/name"
    name: str  #: the request's name, or "request/alternative"
    number: int
    kind: tuple[str, ...]  #: the class and the selectors: what decides which devices are suitable
    selectors: tuple[CelSelector, ...]  #: of the class and of the request
    capacity: Mapping[str, Quantity]  #: the requested amount of each capacity
    tolerations: tuple[DeviceToleration, ...] = ()
    watches: bool = False  #: administrative access, also to devices in use, without using them
    derived: Mapping[str, str] = {}  #: expressions by the names of the attributes that they compute
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
        CelSelector(whose, index, selector.cel.expression)
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
        derived={} if isinstance(way, DeviceRequest) else {each.name: each.expression for each in way.derived_attributes or ()},
        alternative=number if is_one_of_several else None,
    )


class Failed(Exception):
    """A claim that cannot be evaluated on a node: the pod's scheduling attempt ends with this text."""


class CelSelector(Struct, frozen=True):
    whose: str  #: "class NAME" or "claim NAMESPACE/NAME"
    number: int
    expression: str

    @property
    def name(self) -> str:
        return f"{self.whose}: selector #{self.number}"
