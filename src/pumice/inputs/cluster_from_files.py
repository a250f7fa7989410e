"""A cluster that is read from files. The defaults that an API server and Volcano's webhooks would set are filled in, and cycles are run on
the objects. Between two cycles bound pods start to run, and evicted pods are removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from pumice.api import rfc3339
from pumice.api.annotations import NAMESPACE_NAME
from pumice.api.core import Namespace, PriorityClass
from pumice.api.defaults import SYSTEM_CLASSES, required_queues
from pumice.api.kinds import CLUSTER_WIDE, NATIVE_POD_GROUP
from pumice.api.kube_pod_groups import SCHEDULED, CompositePodGroup, CompositeSpec, NativeGroupSpec, NativePodGroup
from pumice.api.meta import Condition, Metadata, Wire
from pumice.api.pod import Container, Pod, PodSpec, ResourceRequirements
from pumice.api.quantity import format_milli, quantity
from pumice.api.volcano import Queue, QueueSpec, QueueStatus
from pumice.inputs.pod_admission import PodAdmission
from pumice.scheduler.framework.carry_out import carry_out
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import GATED, Decisions, NativeGroupCondition
from pumice.scheduler.framework.plugin_guard import Failure
from pumice.scheduler.framework.pods_to_try import EVERYBODY
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.unserved_pods import unserved
from pumice.scheduler.framework.world import NOWHERE, World
from pumice.scheduler.model import Cluster, status
from pumice.scheduler.model.pod_request import POD_LEVEL, is_pod_level, requested_by_containers

if TYPE_CHECKING:
    from pumice.scheduler.kube.scheduling_queue import SchedulingQueue

PERIOD_S = 1.0  #: seconds from one cycle to the next


def complete(items: Iterable[tuple[str, Wire]]) -> list[tuple[str, Wire]]:
    """The objects with defaults. The system PriorityClasses, namespaces and queues that are missing come first, as pods refer to them."""
    given = list(items)
    classes = {c.metadata.name: c for kind, c in given if isinstance(c, PriorityClass)}
    fallback = next((c for c in classes.values() if c.global_default), None)
    admission = PodAdmission(given)
    done: list[tuple[str, Wire]] = []
    for kind, item in given:
        if kind not in CLUSTER_WIDE and not item.metadata.namespace:  # type: ignore[attr-defined]
            item = replace(item, metadata=replace(item.metadata, namespace="default"))  # type: ignore[attr-defined]
        match item:
            case Pod():
                item = admission.admitted(_pod(item, classes, fallback))
            case NativePodGroup() | CompositePodGroup():
                item = replace(item, spec=replace(item.spec, priority=_rank(item.spec, classes, fallback)))
            case Queue():
                item = replace(item, status=replace(item.status, state=item.status.state or "Open"))
            case Namespace():
                item = replace(item, metadata=_labelled(item.metadata))
        done.append((kind, item))
    return [*_system_classes(classes), *_namespaces(done), *_queues(done), *done]


def _labelled(meta: Metadata) -> Metadata:
    return replace(meta, labels={NAMESPACE_NAME: meta.name} | (meta.labels or {}))


def _system_classes(known: dict[str, Any]) -> list[tuple[str, Wire]]:
    return [("PriorityClass", PriorityClass(Metadata(name=name), value)) for name, value in SYSTEM_CLASSES.items() if name not in known]


def _namespaces(items: list[tuple[str, Wire]]) -> list[tuple[str, Wire]]:
    present = {item.metadata.name for kind, item in items if isinstance(item, Namespace)}
    used = {item.metadata.namespace or "default": None for kind, item in items if isinstance(item, Pod)} | {"default": None}
    return [("Namespace", Namespace(_labelled(Metadata(name=name)))) for name in used if name not in present]


def _queues(items: list[tuple[str, Wire]]) -> list[tuple[str, Wire]]:
    present = {item.metadata.name for kind, item in items if isinstance(item, Queue)}
    return [
        ("Queue", Queue(Metadata(name=name), QueueSpec(weight=1, reclaimable=reclaimable), QueueStatus(state="Open")))
        for name, reclaimable in required_queues().items()
        if name not in present
    ]


def _class_of(spec: PodSpec | NativeGroupSpec | CompositeSpec, classes: dict[str, Any], fallback: Any) -> Any:
    """The PriorityClass that a pod or a group names, else the global default; None if there is none."""
    return classes.get(spec.priority_class_name) if spec.priority_class_name else fallback


def _rank(spec: PodSpec | NativeGroupSpec | CompositeSpec, classes: dict[str, Any], fallback: Any) -> int | None:
    """The priority of a pod or a group of pods: its own, else that of its class."""
    named = _class_of(spec, classes, fallback)
    priority = SYSTEM_CLASSES.get(spec.priority_class_name or "") if named is None else named.value
    return priority if spec.priority is None else spec.priority


def _pod(pod: Pod, classes: dict[str, Any], fallback: PriorityClass | None) -> Pod:
    spec = replace(
        pod.spec,
        containers=[_container(c, pod.spec) for c in pod.spec.containers or ()],
        init_containers=[_container(c, pod.spec) for c in pod.spec.init_containers] if pod.spec.init_containers else None,
    )
    named = _class_of(spec, classes, fallback)
    return replace(
        pod,
        spec=replace(
            spec,
            priority=_rank(spec, classes, fallback),
            preemption_policy=spec.preemption_policy or (named.preemption_policy if named is not None else None),
            resources=_requested(spec),
            scheduler_name=spec.scheduler_name or "default-scheduler",
        ),
    )


def _container(container: Container, spec: PodSpec) -> Container:
    """The container with defaults: its limits are its requests if it states none, and in the node's network its ports are host ports."""
    resources, ports = container.resources, container.ports
    if resources is not None and resources.limits:
        resources = replace(resources, requests=resources.limits | (resources.requests or {}))
    if ports and spec.host_network:
        ports = [replace(port, host_port=port.host_port or port.container_port) for port in ports]
    return replace(container, resources=resources, ports=ports)


