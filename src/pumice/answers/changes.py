"""Changes to a cluster, as values. Remedies consist of changes, and so do answers to "what if".

Each change describes itself in words, is a tagged object in JSON, and can be made in a `Sketch`. A waiting PodGroup or pod is named as
`podgroup/NAMESPACE/NAME` or `pod/NAMESPACE/NAME`: the change is made to those of its pods that wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from pumice.answers.promised import MARK
from pumice.answers.sketch import Sketch, pod_of
from pumice.api.annotations import BIND_COMPLETED, GROUP_NAME, TASK_SPEC
from pumice.api.core import (
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    Phase,
    ResourceQuota,
)
from pumice.api.meta import Metadata
from pumice.api.pod import Affinity, Container, PodSpec, Toleration
from pumice.api.quantity import Quantity, quantity
from pumice.api.times import rfc3339
from pumice.api.volcano import Guarantee, PodGroup, PodGroupSpec, Queue, QueueStatus
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.nodes import Nodes
from pumice.scheduler.model.resources import Dimensions, Vector
from pumice.scheduler.model.task import Task

Amounts = dict[str, str]
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"  #: the taint of cordoned nodes


class Change(Struct, frozen=True, tag_field="change"):
    """Base class of all changes."""

    def make(self, sketch: Sketch) -> None:
        raise NotImplementedError

    def __str__(self) -> str:
        raise NotImplementedError


def waiting_of(cluster: Cluster, whose: str) -> list[Task]:
    """The named pod itself, or the pending pods of the named PodGroup."""
    kind, _, key = whose.partition("/")
    if kind == "pod":
        return [cluster.tasks[key]]
    return list(cluster.jobs[key].pending.values())


def resubmit(sketch: Sketch, whose: str) -> None:
    """Let a Volcano Job be submitted anew, as its pods cannot be changed: it goes behind the jobs that wait already, and its pods are made
    again once it is admitted."""
    job = sketch.cluster.jobs.get(whose.partition("/")[2])
    owner = job.group.metadata.controller if job is not None and job.group is not None else None
    if job is None or job.group is None or owner is None or owner.kind != "Job":
        return
    for task in list(job.pending.values()):
        pod = pod_of(task)
        sketch.put("Pod", replace(pod, metadata=replace(pod.metadata, uid=f"{MARK}{task.key}")))
    last = max(other.created for other in sketch.cluster.jobs.values())
    meta = replace(job.group.metadata, creation_timestamp=rfc3339(last + 1.0))
    sketch.put("PodGroup", replace(job.group, metadata=meta, status=replace(job.group.status, phase="Pending")))


def _edit(sketch: Sketch, tasks: Iterable[Task], **spec: object) -> None:
    for task in list(tasks):
        sketch.put("Pod", pod_of(task, **spec))


# ---- nodes


class MoreRoom(Change, frozen=True, tag="room"):
    """A node gets more allocatable resources."""

    node: str
    amounts: Amounts

    def __str__(self) -> str:
        return f"{_in_words(self.amounts)} more on node {self.node}"

    def make(self, sketch: Sketch) -> None:
        nodes = sketch.cluster.nodes
        row = nodes.rows[self.node]
        more = nodes.dimensions.vector(quantities(self.amounts))
        sketch.put("Node", giving(nodes, row, nodes.allocatable[:, row] + more))


def giving(nodes: Nodes, row: int, amounts: Vector) -> Node:
    """The node of a row, with these amounts as its allocatable resources."""
    wire, dimensions = nodes.wire[row], nodes.dimensions
    given = quantities(listed(dimensions, amounts))
    return replace(wire, status=replace(wire.status, allocatable={**(wire.status.allocatable or {}), **given}))


class MoreNodes(Change, frozen=True, tag="nodes"):
    """The cluster gets more nodes: empty ones, like an existing node."""

    like: str
    count: int

    def __str__(self) -> str:
        return f"{self.count} more {'node' if self.count == 1 else 'nodes'} like {self.like}"

    def make(self, sketch: Sketch) -> None:
        nodes = sketch.cluster.nodes
        wire = nodes.wire[nodes.rows[self.like]]
        for number in range(self.count):
            name = f"{self.like}-like-{number}"
            labels = {key: name if value == self.like else value for key, value in (wire.metadata.labels or {}).items()}
            meta = replace(wire.metadata, name=name, uid=name, labels=labels)
            sketch.put("Node", replace(wire, metadata=meta, spec=replace(wire.spec, unschedulable=None)))


class Uncordon(Change, frozen=True, tag="uncordon"):
    node: str

    def __str__(self) -> str:
        return f"uncordon node {self.node}"

    def make(self, sketch: Sketch) -> None:
        wire = sketch.cluster.nodes.wire[sketch.cluster.nodes.rows[self.node]]
        taints = [taint for taint in wire.spec.taints or () if taint.key != UNSCHEDULABLE]  # a controller removes it
        sketch.put("Node", replace(wire, spec=replace(wire.spec, unschedulable=None, taints=taints or None)))


# ---- queues


class MoreQuota(Change, frozen=True, tag="quota"):
    """A queue's `capability`, `deserved` or `guarantee` gets these amounts. What is guaranteed must be deserved as well."""

    queue: str
    field: str
    amounts: Amounts

    def __str__(self) -> str:
        field = "guarantee and deserved" if self.field == "guarantee" else self.field
        return f"{field} of {_in_words(self.amounts)} for queue {self.queue}"

    def make(self, sketch: Sketch) -> None:
        queue = sketch.cluster.queues[self.queue].wire
        assert queue is not None
        sketch.put("Queue", self.of(queue))

    def of(self, queue: Queue) -> Queue:
        """The queue with this change."""
        amounts = quantities(self.amounts)
        if self.field != "guarantee":
            return replace(queue, spec=replace(queue.spec, **{self.field: (getattr(queue.spec, self.field) or {}) | amounts}))
        before, deserved = queue.spec.guarantee, queue.spec.deserved or {}
        guarantee = Guarantee(((before.resource if before else None) or {}) | amounts)
        lower = {name: each for name, each in amounts.items() if name not in deserved or deserved[name].milli < each.milli}
        return replace(queue, spec=replace(queue.spec, guarantee=guarantee, deserved=deserved | lower))


