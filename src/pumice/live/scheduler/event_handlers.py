"""Applies the changes that reflectors deliver to the kept state, and decides whether they could matter to a cycle.

A change is applied at once, or after the cycle that is deciding (`single_writer.py`). Some changes are not applied as they are:

* pods that are neither ours to place nor on a node, and objects that `--node-selector` or the ring leaves to others, are ignored;
* of a PodGroup or Queue that is older than our last write of its status, the status does not count; a pod older than we read it is ignored;
* objects without a change in the fields that we read (heartbeats, for example) are dropped before they cost anything.
"""

import logging
from typing import Any

from msgspec.structs import replace

from pumice.api.annotations import GROUP_NAME
from pumice.api.core import Node
from pumice.api.kinds import NATIVE_POD_GROUP, POD_GROUPS
from pumice.api.meta import Wire
from pumice.api.plural import counted
from pumice.api.pod import Pod
from pumice.api.volcano import PodGroup, Queue
from pumice.client.known_versions import Change, Deleted
from pumice.live.scheduler.canary_share import ShareFilter
from pumice.live.scheduler.cycle_timing import Urgency
from pumice.live.scheduler.event_translation import PodSnapshot
from pumice.live.scheduler.handle import Handle
from pumice.live.scheduler.options import Options
from pumice.live.scheduler.outcomes import Outcomes
from pumice.live.scheduler.unapplied_objects import UnappliedObjects
from pumice.live.scheduler.watched_resources import RawObject
from pumice.scheduler.model import status
from pumice.scheduler.model.task import key_of

log = logging.getLogger(__name__)
ANOTHER = "another replica"  #: replaces the schedulerName of pods that other replicas place; it is no valid name


