"""What is assumed of pods: the binds and evictions that were granted, until the watch shows them.

Until then a bind holds its room, and an eviction frees its room only when the pod is gone; the kept state has that (`Task.status`). An
assumption ends in one of three ways. The watch shows what was assumed (confirmed). The write fails and the pod is read again: the read
version then counts (forgotten). The write was granted but the watch never shows it (expired after `EXPIRY_S`): the pod is read again too. A
read version only replaces the assumption for which it was read, and only if the watch has shown nothing newer meanwhile.

How often a bind is tried, and when: `sender.py`.
"""

import logging
from collections.abc import Callable
from itertools import takewhile
from typing import Any, NamedTuple

from pumice.api.kinds import ObjectRef
from pumice.api.pod import Pod
from pumice.live.scheduler.cycle_timing import Urgency
from pumice.live.scheduler.event_translation import PodSnapshot
from pumice.live.scheduler.handle import Handle
from pumice.live.scheduler.requests import ReadPod
from pumice.scheduler.model import Task, status

EXPIRY_S = 30.0  #: so long after a bind or an eviction was granted, the watch must have shown it
GONE = 2**63  #: the version of a pod that is gone: whatever the watch shows of it is older
log = logging.getLogger(__name__)


class Granted(NamedTuple):
    """A bind or an eviction that was granted. If the watch has not shown it until then, the pod is read."""

    read: ReadPod
    until: float


class AssumedPods:
    def __init__(self, handle: Handle, pod_version: Callable[[str, str], int]) -> None:
        """`pod_version` returns the resourceVersion at which the watch last showed a pod (namespace, name)."""
        self._handle = handle
        self._pod_version = pod_version
        self.granted: dict[str, Granted] = {}  #: by uid of the pod, the oldest first
        self._read: dict[str, int] = {}  #: by uid: the version that was read while the watch was behind, until the watch has shown it

    def task(self, ref: ObjectRef) -> Task | None:
        task = self._handle.cluster.tasks.get(f"{ref.namespace}/{ref.name}")
        return task if task is not None and task.uid == ref.uid else None

    def grant(self, read: ReadPod, now: float) -> None:
        self.granted.pop(read.pod.uid, None)
        self.granted[read.pod.uid] = Granted(read, now + EXPIRY_S)

    def expired(self) -> list[ReadPod]:
        """The pods to be read again because the watch did not show in time that they are bound, or being deleted. What it has shown of the
        oldest is forgotten."""
        now = self._handle.clock.now()
        over = list(takewhile(lambda granted: granted.until <= now or not self._is_unseen(granted.read), self.granted.values()))
        unseen = [granted.read for granted in over if self._is_unseen(granted.read)]
        for granted in over:
            del self.granted[granted.read.pod.uid]
        for read in unseen:
            self._handle.metrics.expired.add()
            log.warning("pod %s was bound or evicted, but the watch has not shown it for %.0f s", read.pod, EXPIRY_S)
        return unseen

    def _is_unseen(self, granted: ReadPod) -> bool:
        task = self.task(granted.pod)
        return task is not None and task.status == granted.assumed and not task.deleting

    def take(self, request: ReadPod, pod: Pod | None) -> bool:
        """Take over a pod as it was read, None if it is gone. Return False if a newer version is known: it has to be read again."""
        ref, handle = request.pod, self._handle
        task = self.task(ref)
        if task is None or task.status != request.assumed:
            return True  # the watch has settled it
        version = int(pod.metadata.resource_version or 0) if pod is not None else GONE
        if version < self._pod_version(ref.namespace, ref.name):
            return False
        self.granted.pop(ref.uid, None)
        self._read[ref.uid] = version
        if pod is None:
            handle.event_translation.pod_gone(task)
            handle.cluster.remove("Pod", f"{ref.namespace}/{ref.name}")
        else:
            before = PodSnapshot.at(task)
            handle.cluster.restore(pod)
            handle.event_translation.read_again(before, task, handle.clock.now())
        handle.request_cycle(Urgency.SOON)
        return True

    def is_older(self, uid: str, version: int) -> bool:
        """Whether the watch shows a pod as it was before we read it. If that were taken over, the pod would go back in time."""
        if version < self._read.get(uid, 0):
            return True
        self._read.pop(uid, None)
        return False

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone, as the watch has shown."""
        self.granted.pop(uid, None)
        self._read.pop(uid, None)

    def notes_of(self, uid: str) -> dict[str, Any]:
        """What is assumed of a pod, in words."""
        read, until = self.granted.get(uid, (None, None))
        return {"granted": status.NAMES[read.assumed] if read is not None else None, "until": until, "read": self._read.get(uid)}