class RaiseQuota(Change, frozen=True, tag="resource-quota"):
    """A ResourceQuota allows these amounts."""

    quota: str  #: namespace/name
    amounts: Amounts

    def __str__(self) -> str:
        return f"ResourceQuota {self.quota} with {_in_words(self.amounts)}"

    def make(self, sketch: Sketch) -> None:
        known: ResourceQuota = sketch.cluster.of("ResourceQuota")[self.quota]
        more = quantities(self.amounts)
        spec, state = replace(known.spec, hard=(known.spec.hard or {}) | more), replace(known.status, hard=(known.status.hard or {}) | more)
        sketch.put("ResourceQuota", replace(known, spec=spec, status=state))


class OpenQueue(Change, frozen=True, tag="open"):
    queue: str

    def __str__(self) -> str:
        return f"open queue {self.queue}"

    def make(self, sketch: Sketch) -> None:
        queue = sketch.cluster.queues[self.queue].wire
        assert queue is not None
        sketch.put("Queue", replace(queue, status=replace(queue.status, state="Open")))


class MakeQueue(Change, frozen=True, tag="make-queue"):
    queue: str

    def __str__(self) -> str:
        return f"create queue {self.queue}"

    def make(self, sketch: Sketch) -> None:
        sketch.put("Queue", Queue(Metadata(name=self.queue), status=QueueStatus(state="Open")))


# ---- waiting pods and PodGroups


class MakeGroup(Change, frozen=True, tag="make-podgroup"):
    """Create the PodGroup that pods name. A pod that names none gets a PodGroup of its own."""

    whose: str

    def __str__(self) -> str:
        return f"create the PodGroup of {self.whose}"

    def make(self, sketch: Sketch) -> None:
        cluster = sketch.cluster
        kind, _, key = self.whose.partition("/")
        namespace, _, name = key.partition("/")
        if kind == "pod":
            pod = pod_of(cluster.tasks[key])
            sketch.put(
                "Pod", replace(pod, metadata=replace(pod.metadata, annotations=(pod.metadata.annotations or {}) | {GROUP_NAME: name}))
            )
        sketch.put("PodGroup", PodGroup(Metadata(name=name, namespace=namespace), PodGroupSpec(min_member=1)))


