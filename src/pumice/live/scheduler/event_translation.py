"""Turns changes of objects into kube-scheduler's cluster events: a waiting pod that an event could help is tried again, the others stay.

Only where the policy has the action `schedule`: each cycle gets the `queue` and tries the pods that are due. Here every change that the
watch shows becomes the cluster event that it means. Pods that Volcano's actions place are not in this queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pumice.api.core import Node
from pumice.api.kinds import KINDS
from pumice.scheduler.framework.cluster_events import ClusterEvent, EventKind, of_node, of_own
from pumice.scheduler.framework.pods_to_try import EVERYBODY, WaitingPods
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import Cluster, Task, Template, status
from pumice.scheduler.model.shared_templates import Pairs

if TYPE_CHECKING:
    from pumice.scheduler.kube.scheduling_queue import SchedulingQueue

COMPARED = {kind.value: kind for kind in EventKind if kind.value in {known.kind for known in KINDS}}
OTHERS = {
    **dict.fromkeys(("Service", "ReplicationController", "ReplicaSet", "StatefulSet"), EventKind.SELECTORS),
    "DeviceTaintRule": EventKind.DEVICE_TAINTS,
    "Numatopology": EventKind.OTHER,
    "PodGroup": EventKind.ANYTHING,  #: a PodGroup that is gone waits for no room any more
}
NEVER = float("inf")


class PodSnapshot(NamedTuple):
    """All fields of a task that decisions read."""

    status: int
    nominated: str
    node_name: str
    uid: str
    template: Template
    labels: Pairs
    annotations: Pairs
    priority: int
    claims: tuple[tuple[str, str], ...]
    resize_deferred: bool

    @classmethod
    def at(cls, task: Task) -> PodSnapshot:
        own = (task.uid, task.template, task.labels, task.annotations, task.priority, task.claims, task.resize_deferred)
        return cls(task.status, task.nominated, task.node_name, *own)

    @property
    def own(self) -> tuple[object, ...]:
        """All fields except the status, the nominated node and the node."""
        return self[4:]

    @property
    def room(self) -> str:
        """The node where the pod takes room, or where room is held for it; empty if there is none."""
        if self.status == status.PENDING:
            return self.nominated
        return "" if self.status & status.FINISHED else self.node_name

    @property
    def stands(self) -> bool:
        """Whether the pod is on a node, and the server has confirmed it."""
        return bool(self.node_name) and not self.status & (status.FINISHED | status.PENDING | status.BINDING)


class EventTranslation:
    """Sends cluster events to the scheduling queue. Its methods are called when the kept state has the change, but `pod_gone` before."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._scheduling_queue: SchedulingQueue | None = None
        self._alone = False

    def adopt(self, policy: Policy) -> None:
        """Take over another policy. Under it all waiting pods are tried anew."""
        profiles = policy.profiles
        self._alone = not policy.places_gangs
        self._scheduling_queue = None
        if profiles is not None:
            from pumice.scheduler.kube.scheduling_queue import (
                SchedulingQueue,  # kube-scheduler's loop is loaded only where there are profiles
            )

            self._scheduling_queue = SchedulingQueue(self._cluster, profiles.initial_backoff_s, profiles.max_backoff_s)

    def place_of(self, task: Task) -> str:
        """Where a pod waits in the scheduling queue, in kube-scheduler's words; empty if it is not there."""
        return self._scheduling_queue.place_of(task) if self._scheduling_queue is not None else ""

    @property
    def queue(self) -> WaitingPods:
        """The queue from which cycles take the waiting pods to try."""
        return self._scheduling_queue if self._scheduling_queue is not None else EVERYBODY

    @property
    def scheduling_queue(self) -> SchedulingQueue | None:
        """The queue, if the policy has profiles."""
        return self._scheduling_queue

    @property
    def someone_is_left(self) -> bool:
        """Whether a pod or job waits that no queueing hint will wake."""
        cluster = self._cluster
        if self._scheduling_queue is None:
            return bool(cluster.waiting or cluster.not_enqueued or cluster.without_job)
        return not self._alone and bool(cluster.waiting or cluster.not_enqueued)

    def next_due(self) -> float:
        """When the next pod is due without any event: its backoff ends, or it has waited long enough. NEVER if none is."""
        due = self._scheduling_queue.next_due() if self._scheduling_queue is not None else None
        return NEVER if due is None else due

    # ---- changes

    def pod(self, before: PodSnapshot | None, task: Task) -> None:
        if self._scheduling_queue is None:
            return
        now = PodSnapshot.at(task)
        if before is None:
            before = now._replace(node_name="", nominated="")
        if now.stands and not before.stands:
            self._scheduling_queue.forget(task)
            self._tell(EventKind.POD_PLACED, task)
        if before.room not in ("", now.room):
            self._tell(EventKind.POD_GONE, task)
        if before.stands and now.stands:
            self._changed(before, now, task)
        elif before.own != now.own:
            for event in of_own(task, before.labels, before.template, before.claims):
                self._scheduling_queue.happened(event)

    def _changed(self, before: PodSnapshot, now: PodSnapshot, task: Task) -> None:
        """Send the events for a change of a pod that is on a node, now as before."""
        assert self._scheduling_queue is not None
        if now.status == status.RELEASING != before.status:
            self._tell(EventKind.POD_LEAVING, task)
        if before.labels != now.labels:
            self._scheduling_queue.happened(ClusterEvent(EventKind.POD_LABELS, task.node_name, task, labels=before.labels))
        if before.template is not now.template:
            self._scheduling_queue.happened(ClusterEvent(EventKind.POD_SHRUNK, task.node_name, task, before.template.taken))
        if before.resize_deferred and not now.resize_deferred:
            self._scheduling_queue.forget(task)
        elif before.resize_deferred and before.template is not now.template:
            self._tell(EventKind.OWN_RENEWAL, task)

    def evicted(self, task: Task) -> None:
        """Send the event for a pod that we evict. The watch leads to no further event until the pod is gone."""
        if self._scheduling_queue is not None:
            self._tell(EventKind.POD_LEAVING, task)

    def pod_gone(self, task: Task) -> None:
        """Send the events for a pod that is gone, before the kept state forgets on which node it was."""
        if self._scheduling_queue is not None:
            self._scheduling_queue.forget(task)
            if PodSnapshot.at(task).room:
                self._tell(EventKind.POD_GONE, task)
            if task.status == status.PENDING and not self._alone:
                self._tell(EventKind.ANYTHING, task)  # room may have been kept for its gang

    def read_again(self, before: PodSnapshot, task: Task, now: float) -> None:
        """Send the events for a pod that was read because its assumed status was in doubt. If its bind has failed, it backs off."""
        if self._scheduling_queue is not None:
            if before.status == status.BINDING and task.status == status.PENDING:
                self._scheduling_queue.failed(task, now)
            elif before.status == status.RELEASING != task.status:
                self._scheduling_queue.eviction_failed(task.node_name)
        self.pod(before, task)

    def node(self, before: Node | None, after: Node | None) -> None:
        if self._scheduling_queue is not None:
            for event in of_node(self._cluster, before, after):
                self._scheduling_queue.happened(event)

    def other(self, kind: str, before: Any = None, after: Any = None) -> None:
        """Send the event for a change of an object of another kind. `before` and `after` count only where they are compared."""
        if self._scheduling_queue is None:
            return
        if kind in OTHERS:
            self._scheduling_queue.happened(ClusterEvent(OTHERS[kind]))
        elif kind in COMPARED and (before is not None or after is not None):
            self._scheduling_queue.happened(ClusterEvent(COMPARED[kind], old=before, new=after))

    def _tell(self, what: EventKind, task: Task) -> None:
        assert self._scheduling_queue is not None
        self._scheduling_queue.happened(ClusterEvent(what, task.node_name, task))
