"""The kept state as objects: what a scheduler believes at a moment, including its assumptions.

A snapshot is cheap and taken in parts, so that no cycle waits long for it. The objects are made later, on another thread. Pods are rebuilt
from tasks, so they hold only the fields that decisions read. A bind under way shows as a pod on its node, an eviction as a deletion.
"""

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from pumice.api import rfc3339
from pumice.api.annotations import ALLOCATED_HYPERNODE, HELD_PLACES
from pumice.api.meta import Condition, Wire
from pumice.api.pod import Pod, PodResourceClaimStatus
from pumice.api.volcano import PodGroup
from pumice.scheduler.model import Cluster, Job, Task, status
from pumice.scheduler.model.task import as_pod, metadata_of

PHASES = {status.RUNNING: "Running", status.SUCCEEDED: "Succeeded", status.FAILED: "Failed", status.UNKNOWN: "Unknown"}
AT_ONCE = 1000  #: the most tasks that are copied while a cycle waits

FIELDS = tuple(name for name in Task.__slots__ if name != "job")
_values = attrgetter(*FIELDS)


def _task(values: tuple[Any, ...]) -> Task:
    """The task whose fields were copied as these values, without its job."""
    task = Task.__new__(Task)
    for name, value in zip(FIELDS, values, strict=True):
        setattr(task, name, value)
    return task


class CopiedTasks:
    """Copies of all tasks, made a few at a time between cycles. Tasks that change meanwhile are copied again at the end."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._left = list(cluster.tasks.values())
        self._copies: dict[str, tuple[Any, ...]] = {}
        self._changed: set[str] = set()

    def go_on(self) -> bool:
        """Copy some more tasks. Return whether all have been copied."""
        for task in self._left[-AT_ONCE:]:
            self._copies[task.key] = _values(task)
        del self._left[-AT_ONCE:]
        return not self._left

    def change(self, keys: Iterable[str]) -> None:
        """Note that the tasks of these keys were added, changed or removed."""
        self._changed.update(keys)

    def all(self) -> list[tuple[Any, ...]]:
        """The values of all tasks as they are now."""
        for key in self._changed:
            task = self._cluster.tasks.get(key)
            if task is None:
                self._copies.pop(key, None)
            else:
                self._copies[key] = _values(task)
        return list(self._copies.values())


class Snapshot:
    """The objects of the kept state at this moment. `tasks` may hold copies of its tasks that were made before."""

    def __init__(self, cluster: Cluster, tasks: list[tuple[Any, ...]] | None = None) -> None:
        objects = [(kind, item) for kind, kept in cluster.objects.items() for item in kept.values()]
        objects += [("Node", cluster.nodes.wire[row]) for row in cluster.nodes]
        objects += [("Queue", queue.wire) for queue in cluster.queues.values() if queue.wire is not None]
        objects += [("PodGroup", _group_of(job.group, job)) for job in cluster.jobs.values() if job.group and not job.is_shadow]
        self._objects: list[tuple[str, Wire]] = objects
        self._tasks = list(map(_values, cluster.tasks.values())) if tasks is None else tasks

    def objects(self) -> Iterator[tuple[str, Wire]]:
        """The objects with their kinds. Nodes and pods are in the order in which they came, which a reader then keeps too."""
        yield from self._objects
        yield from (("Pod", pod_of(task)) for task in sorted(map(_task, self._tasks), key=lambda task: task.number))


def _group_of(group: PodGroup, job: Job) -> PodGroup:
    """The PodGroup with the phase and HyperNode that the scheduler has set, which the API server may not have yet."""
    meta = group.metadata
    for name, text in ((ALLOCATED_HYPERNODE, job.allocated_hypernode), (HELD_PLACES, job.held_places)):
        if text != (meta.annotations or {}).get(name, ""):
            meta = replace(meta, annotations={**(meta.annotations or {}), name: text})
    if job.phase == group.status.phase and meta is group.metadata:
        return group
    return replace(group, metadata=meta, status=replace(group.status, phase=job.phase))


def pod_of(task: Task) -> Pod:
    """The pod from which this task would be made."""
    plain = as_pod(task)
    leaving = task.status == status.RELEASING
    meta = replace(metadata_of(task), deletion_timestamp=rfc3339(task.created) if leaving else None)
    # a pod that is being deleted was running if it is on a node; without a node it was pending
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
