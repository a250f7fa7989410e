"""The task: one pod, in the model of the scheduler."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import structs

from pumice.api import rfc3339
from pumice.api.annotations import PREEMPTABLE, QUEUE_GATE, REVOCABLE_ZONE, TASK_PRIORITY, TASK_SPEC
from pumice.api.integers import integer
from pumice.api.meta import Metadata, OwnerReference
from pumice.api.pod import ClaimCharge, Pod, PodStatus, SchedulingGroup
from pumice.api.times import instant_or
from pumice.scheduler.model import status
from pumice.scheduler.model.rare_attributes import NOTHING, Seldom, unusual
from pumice.scheduler.model.resources import one_text
from pumice.scheduler.model.shared_templates import Pairs
from pumice.scheduler.model.template import Template

if TYPE_CHECKING:
    from pumice.scheduler.model.job import Job


SPREADING_KINDS = ("ReplicationController", "ReplicaSet", "StatefulSet")
OF_TASKS = frozenset([TASK_SPEC, TASK_PRIORITY, PREEMPTABLE])  #: labels and annotations that few pods have
TRUE_WORDS = frozenset(["1", "t", "T", "true", "TRUE", "True"])


class Task:
    """Identity, state and place of a pod. What the pod shares with equal pods is in `template`."""

    __slots__ = (
        "annotations",
        "created",
        "evicted",
        "job",
        "key",
        "labels",
        "node",
        "node_name",
        "number",
        "owner",
        "placed_at",
        "preemptable",
        "priority",
        "role",
        "seldom",
        "started",
        "status",
        "template",
        "uid",
    )

    group = Seldom("")  #: "namespace/name" of its native PodGroup; empty for none
    nominated = Seldom("")  #: the node where room is made for it
    deleting = Seldom(False)
    disrupted = Seldom(False)  #: being deleted because of a preemption
    resize_deferred = Seldom(False)  #: its kubelet has put off a resize in place
    ended = Seldom[float | None](None)  #: when a pod that has finished ceased to be ready
    claims = Seldom[tuple[tuple[str, str], ...]](())
    charges = Seldom[tuple[ClaimCharge, ...]](())  #: what the devices of its claims take where we have placed it
    bare = Seldom[Template | None](None)  #: its template without these

    def __init__(self, key: str, pod: Pod, template: Template, labels: Pairs, annotations: Pairs, number: int) -> None:
        meta = pod.metadata
        self.seldom = NOTHING
        self.key = key  #: "namespace/name"
        self.uid = meta.identity
        self.template = template
        self.labels = labels
        self.annotations = annotations
        self.number = number  #: order of arrival
        self.job: Job | None = None
        self.created = meta.created
        self.owner = owner_of(pod) if meta.owner_references else ""  #: kind and name of the pod's controller; empty for none
        self.role, self.preemptable = "", True
        self.priority = 1 if pod.spec.priority is None else pod.spec.priority
        if not (OF_TASKS.isdisjoint(annotations.places) and OF_TASKS.isdisjoint(labels.places)):
            self.role = annotations.get(TASK_SPEC) or labels.get(TASK_SPEC) or ""
            self.priority = _overridden(self.priority, annotations)
            self.preemptable = flag(annotations, labels, PREEMPTABLE, default=True)
        self.status = status.PENDING
        self.evicted = False  #: evicted by the present session: still on its node, but hidden from filters
        self.node = -1  #: row in the node table, -1 if the task has no node or its node is unknown
        self.node_name = sys.intern(pod.spec.node_name or "")
        self.read_state(pod)

    def read_state(self, pod: Pod) -> None:
        """Read what may change in a pod while its template stays the same. The status is set by the cluster."""
        state = pod.status
        self.started = instant_or(state.start_time, None) if state.start_time else None
        self.placed_at: float | None = None  #: when PodScheduled became true
        self.seldom = NOTHING
        if not (state.conditions or state.nominated_node_name or pod.spec.scheduling_group or pod.spec.resource_claims):
            if pod.metadata.deletion_timestamp:
                self.deleting = True
            return
        disrupted, resize_deferred, ended = False, False, None
        for condition in state.conditions or ():
            if condition.type == "DisruptionTarget":
                disrupted = condition.status == "True" and condition.reason == "PreemptionByScheduler"
            elif condition.type == "PodResizePending":
                resize_deferred = condition.reason == "Deferred"
            elif condition.type == "PodScheduled" and condition.status == "True":
                self.placed_at = instant_or(condition.last_transition_time, None)
            elif condition.type == "Ready" and condition.status == "False" and state.phase in ("Succeeded", "Failed"):
                ended = instant_or(condition.last_transition_time, None)
        self.seldom = unusual(
            Task,
            group=group_of(pod),
            nominated=state.nominated_node_name or "",
            deleting=bool(pod.metadata.deletion_timestamp),
            disrupted=disrupted,
            resize_deferred=resize_deferred,
            ended=ended,
            claims=device_claims(pod),
        )

    def __repr__(self) -> str:
        return f"<Task {self.key} {status.NAMES[self.status]}>"

    @property
    def namespace(self) -> str:
        return self.template.namespace

    @property
    def controller(self) -> str:
        """The same as `owner`, if that kind's pods are spread; else empty."""
        return self.owner if self.owner.partition("/")[0] in SPREADING_KINDS else ""

    @property
    def name(self) -> str:
        return self.key[len(self.template.namespace) + 1 :]

    @property
    def index(self) -> int:
        """The number of the pod among the pods of its role: the last part of a name of three or more parts; -1 if that is no number."""
        before, _, last = self.key[len(self.template.namespace) + 1 :].rpartition("-")
        return int(last) if last.isdigit() and last.isascii() and "-" in before else -1

    @property
    def zone(self) -> str:
        return revocable_zone(self.annotations)

    @property
    def pod_priority(self) -> int:
        """The pod's priority as kube-scheduler counts it: 0 if it has none."""
        return self.template.priority_value or 0

    @property
    def best_effort(self) -> bool:
        return self.template.best_effort

    @property
    def gated(self) -> bool:
        return bool(self.template.gates)

    @property
    def at_queue_gate(self) -> bool:
        """Whether the queue's scheduling gate is the pod's only gate, and the pod has asked for that gate in its annotations."""
        return self.template.gates == (QUEUE_GATE,) and QUEUE_GATE in self.annotations


