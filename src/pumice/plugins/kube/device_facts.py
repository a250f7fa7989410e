"""What device selectors may look at: `device.driver`, `device.attributes["domain"].name` and `device.capacity["domain"].name`.

Asking for an attribute that the device does not have is an error; a domain that nobody uses is merely empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pumice.api.cel.evaluate import holds
from pumice.api.cel.syntax import CelError, Node
from pumice.api.cel.values import version
from pumice.api.devices import Attribute, Device

Facts = Mapping[str, Any]


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
    fields = {"driver": driver, "attributes": by_domain(attributes, driver), "capacity": by_domain(capacity, driver)}
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
