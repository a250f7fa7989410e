"""Pods: the fields that scheduling reads."""

from typing import Literal

from msgspec import field

from pumice.api.meta import Condition, Int, LabelSelector, LabelSelectorRequirement, Metadata, Wire
from pumice.api.quantity import Quantity

ResourceList = dict[str, Quantity]


class ClaimRef(Wire, frozen=True):
    name: str
    request: str | None = None


class ResourceRequirements(Wire, frozen=True):
    requests: ResourceList | None = None
    limits: ResourceList | None = None
    claims: list[ClaimRef] | None = None


class ContainerPort(Wire, frozen=True):
    container_port: Int | None = None
    host_port: Int | None = None
    host_ip: str | None = field(name="hostIP", default=None)
    protocol: str | None = None


class RestartRule(Wire, frozen=True):
    action: str = ""


class Container(Wire, frozen=True):
    name: str = ""
    image: str | None = None
    resources: ResourceRequirements | None = None
    ports: list[ContainerPort] | None = None
    restart_policy: str | None = None  #: "Always" makes an init container a sidecar
    restart_policy_rules: list[RestartRule] | None = None


class NodeSelectorTerm(Wire, frozen=True):
    match_expressions: list[LabelSelectorRequirement] | None = None
    match_fields: list[LabelSelectorRequirement] | None = None


class NodeSelector(Wire, frozen=True):
    node_selector_terms: list[NodeSelectorTerm] | None = None


class PreferredSchedulingTerm(Wire, frozen=True):
    weight: Int
    preference: NodeSelectorTerm


class NodeAffinity(Wire, frozen=True):
    required: NodeSelector | None = field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: list[PreferredSchedulingTerm] | None = field(name="preferredDuringSchedulingIgnoredDuringExecution", default=None)


class PodAffinityTerm(Wire, frozen=True):
    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class WeightedPodAffinityTerm(Wire, frozen=True):
    weight: Int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Wire, frozen=True):
    required: list[PodAffinityTerm] | None = field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: list[WeightedPodAffinityTerm] | None = field(name="preferredDuringSchedulingIgnoredDuringExecution", default=None)


class Affinity(Wire, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Wire, frozen=True):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class TopologySpreadConstraint(Wire, frozen=True):
    max_skew: Int
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: LabelSelector | None = None
    min_domains: Int | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] | None = None
    node_taints_policy: Literal["Honor", "Ignore"] | None = None
    match_label_keys: list[str] | None = None


class ClaimSource(Wire, frozen=True):
    claim_name: str
    read_only: bool | None = None


class Disk(Wire, frozen=True):
    """The fields that identify a volume of the in-tree kinds; each kind uses some of them."""

    pd_name: str | None = None
    volume_id: str | None = field(name="volumeID", default=None)
    disk_uri: str | None = field(name="diskURI", default=None)
    target_portal: str | None = None
    iqn: str | None = None
    monitors: list[str] | None = None
    pool: str | None = None
    image: str | None = None
    read_only: bool | None = None


class Named(Wire, frozen=True):
    name: str = ""


class ImageVolume(Wire, frozen=True):
    reference: str = ""


class Present(Wire, frozen=True):
    """An object of which no field is read: only its presence matters."""


class Volume(Wire, frozen=True):
    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Present | None = None  #: a controller creates its claim, so only its presence matters
    gce_persistent_disk: Disk | None = None
    aws_elastic_block_store: Disk | None = None
    azure_disk: Disk | None = None
    cinder: Disk | None = None
    portworx_volume: Disk | None = None
    iscsi: Disk | None = None
    rbd: Disk | None = None
    image: ImageVolume | None = None


class PodResourceClaim(Wire, frozen=True):
    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(Wire, frozen=True):
    pod_group_name: str | None = None


class PodSpec(Wire, frozen=True):
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: ResourceList | None = None
    resources: ResourceRequirements | None = None
    node_name: str | None = None
    host_network: bool | None = None
    host_users: bool | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    volumes: list[Volume] | None = None
    scheduler_name: str | None = None
    priority: Int | None = None
    priority_class_name: str | None = None
    runtime_class_name: str | None = None
    active_deadline_seconds: Int | None = None
    preemption_policy: Literal["Never", "PreemptLowerPriority"] | None = None
    scheduling_gates: list[Named] | None = None
    resource_claims: list[PodResourceClaim] | None = None
    scheduling_group: SchedulingGroup | None = None


class ContainerStatus(Wire, frozen=True):
    name: str = ""
    allocated_resources: ResourceList | None = None
    resources: ResourceRequirements | None = None


class PodResourceClaimStatus(Wire, frozen=True):
    name: str
    resource_claim_name: str | None = None


class MappedAmount(Wire, frozen=True):
    name: str
    quantity: Quantity | None = None


class OverheadAmount(Wire, frozen=True):
    name: str
    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class ClaimCharge(Wire, frozen=True):
    """What the devices of a claim take of the node's own resources. `containers`: those of the pod that name the claim."""

    resource_claim_name: str
    containers: list[str] | None = None
    mapping: list[MappedAmount] | None = None
    overhead: list[OverheadAmount] | None = None


class PodStatus(Wire, frozen=True):
    phase: Literal["Pending", "Running", "Succeeded", "Failed", "Unknown", ""] | None = None
    conditions: list[Condition] | None = None
    nominated_node_name: str | None = None
    start_time: str | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    allocated_resources: ResourceList | None = None  #: of the pod as a whole, as are these
    resources: ResourceRequirements | None = None
    resize: str | None = None
    resource_claim_statuses: list[PodResourceClaimStatus] | None = None
    charges: list[ClaimCharge] | None = field(name="nodeAllocatableResourceClaimStatuses", default=None)


class Pod(Wire, frozen=True):
    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
