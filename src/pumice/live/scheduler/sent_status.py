"""The memory of what was written to the API server, so that nothing is written twice and no echo of the watch is taken for a change.

* PodGroups and queues: the status that we wrote, from the cycle that decided it until the watch shows an object at least as new as the
  answer to our write. Until then the status that the watch shows is older than the one that we know.
* Pods: the condition of each that waits, as last written, until the pod is bound or gone. If nothing has changed but amounts that only we
  tell, it is written again after a minute, as that of a PodGroup is: they change for all waiting jobs whenever a pod comes or goes.
* Refused writes: until when each of them is not tried again (`WriteBackoff`).
* Gangs that lack pods: when the last pod arrived. For a period from then the lack is not reported, as more pods may be on their way.
* Events: when a message was last sent. If only its amounts change it is sent again after growing pauses: a user who begins to watch just
  after it was sent still sees soon that it holds, and a job that waits for hours costs almost nothing.
"""

import re
from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from pumice.api.kinds import POD_GROUPS, QUEUES
from pumice.live.scheduler.requests import WriteStatus
from pumice.live.scheduler.write_backoff import WriteBackoff
from pumice.scheduler.model import Job, Vector

FIRST_PAUSE_S = 2.0  #: an unchanged message is sent again after so long, then after twice as long, and so on
LONGEST_PAUSE_S = 30.0
KEPT_GONE = 100  #: of so many jobs that are gone something may be remembered

_AMOUNT = re.compile(r"(?<![\w.-])\d[\w.]*(?![\w-])")


@lru_cache(maxsize=1024)
def without_amounts(text: str) -> str:
    """The text with every amount replaced by 0: two texts that differ only in their amounts become equal."""
    return _AMOUNT.sub("0", text)


class Mark(Struct, frozen=True):
    """The condition of a pod that waits."""

    reason: str
    message: str
    nominated: str | None
    at: float  #: when it was written


class GroupNote(msgspec.Struct):
    """The status of a PodGroup as we wrote it. `version`: the resourceVersion of that write, None while it is not known."""

    uid: str
    status: dict[str, Any]
    annotations: dict[str, str | None]
    version: int | None = None


class QueueNote(msgspec.Struct):
    """What a queue holds, as we wrote it. `version` as in `GroupNote`."""

    held: Vector
    version: int | None = None


class SentMessage(msgspec.Struct, frozen=True):
    """The last message of an event reason that was sent about a job."""

    text: str  #: without amounts
    sent_at: float
    pause_s: float


class Arrival(NamedTuple):
    """When a gang was first seen with this number of pods."""

    pods: int
    at: float


class Quiet(Struct, frozen=True):
    """The state of a job of which everything has been reported. As long as all of it is the same, there is nothing to report."""

    reported: Hashable  #: what a cycle reported of the job
    group: tuple[bytes, bytes]  #: as it is written
    note: GroupNote | None
    marks: list[Mark | None]  #: of its pods
    until: float


