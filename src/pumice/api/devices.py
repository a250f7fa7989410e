"""Dynamic resource allocation: device classes, slices of devices, rules that taint them, and claims."""

from typing import Any

from msgspec import field

from pumice.api.meta import Int, Metadata, Wire
from pumice.api.pod import NodeSelector, ResourceList
from pumice.api.quantity import Quantity


class CelExpression(Wire, frozen=True):
    expression: str


class DeviceSelector(Wire, frozen=True):
    cel: CelExpression | None = None


class DeviceClassSpec(Wire, frozen=True):
    selectors: list[DeviceSelector] | None = None
    extended_resource_name: str | None = None
    config: list[dict[str, Any]] | None = None  #: read by drivers only; copied into each allocation


class DeviceClass(Wire, frozen=True):
    metadata: Metadata
    spec: DeviceClassSpec = DeviceClassSpec()


class Attribute(Wire, frozen=True):
    string: str | None = None
    int_: Int | None = field(name="int", default=None)
    bool_: bool | None = field(name="bool", default=None)
    version: str | None = None
    strings: list[str] | None = None
    ints: list[Int] | None = None
    bools: list[bool] | None = None
    versions: list[str] | None = None


class ValidRange(Wire, frozen=True):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class RequestPolicy(Wire, frozen=True):
    """How much of a capacity one request may take, and how much it takes if it states no amount."""

    default: Quantity | None = None
    valid_values: list[Quantity] | None = None
    valid_range: ValidRange | None = None


class DeviceCapacity(Wire, frozen=True):
    value: Quantity
    request_policy: RequestPolicy | None = None


class DeviceCounter(Wire, frozen=True):
    value: Quantity


class CounterSet(Wire, frozen=True):
    """The counters that the devices of a pool share."""

    name: str
    counters: dict[str, DeviceCounter] | None = None


class Consumption(Wire, frozen=True):
    """How much a device takes from a counter set while it is in use. With groups, all devices in use of a set have one in common."""

    counter_set: str
    counters: dict[str, DeviceCounter] | None = None
    compatibility_groups: list[str] | None = None


class DeviceTaint(Wire, frozen=True):
    key: str = ""
    value: str | None = None
    effect: str = ""


class DeviceToleration(Wire, frozen=True):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class NodeAllocatableMapping(Wire, frozen=True):
    """How much of a node's own resource one device is; or, with a key, each unit that is taken of its capacity."""

    capacity_key: str | None = None
    capacity_multiplier: Quantity | None = None
    device_multiplier: Quantity | None = None


class NodeAllocatableOverhead(Wire, frozen=True):
    """What each pod needs besides to use the device, and each of its containers that names the claim."""

    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAllocatableResource(Wire, frozen=True):
    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class Device(Wire, frozen=True):
    name: str
    attributes: dict[str, Attribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes_counters: list[Consumption] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: list[DeviceTaint] | None = None
    binds_to_node: bool | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    allow_multiple_allocations: bool | None = None
    node_allocatable_resources: dict[str, NodeAllocatableResource] | None = None  #: what it takes of the node's own resources


class ResourcePool(Wire, frozen=True):
    name: str = ""
    generation: Int = 0
    resource_slice_count: Int = 1


class ResourceSliceSpec(Wire, frozen=True):
    driver: str
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    all_nodes: bool | None = None
    node_selector: NodeSelector | None = None
    per_device_node_selection: bool | None = None  #: each device states which nodes can reach it
    devices: list[Device] | None = None
    shared_counters: list[CounterSet] | None = None
    skip_node_operations: list[str] | None = None  #: what kubelets leave out for its devices


class ResourceSlice(Wire, frozen=True):
    metadata: Metadata
    spec: ResourceSliceSpec


class TaintedDevices(Wire, frozen=True):
    """The devices that match every field that is set."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class TaintRuleSpec(Wire, frozen=True):
    device_selector: TaintedDevices | None = None  #: None: the rule taints no device
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(Wire, frozen=True):
    metadata: Metadata
    spec: TaintRuleSpec = TaintRuleSpec()


class CapacityRequests(Wire, frozen=True):
    requests: ResourceList | None = None


class DerivedAttribute(Wire, frozen=True):
    """An attribute that constraints may name, computed from each device by a CEL expression."""

    name: str
    expression: str


class DeviceCriteria(Wire, frozen=True, kw_only=True):
    """What all forms of a request say of the devices."""

    allocation_mode: str | None = None
    count: Int | None = None
    selectors: list[DeviceSelector] | None = None
    tolerations: list[DeviceToleration] | None = None
    capacity: CapacityRequests | None = None


class ExactRequest(DeviceCriteria, frozen=True):
    device_class_name: str
    admin_access: bool | None = None
    derived_attributes: list[DerivedAttribute] | None = None


class SubRequest(DeviceCriteria, frozen=True):
    """One of several alternatives for a request, of which the first that can be allocated is taken."""

    name: str
    device_class_name: str
    derived_attributes: list[DerivedAttribute] | None = None


class DeviceRequest(DeviceCriteria, frozen=True):
    name: str
    first_available: list[SubRequest] | None = None
    exactly: ExactRequest | None = None
    device_class_name: str | None = None
    admin_access: bool | None = None


class DeviceConstraint(Wire, frozen=True):
    """The devices of these requests (of all requests if none is named) share one value of an attribute, or all have different values."""

    requests: list[str] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceRequests(Wire, frozen=True):
    requests: list[DeviceRequest] | None = None
    constraints: list[DeviceConstraint] | None = None


class ResourceClaimSpec(Wire, frozen=True):
    devices: DeviceRequests = DeviceRequests()


class AllocatedDevice(Wire, frozen=True):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    share_id: str | None = field(name="shareID", default=None)  #: the id of one share, of a device that several claims share
    consumed_capacity: ResourceList | None = None
    skip_node_operations: list[str] | None = None


class AllocatedDevices(Wire, frozen=True):
    results: list[AllocatedDevice] | None = None


class AllocationResult(Wire, frozen=True):
    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None


class ResourceClaimConsumerReference(Wire, frozen=True):
    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(Wire, frozen=True):
    allocation: AllocationResult | None = None
    reserved_for: list[ResourceClaimConsumerReference] | None = None


class ResourceClaim(Wire, frozen=True):
    metadata: Metadata
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()
