"""Dynamic resource allocation: device classes, slices of devices, claims and their templates."""

from __future__ import annotations

from typing import Any

from msgspec import field

from pumice.api.meta import Metadata, Wire
from pumice.api.pod import NodeSelector, ResourceList
from pumice.api.quantity import Quantity


class CelExpression(Wire, frozen=True):
    expression: str


class DeviceSelector(Wire, frozen=True):
    cel: CelExpression | None = None


class DeviceClassSpec(Wire, frozen=True):
    selectors: list[DeviceSelector] | None = None
    extended_resource_name: str | None = None
    config: list[dict[str, Any]] | None = None  #: for the drivers; handed on with an allocation


class DeviceClass(Wire, frozen=True):
    metadata: Metadata
    spec: DeviceClassSpec = DeviceClassSpec()


class Attribute(Wire, frozen=True):
    string: str | None = None
    int_: int | None = field(name="int", default=None)
    bool_: bool | None = field(name="bool", default=None)
    version: str | None = None


class Capacity(Wire, frozen=True):
    value: Quantity


class Device(Wire, frozen=True):
    name: str
    attributes: dict[str, Attribute] | None = None
    capacity: dict[str, Capacity] | None = None


class Pool(Wire, frozen=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class SliceSpec(Wire, frozen=True):
    driver: str
    pool: Pool = Pool()
    node_name: str | None = None
    all_nodes: bool | None = None
    node_selector: NodeSelector | None = None
    devices: list[Device] | None = None


class ResourceSlice(Wire, frozen=True):
    metadata: Metadata
    spec: SliceSpec


class CapacityRequests(Wire, frozen=True):
    requests: ResourceList | None = None


class ExactRequest(Wire, frozen=True):
    device_class_name: str
    allocation_mode: str | None = None
    count: int | None = None
    selectors: list[DeviceSelector] | None = None
    admin_access: bool | None = None
    capacity: CapacityRequests | None = None


class SubRequest(Wire, frozen=True):
    """One of several ways to satisfy a request, the first that can be had."""

    name: str
    device_class_name: str
    allocation_mode: str | None = None
    count: int | None = None
    selectors: list[DeviceSelector] | None = None
    capacity: CapacityRequests | None = None


class DeviceRequest(Wire, frozen=True):
    name: str
    first_available: list[SubRequest] | None = None
    exactly: ExactRequest | None = None
    device_class_name: str | None = None
    allocation_mode: str | None = None
    count: int | None = None
    selectors: list[DeviceSelector] | None = None


class DeviceConstraint(Wire, frozen=True):
    """Devices of these requests (all if none are named) have one value of an attribute in common, or none twice."""

    requests: list[str] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceRequests(Wire, frozen=True):
    requests: list[DeviceRequest] | None = None
    constraints: list[DeviceConstraint] | None = None


class ClaimSpec(Wire, frozen=True):
    devices: DeviceRequests = DeviceRequests()


class AllocatedDevice(Wire, frozen=True):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None


class AllocatedDevices(Wire, frozen=True):
    results: list[AllocatedDevice] | None = None


class Allocation(Wire, frozen=True):
    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None


class Consumer(Wire, frozen=True):
    resource: str = ""
    name: str = ""
    uid: str = ""


class ClaimStatus(Wire, frozen=True):
    allocation: Allocation | None = None
    reserved_for: list[Consumer] | None = None


class ResourceClaim(Wire, frozen=True):
    metadata: Metadata
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()
