"""The kept state as objects: what a scheduler believes at a moment, its assumptions included.

Taking it is cheap, so that nobody waits for it; the objects are made later, on another thread. Pods are rebuilt from tasks, so only what
decisions read is in them. A bind under way shows as a pod on its node, an eviction as a deletion.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from pumice.api.annotations import ALLOCATED_HYPERNODE
from pumice.api.meta import Condition, OwnerReference, Wire
from pumice.api.pod import Pod, PodResourceClaimStatus
from pumice.api.times import rfc3339
from pumice.api.volcano import PodGroup
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.job import Job, is_shadow
from pumice.scheduler.model.task import Task, as_pod

PHASES = {status.RUNNING: "Running", status.SUCCEEDED: "Succeeded", status.FAILED: "Failed", status.UNKNOWN: "Unknown"}


FIELDS = tuple(name for name in Task.__slots__ if name != "job")
_values = attrgetter(*FIELDS)


def _task(values: tuple[Any, ...]) -> Task:
    """A task as it was."""
    task = Task.__new__(Task)
    for name, value in zip(FIELDS, values, strict=True):
        setattr(task, name, value)
    return task


class Snapshot:
    """See the module."""

    def __init__(self, cluster: Cluster) -> None:
        objects = [(kind, item) for kind, kept in cluster.objects.items() for item in kept.values()]
        objects += [("Node", cluster.nodes.wire[row]) for row in cluster.nodes]
        objects += [("Queue", queue.wire) for queue in cluster.queues.values() if queue.wire is not None]
        objects += [("PodGroup", _group_of(job.group, job)) for job in cluster.jobs.values() if job.group and not is_shadow(job.group)]
        self._objects: list[tuple[str, Wire]] = objects
        self._tasks = list(map(_values, cluster.tasks.values()))

    def objects(self) -> Iterator[tuple[str, Wire]]:
        """In an order that another reader takes over: nodes and pods as they came."""
        yield from self._objects
        yield from (("Pod", pod_of(task)) for task in sorted(map(_task, self._tasks), key=lambda task: task.number))


def _group_of(group: PodGroup, job: Job) -> PodGroup:
    """As the scheduler knows it, which the server may not yet."""
    meta = group.metadata
    if job.allocated_hypernode != (meta.annotations or {}).get(ALLOCATED_HYPERNODE, ""):
        meta = replace(meta, annotations={**(meta.annotations or {}), ALLOCATED_HYPERNODE: job.allocated_hypernode})
    if job.phase == group.status.phase and meta is group.metadata:
        return group
    return replace(group, metadata=meta, status=replace(group.status, phase=job.phase))


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