def _requested(spec: PodSpec) -> ResourceRequirements | None:
    """The pod-level resources with defaults. If the pod has limits as a whole, a request that it does not state is the sum of its
    containers' requests, or its limit if the containers request nothing."""
    if spec.resources is None or not spec.resources.limits:
        return spec.resources
    limits = {name: limit for name, limit in spec.resources.limits.items() if is_pod_level(name)}
    summed = {name: quantity(format_milli(milli)) for name, milli in requested_by_containers(spec).items() if name in POD_LEVEL}
    return replace(spec.resources, requests=limits | summed | (spec.resources.requests or {}))


def run_cycles(
    cluster: Cluster, policy: Policy, now: float, count: int, world: World = NOWHERE, failures: dict[Failure, None] | None = None
) -> list[dict[str, Any]]:
    """The outcome of each cycle, as `pumice cycle -o json` prints it. The failures of plugins are added to `failures`."""
    outcomes = []
    decisions = Decisions()
    for number in range(count):
        advance(cluster, decisions, now + (number - 1) * PERIOD_S)
        queue = _queue(cluster, policy)
        decisions = cycle(cluster, policy, now + number * PERIOD_S, world, queue or EVERYBODY)
        decisions.waiting = [*decisions.waiting, *unserved(cluster, policy, decisions)]
        outcomes.append(outcome(cluster, decisions) | {"queue": _places(cluster, decisions, queue)})
        if failures is not None:
            failures |= decisions.failures
    return outcomes


def _queue(cluster: Cluster, policy: Policy) -> SchedulingQueue | None:
    """A new scheduling queue, if the policy has profiles. Every pod is tried in every cycle: nobody waits for the next one."""
    if policy.profiles is None:
        return None
    from pumice.scheduler.kube.scheduling_queue import SchedulingQueue  # kube-scheduler's loop is loaded only where there are profiles

    return SchedulingQueue(cluster, at_once=len(cluster.tasks))


