"""Changes to waiting pods and their PodGroups: what they lack in order to be looked at, and what keeps them from nodes.

Who waits is named as `podgroup/NAMESPACE/NAME`, `deployment/NAMESPACE/NAME` (and so on) or `pod/NAMESPACE/NAME`: the change is made to
those of its pods that wait.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import ClassVar

from msgspec.structs import replace

from pumice.answers.changes import ClusterChange
from pumice.answers.pods_to_come import MARK
from pumice.answers.subject import as_they_came, tasks_of_job
from pumice.answers.trial_cluster import TrialCluster, pod_of
from pumice.api import rfc3339
from pumice.api.annotations import BIND_COMPLETED, GROUP_NAME, TASK_SPEC
from pumice.api.meta import Metadata
from pumice.api.plural import plural
from pumice.api.pod import Affinity, Container, PodSpec, Toleration
from pumice.api.quantity import quantity
from pumice.api.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec, PersistentVolumeSpec, Phase
from pumice.api.volcano import PodGroup, PodGroupSpec
from pumice.scheduler.model import Cluster, Task, status


def waiting_of(cluster: Cluster, whose: str) -> list[Task]:
    """The named pod itself, or the pending pods of the named PodGroup or workload."""
    kind, _, key = whose.partition("/")
    if kind == "pod":
        return [cluster.tasks[key]]
    if kind == "podgroup":
        return as_they_came(cluster.jobs[key].pending.values())
    return as_they_came(task for task in tasks_of_job(cluster, key) if task.status == status.PENDING)


def resubmit(trial: TrialCluster, whose: str) -> None:
    """Let a Volcano Job be submitted anew, as its pods cannot be changed: it goes behind the jobs that wait already, and its pods are made
    again once it is admitted."""
    job = trial.cluster.jobs.get(whose.partition("/")[2])
    owner = job.group.metadata.controller if job is not None and job.group is not None else None
    if job is None or job.group is None or owner is None or owner.kind != "Job":
        return
    for task in as_they_came(job.pending.values()):
        pod = pod_of(task)
        trial.put("Pod", replace(pod, metadata=replace(pod.metadata, uid=f"{MARK}{task.key}")))
    last = max(other.created for other in trial.cluster.jobs.values())
    meta = replace(job.group.metadata, creation_timestamp=rfc3339(last + 1.0))
    trial.put("PodGroup", replace(job.group, metadata=meta, status=replace(job.group.status, phase="Pending")))


def _edit(trial: TrialCluster, tasks: Iterable[Task], **spec: object) -> None:
    for task in list(tasks):
        trial.put("Pod", pod_of(task, **spec))


class MakeGroup(ClusterChange, frozen=True, tag="make-podgroup"):
    """Create the PodGroup that pods name. A pod that names none gets a PodGroup of its own."""

    whose: str
    words: ClassVar[str] = "create the PodGroup of {whose}"

    def make(self, trial: TrialCluster) -> None:
        cluster = trial.cluster
        kind, _, key = self.whose.partition("/")
        namespace, _, name = key.partition("/")
        if kind == "pod":
            pod = pod_of(cluster.tasks[key])
            trial.put(
                "Pod", replace(pod, metadata=replace(pod.metadata, annotations=(pod.metadata.annotations or {}) | {GROUP_NAME: name}))
            )
        trial.put("PodGroup", PodGroup(Metadata(name=name, namespace=namespace), PodGroupSpec(min_member=1)))


class AskScheduler(ClusterChange, frozen=True, tag="scheduler"):
    """Pods get the schedulerName of a scheduler that runs here."""

    whose: str
    scheduler: str
    words: ClassVar[str] = "schedulerName {scheduler} for {whose}"

    def make(self, trial: TrialCluster) -> None:
        kind, namespace, name = self.whose.split("/")
        theirs = (task for task in trial.cluster.tasks.values() if task.namespace == namespace and task.annotations.get(GROUP_NAME) == name)
        waits = waiting_of(trial.cluster, self.whose) if kind != "podgroup" else [task for task in theirs if task.status == status.PENDING]
        _edit(trial, waits, scheduler_name=self.scheduler)


class MorePods(ClusterChange, frozen=True, tag="pods"):
    """The missing pods of a gang are created, like an existing pod of it."""

    like: str
    count: int
    role: str = ""

    def __str__(self) -> str:
        role = f" of role {self.role}" if self.role else ""
        return f"{self.count} more {plural(self.count, 'pod')}{role} like {self.like}"

    def make(self, trial: TrialCluster) -> None:
        pod = pod_of(trial.cluster.tasks[self.like], node_name=None)
        annotations = (pod.metadata.annotations or {}) | ({TASK_SPEC: self.role} if self.role else {})
        for number in range(self.count):
            name = f"{pod.metadata.name}-more-{self.role}{number}"
            trial.put("Pod", replace(pod, metadata=replace(pod.metadata, name=name, uid=name, annotations=annotations)))


class Ungate(ClusterChange, frozen=True, tag="ungate"):
    """Scheduling gates are removed from pods."""

    whose: str
    gates: tuple[str, ...]
    comes_last: ClassVar[bool] = True
    words: ClassVar[str] = "remove the scheduling gate {gates} from {whose}"

    def make(self, trial: TrialCluster) -> None:
        for task in waiting_of(trial.cluster, self.whose):
            if left := [gate for gate in task.template.spec.scheduling_gates or () if gate.name not in self.gates]:
                _edit(trial, [task], scheduling_gates=left)
            elif task.gated:
                _edit(trial, [task], scheduling_gates=None)


class Tolerate(ClusterChange, frozen=True, tag="tolerate"):
    whose: str
    taints: tuple[str, ...]  #: as kubectl writes them, `key=value:effect`
    words: ClassVar[str] = "a toleration of {taints} for {whose}"

    def make(self, trial: TrialCluster) -> None:
        resubmit(trial, self.whose)
        more = []
        for taint in self.taints:
            pair, _, effect = taint.rpartition(":")
            key, _, value = pair.partition("=")
            more.append(Toleration(key=key, operator="Equal", value=value, effect=effect))
        for task in waiting_of(trial.cluster, self.whose):
            _edit(trial, [task], tolerations=[*(task.template.spec.tolerations or ()), *more])


class Drop(ClusterChange, frozen=True, tag="drop"):
    """Pods no longer have one kind of requirement, such as node affinity."""

    whose: str
    field: str  #: a key of DROPS

    def __str__(self) -> str:
        return f"{self.whose} without its {DROPPED_AS.get(self.field, self.field)}"

    def make(self, trial: TrialCluster) -> None:
        resubmit(trial, self.whose)
        for task in waiting_of(trial.cluster, self.whose):
            trial.put("Pod", replace(pod_of(task), spec=DROPS[self.field](task.template.spec)))


def _without_node_terms(spec: PodSpec) -> PodSpec:
    affinity = replace(spec.affinity, node_affinity=None) if spec.affinity else None
    return replace(spec, node_selector=None, affinity=affinity)


def _without_pod_terms(spec: PodSpec) -> PodSpec:
    return replace(spec, affinity=Affinity(node_affinity=spec.affinity.node_affinity) if spec.affinity else None)


def _without_host_ports(spec: PodSpec) -> PodSpec:
    def quiet(containers: list[Container] | None) -> list[Container]:
        return [replace(each, ports=None) for each in containers or ()]

    return replace(spec, containers=quiet(spec.containers), init_containers=quiet(spec.init_containers))


DROPPED_AS = {
    "node affinity": "node selector and affinity",
    "pod affinity": "pod affinity and anti-affinity",
    "RuntimeClass": "RuntimeClass and its node selector",
}  #: in words
DROPS: dict[str, Callable[[PodSpec], PodSpec]] = {
    "node affinity": _without_node_terms,
    "pod affinity": _without_pod_terms,
    "RuntimeClass": lambda spec: replace(_without_node_terms(spec), runtime_class_name=None, overhead=None),
    "host port": _without_host_ports,
    "volume": partial(replace, volumes=None),
    "topology spread constraint": partial(replace, topology_spread_constraints=None),
    "device claim": partial(replace, resource_claims=None),
}


class MakeClaim(ClusterChange, frozen=True, tag="claim"):
    """A PersistentVolumeClaim is created, bound to a volume that every node can reach."""

    claim: str  #: namespace/name
    words: ClassVar[str] = "create PersistentVolumeClaim {claim}"

    def make(self, trial: TrialCluster) -> None:
        namespace, _, name = self.claim.partition("/")
        volume = f"{namespace}-{name}"
        spec = PersistentVolumeSpec(capacity={"storage": quantity("1Pi")})
        trial.put("PersistentVolume", PersistentVolume(Metadata(name=volume), spec, Phase("Bound")))
        annotations = {BIND_COMPLETED: "yes"}
        claim = PersistentVolumeClaim(
            Metadata(name=name, namespace=namespace, annotations=annotations), PersistentVolumeClaimSpec(volume_name=volume), Phase("Bound")
        )
        trial.put("PersistentVolumeClaim", claim)