class AskScheduler(Change, frozen=True, tag="scheduler"):
    """Pods get the schedulerName of a scheduler that runs here."""

    whose: str
    scheduler: str

    def __str__(self) -> str:
        return f"schedulerName {self.scheduler} for {self.whose}"

    def make(self, sketch: Sketch) -> None:
        kind, namespace, name = self.whose.split("/")
        theirs = (
            task for task in sketch.cluster.tasks.values() if task.namespace == namespace and task.annotations.get(GROUP_NAME) == name
        )
        waits = waiting_of(sketch.cluster, self.whose) if kind == "pod" else [task for task in theirs if task.status == status.PENDING]
        _edit(sketch, waits, scheduler_name=self.scheduler)


class MorePods(Change, frozen=True, tag="pods"):
    """The missing pods of a gang are created, like an existing pod of it."""

    like: str
    count: int
    role: str = ""

    def __str__(self) -> str:
        role = f" of role {self.role}" if self.role else ""
        return f"{self.count} more {'pod' if self.count == 1 else 'pods'}{role} like {self.like}"

    def make(self, sketch: Sketch) -> None:
        pod = pod_of(sketch.cluster.tasks[self.like], node_name=None)
        annotations = (pod.metadata.annotations or {}) | ({TASK_SPEC: self.role} if self.role else {})
        for number in range(self.count):
            name = f"{pod.metadata.name}-more-{self.role}{number}"
            sketch.put("Pod", replace(pod, metadata=replace(pod.metadata, name=name, uid=name, annotations=annotations)))


class Ungate(Change, frozen=True, tag="ungate"):
    """Scheduling gates are removed from pods."""

    whose: str
    gates: tuple[str, ...]

    def __str__(self) -> str:
        return f"remove the scheduling gate {', '.join(self.gates)} from {self.whose}"

    def make(self, sketch: Sketch) -> None:
        for task in waiting_of(sketch.cluster, self.whose):
            if left := [gate for gate in task.template.spec.scheduling_gates or () if gate.name not in self.gates]:
                _edit(sketch, [task], scheduling_gates=left)
            elif task.gated:
                _edit(sketch, [task], scheduling_gates=None)


class Tolerate(Change, frozen=True, tag="tolerate"):
    whose: str
    taints: tuple[str, ...]  #: as kubectl writes them, `key=value:effect`

    def __str__(self) -> str:
        return f"a toleration of {', '.join(self.taints)} for {self.whose}"

    def make(self, sketch: Sketch) -> None:
        resubmit(sketch, self.whose)
        more = []
        for taint in self.taints:
            pair, _, effect = taint.rpartition(":")
            key, _, value = pair.partition("=")
            more.append(Toleration(key=key, operator="Equal", value=value, effect=effect))
        for task in waiting_of(sketch.cluster, self.whose):
            _edit(sketch, [task], tolerations=[*(task.template.spec.tolerations or ()), *more])


class Drop(Change, frozen=True, tag="drop"):
    """Pods no longer have one kind of requirement, such as node affinity."""

    whose: str
    field: str  #: a key of DROPS

    def __str__(self) -> str:
        return f"{self.whose} without its {DROPPED_AS.get(self.field, self.field)}"

    def make(self, sketch: Sketch) -> None:
        resubmit(sketch, self.whose)
        for task in waiting_of(sketch.cluster, self.whose):
            sketch.put("Pod", replace(pod_of(task), spec=DROPS[self.field](task.template.spec)))


def _without_node_terms(spec: PodSpec) -> PodSpec:
    affinity = replace(spec.affinity, node_affinity=None) if spec.affinity else None
    return replace(spec, node_selector=None, affinity=affinity)


def _without_pod_terms(spec: PodSpec) -> PodSpec:
    return replace(spec, affinity=Affinity(node_affinity=spec.affinity.node_affinity) if spec.affinity else None)


def _without_host_ports(spec: PodSpec) -> PodSpec:
    def quiet(containers: list[Container] | None) -> list[Container]:
        return [replace(each, ports=None) for each in containers or ()]

    return replace(spec, containers=quiet(spec.containers), init_containers=quiet(spec.init_containers))


DROPPED_AS = {"node affinity": "node selector and affinity", "pod affinity": "pod affinity and anti-affinity"}  #: in words
DROPS: dict[str, Callable[[PodSpec], PodSpec]] = {
    "node affinity": _without_node_terms,
    "pod affinity": _without_pod_terms,
    "host port": _without_host_ports,
    "volume": partial(replace, volumes=None),
    "topology spread constraint": partial(replace, topology_spread_constraints=None),
    "device claim": partial(replace, resource_claims=None),
}


