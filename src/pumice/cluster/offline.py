"""What an API server and Volcano's webhooks fill in when objects are created, done to objects that come from files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from pumice.api.annotations import NAMESPACE_NAME
from pumice.api.core import Namespace, PriorityClass
from pumice.api.kinds import CLUSTER_WIDE
from pumice.api.meta import DEFAULT_QUEUE, ROOT_QUEUE, Metadata, Wire
from pumice.api.pod import Container, Pod, PodSpec, ResourceRequirements
from pumice.api.quantity import format_milli, quantity
from pumice.api.volcano import Queue, QueueSpec, QueueStatus
from pumice.scheduler.model.template import POD_LEVEL, is_pod_level, requested_by_containers

SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def complete(items: Iterable[tuple[str, Wire]]) -> list[tuple[str, Wire]]:
    """The objects with defaults, and the namespaces and queues that would exist: those that pods refer to come first."""
    given = list(items)
    classes = {c.metadata.name: c for kind, c in given if isinstance(c, PriorityClass)}
    fallback = next((c for c in classes.values() if c.global_default), None)
    done: list[tuple[str, Wire]] = []
    for kind, item in given:
        if kind not in CLUSTER_WIDE and not item.metadata.namespace:  # type: ignore[attr-defined]
            item = replace(item, metadata=replace(item.metadata, namespace="default"))  # type: ignore[attr-defined]
        match item:
            case Pod():
                item = _pod(item, classes, fallback)
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
    made = {DEFAULT_QUEUE: True, ROOT_QUEUE: False}
    return [
        ("Queue", Queue(Metadata(name=name), QueueSpec(weight=1, reclaimable=reclaimable), QueueStatus(state="Open")))
        for name, reclaimable in made.items()
        if name not in present
    ]


def _pod(pod: Pod, classes: dict[str, Any], fallback: PriorityClass | None) -> Pod:
    spec = replace(
        pod.spec,
        containers=[_container(c, pod.spec) for c in pod.spec.containers or ()],
        init_containers=[_container(c, pod.spec) for c in pod.spec.init_containers] if pod.spec.init_containers else None,
    )
    named = classes.get(spec.priority_class_name or "") or (fallback if not spec.priority_class_name else None)
    priority = spec.priority if spec.priority is not None else SYSTEM_CLASSES.get(spec.priority_class_name or "")
    policy = spec.preemption_policy
    if named is not None:
        priority = named.value if priority is None else priority
        policy = policy or named.preemption_policy
    return replace(
        pod,
        spec=replace(
            spec,
            priority=priority,
            preemption_policy=policy,
            resources=_requested(spec),
            scheduler_name=spec.scheduler_name or "default-scheduler",
        ),
    )


def _container(container: Container, spec: PodSpec) -> Container:
    """Its limits are requests, and on the node's network its ports are the node's."""
    resources, ports = container.resources, container.ports
    if resources is not None and resources.limits:
        resources = replace(resources, requests=resources.limits | (resources.requests or {}))
    if ports and spec.host_network:
        ports = [replace(port, host_port=port.host_port or port.container_port) for port in ports]
    return replace(container, resources=resources, ports=ports)


def _requested(spec: PodSpec) -> ResourceRequirements | None:
    """Of a pod that limits itself as a whole: it asks for what its containers ask for, and for its limit where they say nothing."""
    if spec.resources is None or not spec.resources.limits:
        return spec.resources
    limits = {name: limit for name, limit in spec.resources.limits.items() if is_pod_level(name)}
    summed = {name: quantity(format_milli(milli)) for name, milli in requested_by_containers(spec).items() if name in POD_LEVEL}
    return replace(spec.resources, requests=limits | summed | (spec.resources.requests or {}))