def _places(cluster: Cluster, decisions: Decisions, queue: SchedulingQueue | None) -> dict[str, str]:
    """Where each pending pod of kube-scheduler's profiles is in the scheduling queue."""
    pending = [task for task in cluster.tasks.values() if task.status == status.PENDING] if queue is not None else []
    placed = ((task.key, decisions.held[task].state if task in decisions.held else queue and queue.place_of(task)) for task in pending)
    return {key: place for key, place in placed if place}


def advance(cluster: Cluster, decisions: Decisions, then: float) -> None:
    """Carry out what a cycle decided: evicted pods are removed, and Kubernetes' own PodGroups have their conditions."""
    carry_out(cluster, decisions, then, lambda eviction: cluster.remove("Pod", eviction.task.key))
    for reported in decisions.native_groups.values():
        cluster.put(NATIVE_POD_GROUP, conditioned(reported, then))


def conditioned(reported: NativeGroupCondition, then: float) -> NativePodGroup:
    """The PodGroup with its new condition."""
    group = reported.group
    condition = Condition(SCHEDULED, "True" if reported.is_scheduled else "False", reported.reason, reported.message, rfc3339(then))
    others = [each for each in group.status.conditions or () if each.type != SCHEDULED]
    return replace(group, status=replace(group.status, conditions=[*others, condition]))


def outcome(cluster: Cluster, decisions: Decisions) -> dict[str, Any]:
    groups: dict[str, dict[str, Any]] = {}
    for job in cluster.jobs.values():
        if job.has_stored_group:
            groups[job.uid] = {"phase": job.phase, "conditions": []}
    for group in decisions.groups:
        if group.condition is not None and group.job.uid in groups:
            groups[group.job.uid]["conditions"] = [
                {"type": group.condition.type, "status": "True", "reason": group.condition.reason, "message": group.condition.message}
            ]
    natives = {key: _native(group, decisions) for key, group in cluster.of(NATIVE_POD_GROUP).items()}
    groups |= {key: native for key, native in natives.items() if "phase" in native}
    return {
        "binds": {bind.task.key: bind.node for bind in decisions.binds},
        "pipelined": {place.task.key: place.node for place in decisions.pipelined},
        "evicts": [{"pod": e.task.key, "for": e.beneficiary, "action": e.action, "node": e.node} for e in decisions.evictions],
        "podGroups": groups,
        "nominations": {task.key: task.nominated for task in cluster.tasks.values() if task.nominated and task.status == status.PENDING},
        "waitingGroups": {g.job.uid: g.condition.message for g in decisions.groups if g.condition is not None and not g.job.tasks},
        "pending": {waiting.task.key: {"reason": waiting.reason, "message": waiting.message} for waiting in decisions.waiting},
        "messages": {each.task.key: f"{each.reason}: {each.message}" for each in decisions.waiting if each.reason != GATED},
        "podGroupMessages": {key: each["message"] for key, group in groups.items() for each in group["conditions"] if each["message"]},
    }


def _native(group: NativePodGroup, decisions: Decisions) -> dict[str, Any]:
    """The outcome of one of Kubernetes' own PodGroups. Its phase is the reason of its condition, without which it has none."""
    reported = decisions.native_groups.get(f"{group.metadata.namespace}/{group.metadata.name}")
    conditions = (conditioned(reported, 0.0) if reported is not None else group).status.conditions or ()
    shown = [{"type": c.type, "status": c.status, "reason": c.reason or "", "message": c.message or ""} for c in conditions]
    phases = [each["reason"] for each in shown if each["type"] == SCHEDULED]
    return {"phase": phases[0], "conditions": shown} if phases else {"conditions": shown}


def together(outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    """The outcome of all cycles together: the binds and evictions of all of them, and everything else as the last cycle left it."""
    return {
        **outcomes[-1],
        "binds": {pod: node for each in outcomes for pod, node in each["binds"].items()},
        "evicts": [eviction for each in outcomes for eviction in each["evicts"]],
        "messages": {pod: text for each in outcomes for pod, text in each["messages"].items() if pod in outcomes[-1]["pending"]},
        "cycles": outcomes,
    }
