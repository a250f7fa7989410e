"""Constraints of a claim over the devices that its requests get: one value of an attribute in common, or none twice."""

from __future__ import annotations

from typing import Any

from pumice.api.devices import DeviceConstraint
from pumice.plugins.kube.device_pools import Offered
from pumice.plugins.kube.device_requests import Asked


class Constraint:
    """While devices are tried: those that were added and not taken back."""

    def __init__(self, claim: str, constraint: DeviceConstraint) -> None:
        self._claim = claim
        self._requests = constraint.requests
        self._common = constraint.match_attribute is not None
        self._attribute = constraint.match_attribute or constraint.distinct_attribute or ""
        self._values: list[Any] = []

    def add(self, asked: Asked, offered: Offered) -> bool:
        """Whether the device obeys; only then it is added."""
        if not self._concerns(asked):
            return True
        value = offered.attribute(self._attribute)
        if value is None:
            return False
        known = [_same(value, other) for other in self._values]
        if not (all(known) if self._common else not any(known)):
            return False
        self._values.append(value)
        return True

    def take_back(self, asked: Asked) -> None:
        """The device that was added last for a request."""
        if self._concerns(asked):
            self._values.pop()

    def _concerns(self, asked: Asked) -> bool:
        names = self._requests
        return asked.claim == self._claim and (not names or asked.name in names or asked.name.partition("/")[0] in names)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)