def key_of(pod: Pod) -> str:
    """The key of a pod, "namespace/name"."""
    return f"{pod.metadata.namespace or 'default'}/{pod.metadata.name}"


def group_of(pod: Pod) -> str:
    """The key of the pod's native PodGroup, whether that exists or not; empty if the pod names none."""
    named = pod.spec.scheduling_group
    return one_text(f"{pod.metadata.namespace or 'default'}/{named.pod_group_name}") if named and named.pod_group_name else ""


def device_claims(pod: Pod) -> tuple[tuple[str, str], ...]:
    """For each device claim of the pod, its name in the pod and the name of the ResourceClaim, which is "" if that is not made yet.
    Claims that turned out not to be needed are left out."""
    if not pod.spec.resource_claims:
        return ()
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses or ()}
    named = ((ref.name, ref.resource_claim_name or made.get(ref.name, "")) for ref in pod.spec.resource_claims)
    return tuple((ref, name) for ref, name in named if name is not None)


def flag(annotations: Mapping[str, str], labels: Mapping[str, str], key: str, *, default: bool) -> bool:
    """The value of a boolean annotation, else of a label; a text that is not a boolean is false."""
    text = annotations.get(key, labels.get(key))
    return default if text is None else text in TRUE_WORDS


def revocable_zone(annotations: Mapping[str, str]) -> str:
    """The revocable zones that a pod or job may use: `*` for all, or empty for none."""
    if REVOCABLE_ZONE in annotations:
        return "*" if annotations[REVOCABLE_ZONE] == "*" else ""
    return "*" if annotations.get(PREEMPTABLE) in TRUE_WORDS else ""


def owner_of(pod: Pod) -> str:
    """Kind and name of the pod's controller; empty for none."""
    owner = pod.metadata.controller
    return one_text(f"{owner.kind}/{owner.name}") if owner is not None else ""


def _overridden(priority: int, annotations: Mapping[str, str]) -> int:
    """The priority in the annotations, if there is one, else the given one."""
    if TASK_PRIORITY in annotations and -(2**31) <= (override := integer(annotations[TASK_PRIORITY], 2**31)) < 2**31:
        return override
    return priority


def as_pod(task: Task) -> Pod:
    """The task as a pod, with the fields that we read of pods."""
    meta = Metadata(
        name=task.name, namespace=task.namespace, uid=task.uid, labels=dict(task.labels) or None, annotations=dict(task.annotations) or None
    )
    group = SchedulingGroup(task.group.partition("/")[2]) if task.group else None
    spec = structs.replace(task.template.spec, node_name=task.node_name or None, scheduling_group=group)
    return Pod(meta, spec, PodStatus(nominated_node_name=task.nominated or None))


def metadata_of(task: Task) -> Metadata:
    """The metadata of the task's pod, with its creation time and its controller."""
    kind, _, owner = task.owner.partition("/")
    return structs.replace(
        as_pod(task).metadata,
        creation_timestamp=rfc3339(task.created) if task.created else None,
        owner_references=[OwnerReference(owner, kind=kind, controller=True)] if owner else None,
    )
