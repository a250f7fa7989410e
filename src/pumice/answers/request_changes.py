"""Changes to what jobs request, and to the queues and nodes that serve them: what users and administrators could do about waiting jobs."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from msgspec.structs import replace

from pumice.answers.changes import Amounts, ClusterChange, listed, quantities
from pumice.answers.pod_changes import resubmit, waiting_of
from pumice.answers.subject import as_they_came
from pumice.answers.trial_cluster import TrialCluster, pod_of
from pumice.api import InputError, did_you_mean
from pumice.api.core import PriorityClass
from pumice.api.plural import counted
from pumice.api.pod import Container, PodSpec, ResourceRequirements
from pumice.api.quantity import Quantity, QuantityError, format_milli, quantity
from pumice.api.volcano import NetworkTopology, QueueSpec
from pumice.scheduler.model import Dimensions, Job, Vector, status


class FewerPods(ClusterChange, frozen=True, tag="fewer-pods"):
    """A gang gets this many pods; its other waiting pods are removed."""

    group: str
    count: int

    def __str__(self) -> str:
        return f"a gang of {self.count} {'pod' if self.count == 1 else 'pods'}"

    def make(self, trial: TrialCluster) -> None:
        job = trial.cluster.jobs[self.group]
        group = job.group
        assert group is not None
        least = {
            name: quantity(format_milli(each.milli * self.count // job.min_member))
            for name, each in (group.spec.min_resources or {}).items()
        }
        spec = replace(group.spec, min_member=self.count, min_task_member=None, min_resources=least or None)
        for task in as_they_came(job.pending.values())[max(self.count - job.ready_count, 0) :]:
            trial.remove("Pod", task.key)
        trial.put("PodGroup", replace(group, spec=spec))


class SmallerPods(ClusterChange, frozen=True, tag="smaller-pods"):
    """The first container of each waiting pod requests these amounts, unless it requests less; the minResources of their PodGroup change by
    the difference."""

    whose: str
    amounts: Amounts
    words: ClassVar[str] = "pods of {amounts}"

    def make(self, trial: TrialCluster) -> None:
        resubmit(trial, self.whose)
        waiting, dimensions = waiting_of(trial.cluster, self.whose), trial.cluster.dimensions
        job = waiting[0].job
        before = _asked_together(job, dimensions)
        for task in waiting:
            first, *others = task.template.spec.containers or [Container()]
            resources, asked = first.resources or ResourceRequirements(), first_requests(task.template.spec)
            asked |= {name: least for name, least in quantities(self.amounts).items() if name in asked and least.milli < asked[name].milli}
            trial.put("Pod", pod_of(task, containers=[replace(first, resources=replace(resources, requests=asked, limits=None)), *others]))
        if job is not None and job.group is not None and job.group.spec.min_resources:
            least = dimensions.vector(job.group.spec.min_resources) - before + _asked_together(job, dimensions)
            spec = replace(job.group.spec, min_resources=quantities(listed(dimensions, least)))
            trial.put("PodGroup", replace(job.group, spec=spec))


def first_requests(spec: PodSpec) -> dict[str, Quantity]:
    """What the first container of a pod requests; of what it only limits, its limit."""
    first, *_ = spec.containers or [Container()]
    resources = first.resources or ResourceRequirements()
    return (resources.limits or {}) | (resources.requests or {})


def _asked_together(job: Job | None, dimensions: Dimensions) -> Vector:
    """The total requests of the waiting pods that must start together."""
    waiting = list(job.pending.values())[: max(job.min_member - job.ready_count, 0)] if job is not None else []
    return sum((task.template.request for task in waiting), start=dimensions.zeros())


class StateAmounts(ClusterChange, frozen=True, tag="state-amounts"):
    """Containers of each waiting pod state requests and limits that they did not state: a ResourceQuota demands them."""

    whose: str
    containers: dict[str, dict[str, Amounts]]  #: what each states as "requests" and as "limits"

    def __str__(self) -> str:
        sides = (
            f"{side} of {', '.join(f'{each} {name}' for name, each in amounts.items())} for container {container}"
            for container, stated in self.containers.items()
            for side, amounts in stated.items()
        )
        return f"{', '.join(sides)} in the pod template"

    def make(self, trial: TrialCluster) -> None:
        resubmit(trial, self.whose)
        for task in waiting_of(trial.cluster, self.whose):
            spec = task.template.spec
            trial.put("Pod", pod_of(task, containers=self._stated(spec.containers), init_containers=self._stated(spec.init_containers)))

    def _stated(self, containers: list[Container] | None) -> list[Container] | None:
        return [replace(each, resources=self._of(each)) for each in containers] if containers else containers

    def _of(self, container: Container) -> ResourceRequirements:
        known, stated = container.resources or ResourceRequirements(), self.containers.get(container.name, {})
        limits = quantities(stated.get("limits", {}))
        requests = quantities(stated.get("requests", {}))
        return replace(known, requests=requests | limits | (known.requests or {}), limits=limits | (known.limits or {}))


class OtherQueue(ClusterChange, frozen=True, tag="other-queue"):
    group: str
    queue: str
    words: ClassVar[str] = "in queue {queue}"

    def make(self, trial: TrialCluster) -> None:
        resubmit(trial, f"podgroup/{self.group}")
        group = trial.cluster.jobs[self.group].group
        assert group is not None
        trial.put("PodGroup", replace(group, spec=replace(group.spec, queue=self.queue)))


class WiderTopology(ClusterChange, frozen=True, tag="topology"):
    """The pods of a job may be in HyperNodes up to this tier; without a tier, anywhere."""

    group: str
    tier: int | None = None

    def __str__(self) -> str:
        return "a soft network topology" if self.tier is None else f"a network topology with highestTierAllowed {self.tier}"

    def make(self, trial: TrialCluster) -> None:
        resubmit(trial, f"podgroup/{self.group}")
        group = trial.cluster.jobs[self.group].group
        assert group is not None
        parts = [replace(part, network_topology=self._of(part.network_topology)) for part in group.spec.sub_group_policy or ()]
        spec = replace(group.spec, network_topology=self._of(group.spec.network_topology), sub_group_policy=parts or None)
        trial.put("PodGroup", replace(group, spec=spec))

    def _of(self, topology: NetworkTopology | None) -> NetworkTopology | None:
        if topology is None or topology.mode == "soft":
            return topology
        return NetworkTopology("soft") if self.tier is None else NetworkTopology(topology.mode, self.tier)


class OtherPriority(ClusterChange, frozen=True, tag="other-priority"):
    """Pods and their PodGroup get another priority class."""

    whose: str
    priority_class: str
    words: ClassVar[str] = "priority class {priority_class}"

    def make(self, trial: TrialCluster) -> None:
        cluster = trial.cluster
        chosen: PriorityClass = cluster.of("PriorityClass")[self.priority_class]
        for task in waiting_of(cluster, self.whose):
            spec = {"priority": chosen.value, "priority_class_name": self.priority_class, "preemption_policy": chosen.preemption_policy}
            trial.put("Pod", pod_of(task, **spec))
        kind, _, key = self.whose.partition("/")
        job = cluster.jobs.get(key) if kind == "podgroup" else None
        if job is not None and job.group is not None:
            trial.put("PodGroup", replace(job.group, spec=replace(job.group.spec, priority_class_name=self.priority_class)))


class Drain(ClusterChange, frozen=True, tag="drain"):
    """A node accepts no more pods, and its pods wait for another node."""

    node: str
    words: ClassVar[str] = "drain node {node}"

    def make(self, trial: TrialCluster) -> None:
        nodes = trial.cluster.nodes
        if self.node not in nodes.rows:
            raise InputError(f"there is no node {self.node}{did_you_mean(self.node, nodes.rows)}", where="--drain")
        row = nodes.rows[self.node]
        trial.put("Node", replace(nodes.wire[row], spec=replace(nodes.wire[row].spec, unschedulable=True)))
        for task in list(nodes.tasks[row].values()):
            if task.status & status.ALLOCATED_ALL:
                trial.move(task, status.PENDING, -1)


class MoreObjects(ClusterChange, frozen=True, tag="objects"):
    """Objects are created, or replace existing objects of the same name."""

    items: tuple[tuple[str, Any], ...]  #: kind and wire struct

    def __str__(self) -> str:
        return counted(len(self.items), "object")

    def make(self, trial: TrialCluster) -> None:
        for kind, item in self.items:
            trial.put(kind, item)


WHOLE = ("weight", "priority")
LISTS = ("capability", "deserved")


class QueueField(ClusterChange, frozen=True, tag="queue-field"):
    """A field of a queue gets another value: `weight`, `priority`, `capability.cpu`, `deserved.cpu`."""

    queue: str
    field: str
    value: str
    words: ClassVar[str] = "queue {queue}: {field} {value}"

    @classmethod
    def read(cls, text: str) -> QueueField:
        """The change that is written as `QUEUE.FIELD=VALUE`. Raises InputError."""
        path, equals, value = text.partition("=")
        queue, dot, field = path.partition(".")
        if not (equals and dot and (field in WHOLE or (field.partition(".")[0] in LISTS and "." in field))):
            raise InputError(
                f'"{text}" changes no queue; write QUEUE.weight=3, QUEUE.priority=10 or QUEUE.capability.cpu=16', where="--queue"
            )
        return cls(queue, field, value)

    def make(self, trial: TrialCluster) -> None:
        queues = trial.cluster.queues
        known = queues.get(self.queue)
        if known is None or known.wire is None:
            raise InputError(f"there is no queue {self.queue}{did_you_mean(self.queue, queues)}", where="--queue")
        trial.put("Queue", replace(known.wire, spec=self._changed(known.wire.spec)))

    def _changed(self, spec: QueueSpec) -> QueueSpec:
        if self.field in WHOLE:
            if not re.fullmatch("-?[0-9]{1,18}", self.value):
                raise InputError(f'"{self.value}" is not a whole number', where="--queue")
            return replace(spec, **{self.field: int(self.value)})
        name, _, resource = self.field.partition(".")
        return replace(spec, **{name: (getattr(spec, name) or {}) | {resource: _amount(self.value)}})


def _amount(text: str) -> Quantity:
    try:
        return quantity(text)
    except QuantityError as error:
        raise InputError(str(error), where="--queue") from None
