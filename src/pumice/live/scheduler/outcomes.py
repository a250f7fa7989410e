"""What the outcome of a request means: what it says of pods (`assumed_pods.py`) and of the memory of what was sent, and who is told.

What an outcome changes in the memory of what was sent waits for the end of a cycle, as requests are made on the cycle's thread.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from pumice.api.kinds import POD_GROUPS, ObjectRef
from pumice.api.pod import Pod
from pumice.api.structs import decoder
from pumice.api.volcano import NodeShard, PodGroup, Queue
from pumice.client.client import is_refusal, of_ending_namespace
from pumice.client.event_correlator import EventRecord, InvolvedObject
from pumice.client.failures import ApiError, KubeError
from pumice.live.fault_log import FirstOfMany
from pumice.live.scheduler.assumed_pods import AssumedPods
from pumice.live.scheduler.cycle_timing import Urgency
from pumice.live.scheduler.decisions_to_requests import about_pod
from pumice.live.scheduler.handle import Handle
from pumice.live.scheduler.prebind import PodGone
from pumice.live.scheduler.requests import BindPod, EvictPod, MarkPod, OpenGate, ReadPod, ReleaseClaim, Request, WriteCondition, WriteStatus
from pumice.live.scheduler.watched_resources import RawObjects, slim
from pumice.scheduler.model import Task, status

STATUS_OF: dict[str, type[PodGroup | Queue | NodeShard]] = {"PodGroup": PodGroup, "Queue": Queue, "NodeShard": NodeShard}
WHOLE_KINDS = (*STATUS_OF, "PersistentVolumeClaim", "PersistentVolume")
IN_WORDS = {"PodGroup": "PodGroup {}", "Queue": "the status of queue {}", "NodeShard": "the status of NodeShard {}"}
log = logging.getLogger(__name__)


class Outcomes:
    """Handles the outcomes of requests, as the sender reports them."""

    def __init__(self, handle: Handle, pod_version: Callable[[str, str], int]) -> None:
        """`pod_version` returns the resourceVersion at which the watch last showed a pod (namespace, name)."""
        self.raw_objects = {kind: RawObjects() for kind in WHOLE_KINDS}
        self.lost_lead = False
        self.assumed = AssumedPods(handle, pod_version)
        self._cluster = handle.cluster
        self._state = handle.state
        self._sent_status = handle.sent_status
        self._clock = handle.clock
        self._metrics = handle.metrics
        self._tell = handle.tell
        self._request_cycle = handle.request_cycle
        self._log = FirstOfMany(log)

    def is_there(self, pod: ObjectRef) -> bool:
        """Whether a pod has not been deleted, as far as is known."""
        return self.assumed.task(pod) is not None

    # ---- outcomes of requests

    def done(self, request: Request, answer: bytes) -> None:
        """Note that the server granted a request. `answer` is the written object; it is empty for binds and evictions."""
        match request:
            case BindPod():
                self._bound(request)
            case EvictPod():
                self._state.change(self.assumed.grant, ReadPod(request.pod, status.RELEASING), self._clock.now())
                self._metrics.evictions.add("deleted")
            case WriteStatus():
                self._written(request, answer)

    def failed(self, request: Request, error: KubeError) -> None:
        self._state.change(self._failed, request, error)

    def _failed(self, request: Request, error: KubeError) -> None:
        match request:
            case BindPod():
                self._metrics.binds.add("failed")
                if _is_over(error):
                    log.debug("pod %s, which is ending, was not bound to %s: %s", request.pod, request.node, error)
                    return
                self._warn("Bind", error, "pod %s was not bound to %s: %s", request.pod, request.node, error)
                self._tell(EventRecord(about_pod(request.pod), "Warning", "FailedScheduling", f"binding to {request.node} failed: {error}"))
            case EvictPod():
                self._metrics.evictions.add("failed")
                self._warn("Evict", error, "pod %s was not evicted: %s", request.pod, error)
            case OpenGate():
                self._not_written("Gate", request.pod.uid, f"the gate of pod {request.pod}", about_pod(request.pod), error)
            case MarkPod():
                self._sent_status.marks.pop(request.pod.uid, None)
                self._not_written("Pod", request.pod.uid, f"the status of pod {request.pod}", about_pod(request.pod), error)
            case WriteStatus():
                self._unwritten(request, error)
            case WriteCondition():
                self._sent_status.natives.pop(str(request.group), None)
                self._warn("Condition", error, "the condition of PodGroup %s was not written: %s", request.group, error)
            case ReleaseClaim():
                self._warn("Release", error, "the devices of claim %s were not given back: %s", request.claim, error)

    def _warn(self, call: str, error: KubeError, message: str, *arguments: object) -> None:
        alike = (call, error.code, error.reason) if isinstance(error, ApiError) else (call, type(error))
        self._log.warning(alike, self._clock.now(), message, *arguments)

    # ---- pods

    def _bound(self, request: BindPod) -> None:
        self._state.change(self.assumed.grant, ReadPod(request.pod, status.BINDING), self._clock.now())
        self._state.change(self._sent_status.pauses.forget, "Fault", str(request.pod))
        self._metrics.binds.add("bound")
        self.reached(request, "Bound")
        self._tell(EventRecord(about_pod(request.pod), "Normal", "Scheduled", f"Successfully assigned {request.pod} to {request.node}"))

    def watched(self, task: Task) -> None:
        """Record that the watch has shown a new pod."""
        self._metrics.observe_stage(task, "Watched", self._clock.now())

    def reached(self, request: BindPod, stage: str) -> None:
        """Record that a pod has reached a stage of its bind (PreBound: everything that the bind requires is done)."""
        task = self.assumed.task(request.pod)
        if task is not None:
            self._metrics.observe_stage(task, stage, self._clock.now())

    def took(self, stage: str, seconds: float) -> None:
        """Record how long a stage of a bind (PreBind, Bind) took."""
        self._metrics.stages.observe(seconds * 1000, stage)

    async def on_fault(self, request: Any, error: Exception) -> float:
        """Record that a fault of ours made a request fail (`failed` may follow). Return for how many seconds its pod is left alone."""
        self._metrics.faults.add(type(request).__name__)
        log.error("%s %s failed by a fault of ours: %s", type(request).__name__, request[0], error, exc_info=error)
        held_back = request.kind.kind if isinstance(request, WriteStatus) else "Fault"
        longer = partial(self._sent_status.pauses.longer, held_back, str(request[0]), self._clock.now())
        return await self._state.changed(longer)

    async def pod_read(self, request: ReadPod, pod: Pod | None) -> bool:
        """Take over a pod as it was read after a failure, None if it is gone. Return False if a newer version is known: read it again."""
        return await self._state.changed(partial(self.assumed.take, request, pod))

    # ---- statuses

    def _written(self, request: WriteStatus, answer: bytes) -> None:
        kind = request.kind.kind
        metadata = decoder(STATUS_OF[kind]).decode(answer).metadata
        self.raw_objects[kind].keep(str(request.ref), metadata, slim(answer))
        self._state.change(self._sent_status.written, request, int(metadata.resource_version or 0))
        self._metrics.writes.add(kind, "written")

    def _unwritten(self, request: WriteStatus, error: KubeError) -> None:
        kind, key = request.kind.kind, str(request.ref)
        if self._sent_status.unwritten(request) and request.kind == POD_GROUPS and not is_refusal(error) and not _is_gone(error):
            self._tell_again(key)
        about = InvolvedObject(kind, request.ref.name, request.ref.namespace, request.ref.uid, request.kind.api_version)
        self._not_written(kind, key, IN_WORDS[kind].format(key), about, error)

    def _tell_again(self, uid: str) -> None:
        """Let the next cycle report the status of the job again."""
        job = self._cluster.jobs.get(uid)
        if job is not None and job.group is not None:
            self._cluster.report_again(job)

    def _not_written(self, kind: str, key: str, what: str, about: InvolvedObject, error: KubeError) -> None:
        """Report a failed write. The next cycle makes it again: after the period, or, if it was refused, after a growing pause. What
        is gone has a pause too: the watch is about to show that. After the cycle the loop knows of the pause."""
        self._metrics.writes.add(kind, "failed")
        if _is_gone(error):
            self._sent_status.pauses.longer(kind, key, self._clock.now())
        elif not is_refusal(error):
            if isinstance(error, ApiError) and error.code >= 500:
                self._warn(kind, error, "%s was not written: %s", what, error)
        elif self._sent_status.pauses.refused(kind, key, self._clock.now()) and not of_ending_namespace(error):
            log.warning("%s was not written, and is tried again with pauses, as are others like it: %s", what, error)
            self._tell(EventRecord(about, "Warning", "WriteRefused", f"{what} was not written: {error}"))
        self._request_cycle(Urgency.LATER)

    def fenced(self) -> None:
        """Note that the fence held back a write, because this replica no longer leads."""
        self.lost_lead = True
        self._request_cycle(Urgency.SOON)


def _is_gone(error: KubeError) -> bool:
    return isinstance(error, ApiError) and error.code == 404


def _is_over(error: KubeError) -> bool:
    """Whether a pod was not bound because it, or its namespace, is being deleted or is gone."""
    if of_ending_namespace(error) or isinstance(error, PodGone):
        return True
    return _is_gone(error) or (isinstance(error, ApiError) and error.code == 409 and "is being deleted" in error.message)