class SentStatus:
    """Notes of what was written to the server, kept until the watch shows it."""

    def __init__(self, period_s: float = 0.0) -> None:
        self.period_s = period_s
        self._arrivals: dict[str, Arrival] = {}  #: by job uid, of gangs that lack pods
        self.groups: dict[str, GroupNote] = {}  #: by job uid
        self.marks: dict[str, Mark] = {}  #: by pod uid
        self.queues: dict[str, QueueNote] = {}  #: by name
        self.queues_at = -inf  #: when queues were written last
        self.shards: dict[str, tuple[list[str], ...]] = {}  #: by name: nodes in use, to add, to remove
        self.others: set[str] = set()  #: by job uid: PodGroups whose pods other schedulers place, which also report on them
        self.natives: dict[str, tuple[Any, ...]] = {}  #: by key of Kubernetes' own PodGroups: the uid, and the condition last written
        self.pauses = WriteBackoff()
        self.rest_reported_at = -inf  #: when it was last found out why jobs at rest wait
        self.quiet: dict[str, Quiet] = {}  #: by job uid: jobs of which everything has been reported
        self._messages: dict[str, dict[str, SentMessage]] = {}  #: the messages last sent, by job uid and reason

    def marks_of(self, uids: Iterable[str]) -> list[Mark | None]:
        """The conditions last written to these pods."""
        return list(map(self.marks.get, uids))

    def group(self, job_uid: str, group_uid: str) -> GroupNote | None:
        """The note of our last write to the PodGroup with this uid. None if the watch has shown it already."""
        note = self.groups.get(job_uid)
        return note if note is not None and note.uid == group_uid else None

    def is_older(self, job_uid: str, group_uid: str, version: int) -> bool:
        """Whether an object from the watch is older than our last write. If it is not, the note of the write is dropped."""
        note = self.group(job_uid, group_uid)
        if note is not None and (note.version is None or version < note.version):
            return True
        self.groups.pop(job_uid, None)
        return False

    def queues_are_due(self, now: float) -> bool:
        """Whether queues may be written: their amounts change with each bind, so a period passes between two writes."""
        return now >= self.queues_at + self.period_s

    def on_queue(self, name: str, version: int) -> None:
        """Drop the note of a queue if the watch has shown our write."""
        note = self.queues.get(name)
        if note is not None and note.version is not None and version >= note.version:
            del self.queues[name]

    def written(self, request: WriteStatus, version: int) -> None:
        """Note that the server granted a write, and that the object got this resourceVersion."""
        key = str(request.ref)
        if request.kind == POD_GROUPS and (group := self._note_of(request)) is not None:
            group.version = version
        elif request.kind == QUEUES and (queue := self.queues.get(key)) is not None:
            queue.version = version
        self.pauses.forget(request.kind.kind, key)

    def unwritten(self, request: WriteStatus) -> bool:
        """Drop the note of a failed write, so that it is made again. Return False if a newer status of the PodGroup was decided since."""
        key = str(request.ref)
        if request.kind == POD_GROUPS and self._note_of(request) is None:
            return False
        by_kind: dict[str, dict[str, Any]] = {"PodGroup": self.groups, "Queue": self.queues, "NodeShard": self.shards}
        by_kind[request.kind.kind].pop(key, None)
        return True

    def _note_of(self, request: WriteStatus) -> GroupNote | None:
        """The note of a PodGroup, if it belongs to this request and not to a newer one."""
        note = self.group(str(request.ref), request.ref.uid)
        return note if note is not None and note.status is request.status else None

    def holds(self, job_uid: str, reason: str, message: str) -> bool:
        """Whether the last message sent for the reason contains this message, apart from amounts."""
        last = self._messages.get(job_uid, {}).get(reason)
        return last is not None and without_amounts(message) in last.text

    def is_new(self, job_uid: str, reason: str, message: str, now: float) -> bool:
        """Whether to send the message now. If so, it is noted as sent."""
        sent = self._messages.setdefault(job_uid, {})
        last, text = sent.get(reason), without_amounts(message)
        if last is None or last.text != text:
            sent[reason] = SentMessage(text, now, FIRST_PAUSE_S)
        elif now - last.sent_at < last.pause_s:
            return False
        else:
            sent[reason] = SentMessage(text, now, min(LONGEST_PAUSE_S, 2 * last.pause_s))
        return True

    def repeat_at(self, job_uid: str, reason: str) -> float:
        """When the last message of a reason is sent again though nothing has changed; inf if there is none."""
        last = self._messages.get(job_uid, {}).get(reason)
        return inf if last is None else last.sent_at + last.pause_s

    def is_arriving(self, job: Job, now: float) -> bool:
        """Whether the pods that a gang lacks may be on their way: its last pod arrived less than a period ago."""
        last = self._arrivals.get(job.uid)
        if last is None or job.valid_count > last.pods:
            last = self._arrivals[job.uid] = Arrival(job.valid_count, now)
        return now - last.at < self.period_s

    def forget_gone(self, jobs: Mapping[str, Job]) -> None:
        """Forget jobs that are gone, when they are many: pods tell of PodGroups even after their end, and some jobs have no PodGroup."""
        if max(len(self.others), len(self.quiet)) > 2 * len(jobs) + KEPT_GONE:
            self.others &= jobs.keys()
            self.quiet = {uid: quiet for uid, quiet in self.quiet.items() if uid in jobs}

    def forget_pod(self, uid: str) -> None:
        self.marks.pop(uid, None)
        self.pauses.forget("Pod", uid)
        self.pauses.forget("Gate", uid)

    def forget_group(self, job_uid: str) -> None:
        self.groups.pop(job_uid, None)
        self._arrivals.pop(job_uid, None)
        self.others.discard(job_uid)
        self.pauses.forget("PodGroup", job_uid)
        self.quiet.pop(job_uid, None)
        self._messages.pop(job_uid, None)
