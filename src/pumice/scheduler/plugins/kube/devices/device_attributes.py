"""What device selectors may read: `device.driver`, `device.attributes["domain"].name`, `device.capacity["domain"].name` and whether several
claims may share the device. All of the scheduler's use of CEL is here.

To read an attribute that the device does not have is an error; a domain without attributes is empty.
"""

from collections.abc import Mapping
from typing import Any

from pumice.api.cel.cost import CostBudget
from pumice.api.cel.errors import EvaluationError
from pumice.api.cel.library.quantities import amount, version
from pumice.api.cel.program import Program
from pumice.api.cel.values import kind_of
from pumice.api.device_expressions import SCALARS, derivation, selection
from pumice.api.devices import Attribute, Device
from pumice.scheduler.plugins.kube.devices.requests import CelSelector, Failed

Facts = Mapping[str, Any]
EACH_KIND = 100_000  #: the cost that one kind of request may have, so that no claim holds up a cycle for long
EACH_DEVICE = 200  #: the cost that each device adds to it
_IN_GO = {"int": "int64", "uint": "uint64", "double": "float64", "kubernetes.Semver": "semver.Version", "map": "map[ref.Val]ref.Val"}

HINT = ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields"


def admits(chosen: CelSelector, facts: Facts, budget: CostBudget, device: str = "") -> bool:
    """Whether the selector admits the device. Raises Failed; its text is that of 1.37 if the name of the device is given."""
    program = selection(chosen.expression)
    if isinstance(program, str):
        raise Failed(f"{chosen.name}: CEL compile error: {program}")
    try:
        return satisfies(program, facts, budget)
    except EvaluationError as error:
        where = f" on device {device}" if device else ""
        hint = HINT if device and "no such key:" in str(error) else ""
        raise Failed(f"{chosen.name}{where}: CEL runtime error: {error}{hint}") from None


def derived(name: str, expression: str, facts: Facts, budget: CostBudget, device: str) -> Any:
    """The value of an attribute that a request derives from a device. Raises Failed."""
    program = derivation(expression)
    if isinstance(program, str):
        raise Failed(f"compile derived attribute {name} failed: {program}")
    try:
        return _checked(program.value(_readable(facts), budget))
    except EvaluationError as error:
        raise Failed(f"evaluate derived attribute {name} on device {device} failed: {error}") from None


def _checked(value: Any) -> Any:
    """The value of an expression, if an attribute may have it. Raises EvaluationError, which names kinds as Go does."""
    several = isinstance(value, list)
    if several and not value:
        return value
    first, *others = map(kind_of, value if several else [value])
    if first not in {each.name for each in SCALARS}:
        raise EvaluationError(f"unsupported {'list element' if several else 'CEL return'} type: {_IN_GO.get(first, first)}")
    for index, other in enumerate(others, 1):
        if other != first:
            wanted = first.rpartition(".")[2].lower()
            raise EvaluationError(f"expected list element at index {index} to be {wanted}, got {_IN_GO.get(other, other)}")
    return value


def budget_for(devices: int) -> CostBudget:
    """The cost that one kind of request may have with this number of devices."""
    return CostBudget(EACH_KIND + EACH_DEVICE * devices)


class AttributeDomains(dict[str, dict[str, Any]]):
    """Attribute or capacity names by domain. An unknown domain is empty, not an error."""

    def __missing__(self, domain: str) -> dict[str, Any]:
        return {}


class DeviceFields(dict[str, Any]):
    """The variable `device`."""

    problem: str = ""  #: why its fields cannot be read; empty if they can


def facts_of(device: Device, driver: str, *, lists: bool = False) -> Facts:
    """What selectors and constraints read of a device. `lists`: attributes may be lists (gate DRAListTypeAttributes)."""
    fields = DeviceFields(driver=driver, attributes=AttributeDomains(), capacity=AttributeDomains())
    try:
        attributes = {name: _attribute(name, value, lists) for name, value in (device.attributes or {}).items()}
        capacity = {name: amount(each.value.text) for name, each in (device.capacity or {}).items()}
        fields |= {"attributes": by_domain(attributes, driver), "capacity": by_domain(capacity, driver)}
        fields["allowMultipleAllocations"] = bool(device.allow_multiple_allocations)
    except EvaluationError as error:
        fields.problem = str(error)
    return {"device": fields}


def satisfies(program: Program, facts: Facts, budget: CostBudget | None = None) -> bool:
    """Whether the expression is true of the device. Raises EvaluationError if it has no value, or none that is true or false."""
    return program.holds(_readable(facts), budget)


def _readable(facts: Facts) -> Facts:
    if facts["device"].problem:
        raise EvaluationError(facts["device"].problem)
    return facts


def _attribute(name: str, value: Attribute, lists: bool) -> Any:
    texts = [value.version] if value.version is not None else value.versions if lists else None
    if texts:
        try:
            versions = [version(text) for text in texts]
        except EvaluationError as error:
            raise EvaluationError(f"attribute {name}: parse semantic version: {error}") from None
        return versions if value.version is None else versions[0]
    several = (value.ints, value.bools, value.strings) if lists else ()
    found = next((part for part in (value.string, value.int_, value.bool_, *several) if part is not None), None)
    if found is None:
        raise EvaluationError(f"attribute {name}: unsupported attribute value")
    return found


def by_domain(values: Mapping[str, Any], driver: str) -> AttributeDomains:
    """The values by domain and name. A name without a domain belongs to the driver's domain."""
    found = AttributeDomains()
    for full, value in values.items():
        domain, slash, name = full.rpartition("/")
        found.setdefault(domain if slash else driver, {})[name] = value
    return found