class MakeClaim(Change, frozen=True, tag="claim"):
    """A PersistentVolumeClaim is created, bound to a volume that every node can reach."""

    claim: str  #: namespace/name

    def __str__(self) -> str:
        return f"create PersistentVolumeClaim {self.claim}"

    def make(self, sketch: Sketch) -> None:
        namespace, _, name = self.claim.partition("/")
        volume = f"{namespace}-{name}"
        spec = PersistentVolumeSpec(capacity={"storage": quantity("1Pi")})
        sketch.put("PersistentVolume", PersistentVolume(Metadata(name=volume), spec, Phase("Bound")))
        annotations = {BIND_COMPLETED: "yes"}
        claim = PersistentVolumeClaim(
            Metadata(name=name, namespace=namespace, annotations=annotations), PersistentVolumeClaimSpec(volume_name=volume), Phase("Bound")
        )
        sketch.put("PersistentVolumeClaim", claim)


class Gone(Change, frozen=True, tag="gone"):
    """Pods, or all pods of PodGroups, have ended or were deleted."""

    whose: tuple[str, ...]

    def __str__(self) -> str:
        return f"without {', '.join(self.whose)}"

    def make(self, sketch: Sketch) -> None:
        cluster = sketch.cluster
        for each in self.whose:
            kind, _, key = each.partition("/")
            if kind == "pod":
                sketch.remove("Pod", key)
            else:
                self._end(sketch, cluster.jobs[key])

    def _end(self, sketch: Sketch, job: Job) -> None:
        for task in list(job.tasks.values()):
            if not task.status & status.FINISHED:
                sketch.remove("Pod", task.key)
        if job.group is not None:
            sketch.remove("PodGroup", job.uid)


class Move(Change, frozen=True, tag="move"):
    """A running pod runs on another node instead."""

    pod: str  #: namespace/name
    node: str

    def __str__(self) -> str:
        return f"pod/{self.pod} moved to node {self.node}"

    def make(self, sketch: Sketch) -> None:
        task = sketch.cluster.tasks[self.pod]
        sketch.move(task, task.status, sketch.cluster.nodes.rows[self.node])


class Later(Change, frozen=True, tag="later"):
    """Nothing changes but the time."""

    at: float

    def __str__(self) -> str:
        return f"nothing but time, from {rfc3339(self.at)} on"

    def make(self, sketch: Sketch) -> None:
        """The cycles that follow are rehearsed at that time."""


def quantities(amounts: Amounts) -> dict[str, Quantity]:
    return {name: quantity(text) for name, text in amounts.items()}


def _in_words(amounts: Amounts) -> str:
    return ", ".join(f"{amount} {name}" for name, amount in amounts.items())


def merged(changes: Iterable[Change], dimensions: Dimensions) -> list[Change]:
    """The same changes without repetition: room on a node is added up, and of several amounts for a limit the largest is taken."""
    rooms: dict[str, Vector] = {}
    limits: dict[tuple[str, str], Amounts] = {}  #: by queue and field
    quotas: dict[str, Amounts] = {}
    found: list[Change] = []
    for change in changes:
        match change:
            case MoreRoom():
                rooms[change.node] = dimensions.vector(quantities(change.amounts)) + rooms.get(change.node, 0.0)
            case MoreQuota():
                _raise(limits.setdefault((change.queue, change.field), {}), change.amounts)
            case RaiseQuota():
                _raise(quotas.setdefault(change.quota, {}), change.amounts)
            case _ if change not in found:
                found.append(change)
    more = [MoreRoom(node, listed(dimensions, amounts)) for node, amounts in rooms.items()]
    higher = [MoreQuota(queue, field, amounts) for (queue, field), amounts in limits.items()]
    return [*more, *higher, *(RaiseQuota(quota, amounts) for quota, amounts in quotas.items()), *found]


def _raise(limits: Amounts, amounts: Amounts) -> None:
    for name, amount in amounts.items():
        if name not in limits or quantity(limits[name]).milli < quantity(amount).milli:
            limits[name] = amount


def listed(dimensions: Dimensions, vector: Vector) -> Amounts:
    """The amounts of a vector that are above zero, by resource name."""
    return {name: dimensions.format(column, vector[column]) for column, name in enumerate(dimensions.names) if vector[column] > 0}


def make_all(sketch: Sketch, changes: Iterable[Change]) -> None:
    for change in changes:
        change.make(sketch)
