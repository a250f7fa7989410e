"""What device claims ask for: read from their specs and classes, with the selectors parsed.

A request may list alternatives, of which the first that can be had is taken. What we cannot judge (a selector beyond our CEL, an
attribute that must differ) is said by name, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pumice.api.cel.syntax import CelError, Node, parse
from pumice.api.devices import DeviceConstraint, DeviceRequest, ExactRequest, ResourceClaim, SubRequest
from pumice.api.quantity import Quantity
from pumice.engine.rules import Reason

ALL = 0  #: as a count: every device that suits


class Asked(NamedTuple):
    """Some devices of one kind."""

    claim: str  #: "namespace/name"
    name: str  #: of the request, or "request/alternative"
    number: int
    kind: tuple[str, ...]  #: what tells apart which devices suit: class, selectors and capacity as written
    selectors: tuple[Node, ...]  #: of the class and of the request
    capacity: Mapping[str, Quantity]  #: at least so much of each
    watches: bool = False  #: administrative access: to devices in use as well, without using them up


class Wanted(NamedTuple):
    """All that a pod's claims ask for. Per request its alternatives; constraints with the claim that they are of."""

    requests: tuple[tuple[Asked, ...], ...]
    constraints: tuple[tuple[str, DeviceConstraint], ...]


class Unclear(Exception):
    """A claim that cannot be judged."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.reason = Reason(text, final=True)


def wanted_by(claims: Mapping[str, ResourceClaim], classes: Mapping[str, Any]) -> Wanted:
    """Raises Unclear."""
    requests, constraints = [], []
    for key, claim in claims.items():
        for request in claim.spec.devices.requests or ():
            ways: Sequence[DeviceRequest | ExactRequest | SubRequest] = request.first_available or (request.exactly or request,)
            requests.append(tuple(_asked(key, request, way, classes) for way in ways))
        for constraint in claim.spec.devices.constraints or ():
            if constraint.match_attribute is None:
                raise Unclear(f"claim {claim.metadata.name}: constraints other than matchAttribute are not supported")
            constraints.append((key, constraint))
    return Wanted(tuple(requests), tuple(constraints))


def _asked(claim: str, request: DeviceRequest, way: DeviceRequest | ExactRequest | SubRequest, classes: Mapping[str, Any]) -> Asked:
    name = f"{request.name}/{way.name}" if isinstance(way, SubRequest) else request.name
    device_class = way.device_class_name or ""
    if device_class not in classes:
        raise Unclear(f"request {name}: device class {device_class} does not exist")
    selectors = (*(classes[device_class].spec.selectors or ()), *(way.selectors or ()))
    expressions = [selector.cel.expression for selector in selectors if selector.cel is not None]
    capacity = {} if isinstance(way, DeviceRequest) or way.capacity is None else way.capacity.requests or {}
    return Asked(
        claim,
        name,
        ALL if way.allocation_mode == "All" else way.count or 1,
        (device_class, *expressions, *(f"{dimension}={amount.text}" for dimension, amount in sorted(capacity.items()))),
        tuple(_parsed(name, expression) for expression in expressions),
        capacity,
        watches=isinstance(way, ExactRequest) and bool(way.admin_access),
    )


def _parsed(name: str, expression: str) -> Node:
    try:
        return parse(expression)
    except CelError as error:
        raise Unclear(f"request {name}: selector {expression!r}: {error}") from None