class EventHandlers:
    """Applies changes to the kept state. Reflectors deliver to `take`."""

    def __init__(self, handle: Handle, options: Options, outcomes: Outcomes) -> None:
        self._cluster = handle.cluster
        self._event_translation = handle.event_translation
        self._sent_status = handle.sent_status
        self._clock = handle.clock
        self._request_cycle = handle.request_cycle
        self._outcomes = outcomes
        self._unapplied = UnappliedObjects(handle.metrics)
        self._node_labels = options.node_labels
        self._ring = options.sharding.ring
        share = options.sharding.share
        self._share = ShareFilter(share, options.default_queue) if share is not None else None

    def take(self, kind: str, change: Change[Any]) -> None:
        """Apply a change. An object that the model cannot read is passed over, and stops nothing else."""
        self._cluster.clock = self._clock.now()
        try:
            urgency = self._removed(kind, change) if isinstance(change, Deleted) else self._put(kind, change.object, change.key)
        except Exception as error:
            self._unapplied.failed(kind, change, error, self._clock.now())
            self._request_cycle(Urgency.LATER)  # after it the loop knows when to try again, however seldom idle cycles are
            return
        self._unapplied.succeeded(kind, change)
        if urgency:
            self._request_cycle(urgency)

    def turn(self) -> None:
        """Before a cycle: apply the changes again that were passed over and whose pause has ended, and forget what is of no use."""
        self._sent_status.forget_gone(self._cluster.jobs)
        for kind, change in self._unapplied.due(self._clock.now()):
            self.take(kind, change)

    def next_due(self) -> float:
        return self._unapplied.next_due()

    def _put(self, kind: str, item: Any, key: str) -> Urgency:
        match item:
            case Pod():
                return self._pod(item, key)
            case Node():
                return self._node(item)
            case RawObject(PodGroup() as group, raw):
                return self._group(group, raw)
            case RawObject(Queue() as queue, raw):
                return self._queue(queue, raw)
            case RawObject(whole, raw):
                self._outcomes.raw_objects[kind].keep_raw(raw)
                if kind == "NodeShard":
                    self._sent_status.shards.pop(whole.metadata.name, None)
                return self._other(kind, whole)
        return self._other(kind, item)

    # ---- pods

    def _pod(self, pod: Pod, key: str) -> Urgency:
        cluster = self._cluster
        if self._outcomes.assumed.is_older(pod.metadata.uid or "", int(pod.metadata.resource_version or 0)):
            return Urgency.NOTHING
        ours = (pod.spec.scheduler_name or "default-scheduler") in cluster.schedulers
        if ours and not self._has_pod(pod):
            ours, pod = False, replace(pod, spec=replace(pod.spec, scheduler_name=ANOTHER))
        self._note_whose(pod, ours)
        if not ours and (not pod.spec.node_name or status.of_pod(pod) & status.FINISHED):
            return self._pod_gone(key)
        task = cluster.tasks.get(key)
        before = PodSnapshot.at(task) if task is not None else None
        cluster.put("Pod", pod, key)
        task = cluster.tasks[key]
        self._event_translation.pod(before, task)
        if before is None and ours and task.status == status.PENDING:
            self._outcomes.watched(task)
        return _difference(before, PodSnapshot.at(task)) if before is not None else Urgency.SOON

    def _has_pod(self, pod: Pod) -> bool:
        """Whether a pod is in our part, where several schedulers or replicas share the cluster."""
        if self._share is not None and not self._share.has_pod(pod):
            return False
        return self._ring is None or self._ring.has_job_of(pod.metadata)

    def _note_whose(self, pod: Pod, ours: bool) -> None:
        """Note from a pod whether its PodGroup is ours or another scheduler's. Pods that have ended count too."""
        group = (pod.metadata.annotations or {}).get(GROUP_NAME)
        others = self._sent_status.others
        if group and (others or not ours):
            change = others.discard if ours else others.add
            change(f"{pod.metadata.namespace or 'default'}/{group}")

    def _pod_gone(self, key: str) -> Urgency:
        task = self._cluster.tasks.get(key)
        if task is None:
            return Urgency.NOTHING
        self._sent_status.forget_pod(task.uid)
        self._event_translation.pod_gone(task)
        self._cluster.remove("Pod", key)
        return Urgency.LATER if task.status & status.FINISHED else Urgency.SOON

    # ---- nodes

    def _node(self, node: Node) -> Urgency:
        cluster, name = self._cluster, node.metadata.name
        labels = node.metadata.labels or {}
        chosen = not self._node_labels or any(labels.get(key) == value for key, value in self._node_labels)
        if not chosen or not (self._ring is None or self._ring.has(name)):
            return self._node_gone(name)
        known = self._known_node(name)
        if known is not None and _same(known, node):
            return Urgency.NOTHING
        cluster.put("Node", node)
        self._event_translation.node(known, node)
        return Urgency.SOON

    def _known_node(self, name: str) -> Node | None:
        nodes = self._cluster.nodes
        row = nodes.rows.get(name)
        return nodes.wire[row] if row is not None and nodes.alive[row] else None

    def _node_gone(self, name: str) -> Urgency:
        if name not in self._cluster.nodes.rows:
            return Urgency.NOTHING
        known = self._known_node(name)
        self._cluster.remove("Node", name)
        self._event_translation.node(known, None)
        return Urgency.SOON

    # ---- groups and queues

    def _group(self, group: PodGroup, raw: bytes) -> Urgency:
        cluster, meta = self._cluster, group.metadata
        if self._ring is not None and not self._ring.has_job_of(meta):
            return Urgency.NOTHING
        key = f"{meta.namespace}/{meta.name}"
        if self._share is not None and not self._is_of_share(key, group):
            return Urgency.NOTHING
        self._outcomes.raw_objects["PodGroup"].keep(key, meta, raw)
        job = cluster.jobs.get(key)
        known = job.group if job is not None else None
        older = self._sent_status.is_older(key, meta.uid or "", int(meta.resource_version or 0))
        phase, domain, places = (job.phase, job.allocated_hypernode, job.held_places) if job is not None else ("", "", "")
        if job is not None and known is not None and _same(known, group):
            return Urgency.NOTHING
        cluster.put("PodGroup", group)
        if older and job is not None:
            job.allocated_hypernode = domain
            cluster.hold_places(job, places)
            cluster.set_phase(job, phase)
        if known is None or known.metadata.uid != meta.uid or known.spec != group.spec or cluster.jobs[key].phase != phase:
            return Urgency.SOON
        return Urgency.NOTHING

    def _is_of_share(self, key: str, group: PodGroup) -> bool:
        """Whether a PodGroup is in our share. Pods that came before it are applied now; a PodGroup that has left the share is removed."""
        assert self._share is not None
        is_ours, early = self._share.has_group(group), self._share.early(key)
        for pod in early if is_ours else ():
            self._pod(pod, key_of(pod))
        if not is_ours and key in self._cluster.jobs:
            self._cluster.remove("PodGroup", key)
        return is_ours

    def _queue(self, queue: Queue, raw: bytes) -> Urgency:
        cluster, meta = self._cluster, queue.metadata
        self._outcomes.raw_objects["Queue"].keep(meta.name, meta, raw)
        self._sent_status.on_queue(meta.name, int(meta.resource_version or 0))
        known = cluster.queue(meta.name).wire
        cluster.put("Queue", queue)
        if known is None or known.spec != queue.spec or known.status.state != queue.status.state:
            return Urgency.SOON
        return Urgency.NOTHING if known.metadata.annotations == meta.annotations else Urgency.LATER

    # ---- the rest

    def _other(self, kind: str, item: Any) -> Urgency:
        meta = item.metadata
        generation = meta.generation if kind == NATIVE_POD_GROUP else None  # the condition that is written says which one it is about
        item = replace(item, metadata=replace(meta, resource_version=None, generation=generation))
        key = meta.key
        before = self._cluster.of(kind).get(key)
        if before == item:
            return Urgency.NOTHING
        stopped_before = len(self._cluster.stopped)
        self._cluster.put(kind, item)
        self._event_translation.other(kind, before, item)
        stopped = len(self._cluster.stopped) - stopped_before
        if stopped > 0:
            waiting = counted(stopped, "pod that waits there is", "pods that wait there are")
            log.info("namespace %s is being deleted: %s placed no more", key, waiting)
            self._event_translation.other(POD_GROUPS.kind)
        return Urgency.SOON

    def _removed(self, kind: str, gone: Deleted) -> Urgency:
        key = f"{gone.namespace}/{gone.name}" if gone.namespace else gone.name
        if self._share is not None:
            self._share.gone(kind, key)
        if kind == "Pod":
            self._outcomes.assumed.forget(gone.uid)
            self._sent_status.forget_pod(gone.uid)
            return self._pod_gone(key)
        if kind == "Node":
            return self._node_gone(key)
        if kind in self._outcomes.raw_objects:
            self._outcomes.raw_objects[kind].forget(key)
        if kind == "PodGroup":
            self._sent_status.forget_group(key)
        elif kind == "Queue":
            self._sent_status.queues.pop(key, None)
        elif kind == "NodeShard":
            self._sent_status.shards.pop(key, None)
        elif kind == NATIVE_POD_GROUP:
            self._sent_status.natives.pop(key, None)
        before = self._cluster.of(kind).get(key)
        self._cluster.remove(kind, key)
        self._event_translation.other(kind, before)
        return Urgency.SOON


def _same(known: Any, new: Any) -> bool:
    """Whether two versions of an object are equal in all fields that we read, except resourceVersion and generation."""
    if known.metadata.resource_version == new.metadata.resource_version:
        return True
    return bool(_versionless(known) == _versionless(new))


def _versionless(item: Any) -> Wire:
    form: Wire = replace(item, metadata=replace(item.metadata, resource_version=None, generation=None))
    return form


def _difference(before: PodSnapshot, after: PodSnapshot) -> Urgency:
    """How soon a change of a pod can matter to a decision."""
    if before == after:
        return Urgency.NOTHING
    if (before.uid, before.own) != (after.uid, after.own):
        return Urgency.SOON
    if before.node_name == after.node_name and not after.status & (status.FINISHED | status.RELEASING | status.PENDING):
        return Urgency.LATER  # what the pod holds stays; Bound, Running and the like only show in its PodGroup
    return Urgency.SOON
