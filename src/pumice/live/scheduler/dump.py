"""The state of a scheduler as a file that `pumice cycle -f` reads: what it believes at this moment, its assumptions included.

Pods are rebuilt from tasks, so only what decisions read is in them. A bind under way shows as a pod on its node, an eviction as a deletion.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from pumice.api.manifests import CONFIG_MAP_KEYS
from pumice.api.meta import Condition, OwnerReference, Wire
from pumice.api.pod import Pod, PodResourceClaimStatus
from pumice.api.structs import API_VERSIONS, encode
from pumice.api.times import rfc3339
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.job import is_shadow
from pumice.scheduler.model.task import Task, as_pod

PHASES = {status.RUNNING: "Running", status.SUCCEEDED: "Succeeded", status.FAILED: "Failed", status.UNKNOWN: "Unknown"}


def dump(cluster: Cluster, configuration: str) -> bytes:
    """A List of objects as JSON, and the configuration as Volcano's ConfigMap."""
    bodies = [_body(kind, item) for kind, item in _objects(cluster)]
    if configuration:
        meta = {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"}
        data = {CONFIG_MAP_KEYS[0]: configuration}
        bodies.append(encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}))
    return b'{"apiVersion":"v1","kind":"List","items":[\n' + b",\n".join(bodies) + b"\n]}\n"


def _body(kind: str, item: Wire) -> bytes:
    """The object, told what it is."""
    return b'{"apiVersion":"%b","kind":"%b",%b' % (API_VERSIONS[kind].encode(), kind.encode(), encode(item)[1:])


def _objects(cluster: Cluster) -> Iterator[tuple[str, Wire]]:
    """In an order that another reader takes over: nodes and pods as they came."""
    for kind, objects in cluster.objects.items():
        yield from ((kind, item) for item in objects.values())
    for row in cluster.nodes:
        yield "Node", cluster.nodes.wire[row]
    yield from (("Queue", queue.wire) for queue in cluster.queues.values() if queue.wire is not None)
    for job in cluster.jobs.values():
        if job.group is not None and not is_shadow(job.group):
            yield "PodGroup", replace(job.group, status=replace(job.group.status, phase=job.phase))
    for task in sorted(cluster.tasks.values(), key=lambda task: task.number):
        yield "Pod", pod_of(task)


def pod_of(task: Task) -> Pod:
    """The pod that this task would be made of."""
    plain = as_pod(task)
    kind, _, owner = task.controller.partition("/")
    leaving = task.status == status.RELEASING
    meta = replace(
        plain.metadata,
        creation_timestamp=rfc3339(task.created) if task.created else None,
        deletion_timestamp=rfc3339(task.created) if leaving else None,
        owner_references=[OwnerReference(owner, kind=kind, controller=True)] if owner else None,
    )
    # a pod that leaves a node was running there; without a node it was pending
    phase = PHASES.get(task.status, "Running" if leaving and task.node_name else "Pending")
    state = replace(
        plain.status,
        phase=phase,
        conditions=list(_conditions(task)) or None,
        start_time=rfc3339(task.started) if task.started is not None else None,
        resource_claim_statuses=[PodResourceClaimStatus(name, made) for name, made in task.claims if made] or None,
    )
    return Pod(meta, plain.spec, state)


def _conditions(task: Task) -> Iterator[Condition]:
    if task.placed_at is not None:
        yield Condition("PodScheduled", "True", last_transition_time=rfc3339(task.placed_at))
    if task.disrupted:
        yield Condition("DisruptionTarget", "True", "PreemptionByScheduler")
