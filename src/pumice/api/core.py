"""The other built-in kinds that scheduling reads: nodes, classes, quotas, budgets, workloads."""

from typing import Any, Literal

from pumice.api.meta import Condition, Int, LabelSelector, Metadata, Wire
from pumice.api.pod import ResourceList, Toleration


class Taint(Wire, frozen=True):
    key: str
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class PodPreemptionPolicy(Wire, frozen=True):
    disable_resize_preemption: list[str] | None = None  #: if there are any, no pod is evicted so that another may grow


class NodeSpec(Wire, frozen=True):
    unschedulable: bool | None = None
    taints: list[Taint] | None = None
    pod_preemption_policy: PodPreemptionPolicy | None = None


class NodeImage(Wire, frozen=True):
    names: list[str] | None = None
    size_bytes: Int | None = None


class NodeStatus(Wire, frozen=True):
    allocatable: ResourceList | None = None
    capacity: ResourceList | None = None
    images: list[NodeImage] | None = None
    declared_features: list[str] | None = None
    conditions: list[Condition] | None = None


class Node(Wire, frozen=True):
    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(Wire, frozen=True):
    metadata: Metadata


class PriorityClass(Wire, frozen=True):
    metadata: Metadata
    value: Int
    global_default: bool | None = None
    preemption_policy: Literal["Never", "PreemptLowerPriority"] | None = None


class RuntimeOverhead(Wire, frozen=True):
    pod_fixed: ResourceList | None = None


class RuntimeScheduling(Wire, frozen=True):
    node_selector: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None


class RuntimeClass(Wire, frozen=True):
    metadata: Metadata
    overhead: RuntimeOverhead = RuntimeOverhead()
    scheduling: RuntimeScheduling = RuntimeScheduling()


class LimitRangeItem(Wire, frozen=True):
    type: str = ""
    min: ResourceList | None = None
    max: ResourceList | None = None
    default: ResourceList | None = None
    default_request: ResourceList | None = None


class LimitRangeSpec(Wire, frozen=True):
    limits: list[LimitRangeItem] | None = None


class LimitRange(Wire, frozen=True):
    metadata: Metadata
    spec: LimitRangeSpec = LimitRangeSpec()


class ResourceQuotaSpec(Wire, frozen=True):
    hard: ResourceList | None = None
    scopes: list[str] | None = None
    scope_selector: dict[str, Any] | None = None


class ResourceQuotaStatus(Wire, frozen=True):
    hard: ResourceList | None = None
    used: ResourceList | None = None


class ResourceQuota(Wire, frozen=True):
    metadata: Metadata
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class PodDisruptionBudgetSpec(Wire, frozen=True):
    selector: LabelSelector | None = None
    min_available: Int | str | None = None
    max_unavailable: Int | str | None = None


class PodDisruptionBudgetStatus(Wire, frozen=True):
    disruptions_allowed: Int = 0
    disrupted_pods: dict[str, str] | None = None


class PodDisruptionBudget(Wire, frozen=True):
    metadata: Metadata
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class ServiceSpec(Wire, frozen=True):
    selector: dict[str, str] | None = None


class Service(Wire, frozen=True):
    metadata: Metadata
    spec: ServiceSpec = ServiceSpec()


class ReplicationController(Wire, frozen=True):
    metadata: Metadata
    spec: ServiceSpec = ServiceSpec()


class WorkloadSpec(Wire, frozen=True):
    selector: LabelSelector | None = None
    replicas: Int | None = None


class PodOwner(Wire, frozen=True):
    """A ReplicaSet or StatefulSet, of which only the pod selector and the replicas are read."""

    metadata: Metadata
    spec: WorkloadSpec = WorkloadSpec()


class ConfigMap(Wire, frozen=True):
    metadata: Metadata
    data: dict[str, str] | None = None


class ObjectReference(Wire, frozen=True):
    kind: str = ""
    name: str = ""
    namespace: str | None = None
    uid: str | None = None


FORECAST = "Forecast"  #: the reason of events that say how a forecast turned out
FAILED_CREATE = "FailedCreate"  #: the reason of events of controllers whose pods were refused


class Event(Wire, frozen=True):
    metadata: Metadata
    involved_object: ObjectReference = ObjectReference()
    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None
