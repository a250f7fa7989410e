"""What an API server and Volcano's webhooks fill in when objects are created, done to objects that come from files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from pumice.api.annotations import NAMESPACE_NAME
from pumice.api.core import Namespace, PriorityClass
from pumice.api.errors import InputError
from pumice.api.kinds import CLUSTER_WIDE
from pumice.api.manifests import Manifest
from pumice.api.meta import DEFAULT_QUEUE, ROOT_QUEUE, Metadata, Wire
from pumice.api.pod import Container, Pod, PodSpec, ResourceRequirements
from pumice.api.quantity import format_milli, quantity
from pumice.api.quota import why_refused
from pumice.api.structs import API_VERSIONS, KINDS, convert, encode
from pumice.api.volcano import Queue, QueueSpec, QueueStatus
from pumice.controllers import admission, kinds
from pumice.controllers.controller import Create
from pumice.controllers.in_memory import InMemoryLoop, Memory
from pumice.controllers.objects import Object, controller_of, namespace_of
from pumice.controllers.registry import kubernetes_controllers, volcano_controllers
from pumice.controllers.volcano.job.plugins import SshKeyPair
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


# Workloads of files as the pods, PodGroups and claims that their controllers would make of them: the controllers themselves make these.
#
# A workload that comes from a server (it has a uid) has been looked after there, and what its controllers made is in the same dump.
# Volcano's controllers make no pods before a job is let in; here they are there from the start, and enqueue decides in the cycle whether
# they may run.

NO_KEYS = SshKeyPair("", "")
MADE = (kinds.POD_GROUP, kinds.POD, kinds.CLAIM, kinds.REPLICA_SET)
CHARGED = {kinds.POD: "pods", kinds.CLAIM: "persistentvolumeclaims"}  #: what quotas count of it
LOOKED_UP = ("Node", "PersistentVolumeClaim", "Queue", "PodGroup")


def expanded(
    manifests: Iterable[Manifest], present: Sequence[tuple[str, Wire]], now: float, tell: Callable[[str], None] | None = None
) -> list[tuple[str, Wire]]:
    """What controllers make of the manifests in a cluster that holds `present` (with defaults). Raises InputError for a wrong manifest.
    With `tell`, all of it is there at a time: what a ResourceQuota keeps from being made is left out, and told."""
    wanted = [manifest for manifest in manifests if not manifest.obj["metadata"].get("uid")]
    if not wanted:
        return []
    world = Memory((_plain(kind, item) for kind, item in present if kind in LOOKED_UP), now)
    known = {kind: {subject["metadata"]["uid"] for subject in world.all(kind)} for kind in MADE}
    controllers = [*volcano_controllers(lambda: NO_KEYS), *kubernetes_controllers()]
    loop = InMemoryLoop(world, controllers)
    for manifest in wanted:
        loop.observe(world.apply(Create(_admitted(manifest, world))))
    loop.settle(now)
    for group in list(world.all(kinds.POD_GROUP)):
        loop.observe(world.put({**group, "status": {"phase": "Inqueue"}}))
    loop.settle(now)
    made = [subject for kind in MADE for subject in world.all(kind) if subject["metadata"]["uid"] not in known[kind]]
    return [_wire(subject) for subject in (_within_quotas(made, present, tell) if tell is not None else made)]


def _within_quotas(made: Iterable[Object], present: Iterable[tuple[str, Wire]], tell: Callable[[str], None]) -> list[Object]:
    """Those that no quota of their namespace refuses, one after the other, beside what is there."""
    there = [_plain(kind, item) for kind, item in present if kind in CHARGED or kind == kinds.RESOURCE_QUOTA]
    quotas = [subject for subject in there if subject["kind"] == kinds.RESOURCE_QUOTA]
    held: dict[tuple[str, str], list[Object]] = {}
    for subject in there:
        held.setdefault((namespace_of(subject), CHARGED.get(subject["kind"], "")), []).append(subject)
    kept: list[Object] = []
    refused: dict[str, list[str]] = {}
    for subject in made:
        namespace, resource = namespace_of(subject), CHARGED.get(subject["kind"], "")
        existing = partial(_existing, held, namespace)
        own = (quota for quota in quotas if resource and namespace_of(quota) == namespace)
        why = next((text for quota in own if (text := why_refused(quota, resource, subject, None, existing))), "")
        if why:
            owner = controller_of(subject) or subject
            refused.setdefault(f"{subject['kind']}s of {owner['kind']} {namespace}/{owner.get('name')}", []).append(why)
        else:
            kept.append(subject)
            held.setdefault((namespace, resource), []).append(subject)
    for whose, reasons in refused.items():
        tell(f"{len(reasons)} {whose} are not made: {reasons[0]}")
    return kept


def _existing(held: Mapping[tuple[str, str], list[Object]], namespace: str, resource: str) -> list[Object]:
    return held.get((namespace, resource), [])


def _plain(kind: str, item: Wire) -> Object:
    return {"apiVersion": API_VERSIONS[kind], "kind": kind, **msgspec.json.decode(encode(item))}


def _admitted(manifest: Manifest, world: Memory) -> Object:
    """The object with Volcano's defaults."""
    problems = admission.validate(admission.CREATE, obj := admission.mutate(admission.CREATE, manifest.obj, world), None, world)
    if problems:
        raise InputError("; ".join(map(str, problems)), where=manifest.where, subject=f"{obj['kind']} {obj['metadata'].get('name')}")
    return obj


def _wire(subject: Object) -> tuple[str, Wire]:
    """The object as scheduling reads it, not let in yet."""
    kind, _, group = kinds.kind_of(subject).partition(".")
    return kind, convert({**subject, "status": {}}, KINDS[group, kind])
