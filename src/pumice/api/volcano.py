"""Volcano's kinds: Queue, PodGroup, HyperNode, Numatopology, NodeShard. kube-batch's Queue and PodGroup are read into them, too."""

from typing import Literal

from msgspec import field

from pumice.api.meta import Condition, Int, LabelSelector, Metadata, Wire
from pumice.api.pod import ResourceList


class Guarantee(Wire, frozen=True):
    resource: ResourceList | None = None


class GroupAffinity(Wire, frozen=True):
    required: list[str] | None = field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: list[str] | None = field(name="preferredDuringSchedulingIgnoredDuringExecution", default=None)


class QueueAffinity(Wire, frozen=True):
    node_group_affinity: GroupAffinity | None = None
    node_group_anti_affinity: GroupAffinity | None = None


class QueueSpec(Wire, frozen=True):
    weight: Int | None = None
    capability: ResourceList | None = None
    reclaimable: bool | None = None
    guarantee: Guarantee | None = None
    affinity: QueueAffinity | None = None
    parent: str | None = None
    deserved: ResourceList | None = None
    priority: Int | None = None


class QueueStatus(Wire, frozen=True):
    state: Literal["Open", "Closed", "Closing", "Unknown", ""] | None = None
    allocated: ResourceList | None = None


class Queue(Wire, frozen=True):
    metadata: Metadata
    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()


class NetworkTopology(Wire, frozen=True):
    mode: Literal["hard", "soft"] | None = None
    highest_tier_allowed: Int | None = None
    highest_tier_name: str | None = None


class SubGroupPolicy(Wire, frozen=True):
    name: str
    network_topology: NetworkTopology | None = None
    sub_group_size: Int | None = None
    min_sub_groups: Int | None = None
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None


class PodGroupSpec(Wire, frozen=True):
    min_member: Int | None = None
    min_task_member: dict[str, Int] | None = None
    queue: str | None = None
    priority_class_name: str | None = None
    min_resources: ResourceList | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: list[SubGroupPolicy] | None = None


class PodGroupStatus(Wire, frozen=True):
    phase: Literal["Pending", "Running", "Unknown", "Inqueue", "Completed", ""] | None = None
    conditions: list[Condition] | None = None
    running: Int | None = None
    succeeded: Int | None = None
    failed: Int | None = None


class PodGroup(Wire, frozen=True):
    metadata: Metadata
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class ExactMatch(Wire, frozen=True):
    name: str


class RegexMatch(Wire, frozen=True):
    pattern: str


class MemberSelector(Wire, frozen=True):
    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None


class HyperNodeMember(Wire, frozen=True):
    type: Literal["Node", "HyperNode"]
    selector: MemberSelector = MemberSelector()


class HyperNodeSpec(Wire, frozen=True):
    tier: Int = 0
    tier_name: str | None = None
    members: list[HyperNodeMember] | None = None


class HyperNode(Wire, frozen=True):
    metadata: Metadata
    spec: HyperNodeSpec = HyperNodeSpec()


class CpuInfo(Wire, frozen=True):
    numa: Int = 0
    socket: Int = 0
    core: Int = 0


class NumaResource(Wire, frozen=True):
    allocatable: str = ""
    capacity: Int = 0


class ContainerAllocation(Wire, frozen=True):
    name: str = ""
    allocations: dict[str, str] | None = None


class PodAllocation(Wire, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    container_allocations: list[ContainerAllocation] | None = None


class NumaSpec(Wire, frozen=True):
    policies: dict[str, str] | None = None
    res_reserved: dict[str, str | Int] | None = None
    numares: dict[str, NumaResource] | None = None
    cpu_detail: dict[str, CpuInfo] | None = None
    pod_allocations: list[PodAllocation] | None = None


class Numatopology(Wire, frozen=True):
    metadata: Metadata
    spec: NumaSpec = NumaSpec()


class ShardSpec(Wire, frozen=True):
    nodes_desired: list[str] | None = None


class ShardStatus(Wire, frozen=True):
    nodes_in_use: list[str] | None = None
    nodes_to_add: list[str] | None = None
    nodes_to_remove: list[str] | None = None


class NodeShard(Wire, frozen=True):
    """The nodes that one of several schedulers uses."""

    metadata: Metadata
    spec: ShardSpec = ShardSpec()
    status: ShardStatus = ShardStatus()
