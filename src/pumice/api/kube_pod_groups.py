"""Kubernetes' own groups of pods: PodGroup and CompositePodGroup of `scheduling.k8s.io`, with the fields that scheduling reads."""

from typing import Literal

from msgspec import field

from pumice.api.meta import Condition, Int, Metadata, Wire
from pumice.api.pod import PodResourceClaim, PodResourceClaimStatus, Present


class GangSchedulingPolicy(Wire, frozen=True):
    min_count: Int = 1


class PodGroupSchedulingPolicy(Wire, frozen=True):
    basic: Present | None = None
    gang: GangSchedulingPolicy | None = None


class CompositeGang(Wire, frozen=True):
    min_group_count: Int = 1


class CompositePolicy(Wire, frozen=True):
    basic: Present | None = None
    gang: CompositeGang | None = None


class TopologyConstraint(Wire, frozen=True):
    key: str = ""


class SchedulingConstraints(Wire, frozen=True):
    topology: list[TopologyConstraint] | None = None


class DisruptionMode(Wire, frozen=True):
    single: Present | None = None
    whole: Present | None = field(name="all", default=None)


class _Spec(Wire, frozen=True):
    """What both kinds have."""

    parent_composite_pod_group_name: str | None = None
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str | None = None
    priority: Int | None = None
    preemption_policy: Literal["Never", "PreemptLowerPriority"] | None = None


class NativeGroupSpec(_Spec, frozen=True):
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    resource_claims: list[PodResourceClaim] | None = None


class CompositeSpec(_Spec, frozen=True):
    scheduling_policy: CompositePolicy = CompositePolicy()


class NativeGroupStatus(Wire, frozen=True):
    conditions: list[Condition] | None = None
    resource_claim_statuses: list[PodResourceClaimStatus] | None = None


class NativePodGroup(Wire, frozen=True):
    metadata: Metadata
    spec: NativeGroupSpec = NativeGroupSpec()
    status: NativeGroupStatus = NativeGroupStatus()


class CompositePodGroup(Wire, frozen=True):
    metadata: Metadata
    spec: CompositeSpec = CompositeSpec()


SCHEDULED = "PodGroupInitiallyScheduled"  #: the type of the condition that the scheduler writes
