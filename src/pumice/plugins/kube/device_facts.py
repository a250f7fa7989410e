"""What device selectors may look at: `device.driver`, `device.attributes["domain"].name`, `device.capacity["domain"].name` and whether
several may have the device. All of the scheduler's use of CEL is here.

Asking for an attribute that the device does not have is an error; a domain that nobody uses is merely empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from pumice.api.cel.evaluate import holds
from pumice.api.cel.syntax import CelError, Node, parse
from pumice.api.cel.values import version
from pumice.api.devices import Attribute, Device

Facts = Mapping[str, Any]


class Failed(Exception):
    """A claim that cannot be judged on a node: the pod's attempt ends with this text."""


class Selector(NamedTuple):
    whose: str  #: "class NAME" or "claim NAMESPACE/NAME"
    number: int
    expression: str

    def admits(self, facts: Facts) -> bool:
        """Raises Failed."""
        tree = _compiled(self.expression)
        if isinstance(tree, str):
            raise Failed(f"{self.whose}: selector #{self.number}: CEL compile error: {tree}")
        try:
            return satisfies(tree, facts)
        except CelError as error:
            raise Failed(f"{self.whose}: selector #{self.number}: CEL runtime error: {error}") from None


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> Node | str:
    """The expression as a tree, or why it is none."""
    try:
        return parse(expression)
    except CelError as error:
        return str(error)


class Domains(dict[str, dict[str, Any]]):
    """Names by domain. A domain that nobody uses is empty, not an error."""

    def __missing__(self, domain: str) -> dict[str, Any]:
        return {}


class DeviceFields(dict[str, Any]):
    """`device` itself."""

    def __missing__(self, name: str) -> Any:
        raise CelError(f"device.{name} is not known")


def facts_of(device: Device, driver: str) -> Facts:
    attributes = {name: _attribute(value) for name, value in (device.attributes or {}).items()}
    capacity = {name: each.value for name, each in (device.capacity or {}).items()}
    fields = {
        "driver": driver,
        "attributes": by_domain(attributes, driver),
        "capacity": by_domain(capacity, driver),
        "allowMultipleAllocations": bool(device.allow_multiple_allocations),
    }
    return {"device": DeviceFields(fields)}


def satisfies(tree: Node, facts: Facts) -> bool:
    """Raises CelError if the expression has no value, or none that is true or false."""
    return holds(tree, facts)


def _attribute(value: Attribute) -> Any:
    if value.version is not None:
        return version(value.version)
    return next((part for part in (value.string, value.int_, value.bool_) if part is not None), None)


def by_domain(values: Mapping[str, Any], driver: str) -> Domains:
    """A name without a domain is in the driver's."""
    found = Domains()
    for full, value in values.items():
        domain, slash, name = full.rpartition("/")
        found.setdefault(domain if slash else driver, {})[name] = value
    return found
