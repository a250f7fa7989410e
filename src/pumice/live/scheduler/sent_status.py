"""What we told the API server and have not heard back yet, so that nothing is written twice and no echo is taken for news.

* Groups and queues: a status stands here from the cycle that decided it until the watch shows an object at least as new as the answer to
  our write. Until then what the watch shows of that status is older than what we know.
* Pods: the last condition written, for as long as the pod waits.
* Writes that are refused: until when they are not asked for again.
* Gangs that lack pods: when the last pod came. For a period from then nothing is said of it, as more may be only just coming.
* Events: when a message was told last. One that does not change but in its amounts is told again after growing pauses: who begins to
  watch for it just after it came still sees soon that it holds, and what waits for hours costs next to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from math import inf
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct

from pumice.api.kinds import POD_GROUPS, QUEUES, ObjectRef
from pumice.api.times import instant
from pumice.api.volcano import PodGroup, QueueStatus
from pumice.client.client import Backoff
from pumice.live.scheduler.options import Ring
from pumice.live.scheduler.requests import WriteStatus
from pumice.scheduler.framework.decisions import GroupStatus
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.queue import Queue
from pumice.scheduler.model.resources import EPSILON, Vector

# Writes that the server refuses, and would refuse again: tried ever more rarely, each by itself, and never given up.
#
# A role that lacks a verb, or a webhook that is stricter than we are, says no to every try; but an administrator may mend it, and an API
# server that has just started knows no roles for a moment. What was lost on the way or came too late is no refusal: the next cycle asks
# anew.

BACKOFF = Backoff(2.0, 120.0)
FORGIVEN_S = 300.0  #: after a pause, a refusal is the first again


class Write(Struct, frozen=True):
    kind: str
    name: str  #: namespace/name, or a uid


class Pause(NamedTuple):
    refusals: int
    until: float
    over: bool = False  #: and that was told


class WriteBackoff:
    """Writes that were refused, and how long each is left alone. `now` is the time."""

    def __init__(self) -> None:
        self._pauses: dict[Write, Pause] = {}

    def refused(self, kind: str, name: str, now: float) -> bool:
        """The write is held back from now on, longer each time. Whether it is the first of its kind that is refused."""
        self._forgive(now)
        first = all(write.kind != kind for write in self._pauses)
        self.longer(kind, name, now)
        return first

    def longer(self, kind: str, name: str, now: float) -> float:
        """The next pause of a write, in seconds."""
        self._forgive(now)
        refusals = self._pauses.get(Write(kind, name), Pause(0, now)).refusals
        pause_s = BACKOFF.delay_s(refusals, 1.0)
        self._pauses[Write(kind, name)] = Pause(refusals + 1, now + pause_s)
        return pause_s

    def _forgive(self, now: float) -> None:
        self._pauses = {write: pause for write, pause in self._pauses.items() if now < pause.until + FORGIVEN_S}

    def forget(self, kind: str, name: str) -> None:
        """It was granted, or its object is gone."""
        self._pauses.pop(Write(kind, name), None)

    def __bool__(self) -> bool:
        return bool(self._pauses)

    def holds(self, kind: str, name: str, now: float) -> bool:
        pause = self._pauses.get(Write(kind, name))
        return pause is not None and now < pause.until

    def over(self, kind: str, now: float) -> list[str]:
        """Of a kind, what may be tried again; each is named once."""
        found = [write for write, pause in self._pauses.items() if write.kind == kind and now >= pause.until and not pause.over]
        for write in found:
            self._pauses[write] = self._pauses[write]._replace(over=True)
        return [write.name for write in found]


FIRST_PAUSE_S = 2.0  #: an unchanged message is told again after so long, then after twice that, and so on
LONGEST_PAUSE_S = 30.0


_AMOUNT = re.compile(r"(?<![\w.-])\d[\w.]*(?![\w-])")


def without_amounts(text: str) -> str:
    """The text with all amounts alike: two that are equal then say the same of different numbers."""
    return _AMOUNT.sub("0", text)


class GroupNote(msgspec.Struct):
    """A status of ours. `version`: the resource version that it got, None while that is not known."""

    uid: str
    status: dict[str, Any]
    annotations: dict[str, str | None]
    version: int | None = None


class QueueNote(msgspec.Struct):
    """What a queue holds, as we wrote it."""

    held: Vector
    version: int | None = None


class Mark(msgspec.Struct, frozen=True):
    reason: str
    message: str
    nominated: str | None


class Message(msgspec.Struct, frozen=True):
    """The last of a kind that was told."""

    text: str  #: without amounts
    told_at: float
    pause_s: float


class Arrival(NamedTuple):
    """When a gang was first met with so many pods."""

    pods: int
    at: float


class Quiet(Struct, frozen=True):
    """Nothing is left to be said of a job, as long as all this is so."""

    words: Hashable  #: what a cycle told of it
    group: PodGroup | None
    note: GroupNote | None
    marks: list[Mark | None]  #: of its pods
    until: float


class SentStatus:
    """Notes of what the server was told, until the watch shows it."""

    def __init__(self, period_s: float = 0.0) -> None:
        self._period_s = period_s
        self._arrivals: dict[str, Arrival] = {}  #: by job uid, of gangs that lack pods
        self.groups: dict[str, GroupNote] = {}  #: by job uid
        self.pods: dict[str, Mark] = {}  #: by pod uid
        self.queues: dict[str, QueueNote] = {}  #: by name
        self.shards: dict[str, tuple[list[str], ...]] = {}  #: by name: nodes in use, to add, to remove
        self.others: set[str] = set()  #: PodGroups whose pods other schedulers place: it is for those to speak of them; by job uid
        self.pauses = WriteBackoff()
        self.quiet: dict[str, Quiet] = {}  #: by job uid: those of whom everything has been said
        self._told: dict[str, dict[str, Message]] = {}  #: by job uid, by reason

    def group(self, job_uid: str, group_uid: str) -> GroupNote | None:
        """Our status of this very group, if it is newer than the watch."""
        note = self.groups.get(job_uid)
        return note if note is not None and note.uid == group_uid else None

    def is_older(self, job_uid: str, group_uid: str, version: int) -> bool:
        """Whether an object of the watch is from before our last write; forgets the note if it is not."""
        note = self.group(job_uid, group_uid)
        if note is not None and (note.version is None or version < note.version):
            return True
        self.groups.pop(job_uid, None)
        return False

    def queue_heard(self, name: str, version: int) -> None:
        """The watch showed a queue."""
        note = self.queues.get(name)
        if note is not None and note.version is not None and version >= note.version:
            del self.queues[name]

    def written(self, request: WriteStatus, version: int) -> None:
        """The server has it, and the object got this resource version."""
        key = str(request.ref)
        if request.kind == POD_GROUPS and (group := self._note_of(request)) is not None:
            group.version = version
        elif request.kind == QUEUES and (queue := self.queues.get(key)) is not None:
            queue.version = version
        self.pauses.forget(request.kind.kind, key)

    def unwritten(self, request: WriteStatus) -> bool:
        """The server does not have it, and it is asked for again; no if something newer has been decided since."""
        key = str(request.ref)
        if request.kind == POD_GROUPS and self._note_of(request) is None:
            return False
        by_kind: dict[str, dict[str, Any]] = {"PodGroup": self.groups, "Queue": self.queues, "NodeShard": self.shards}
        by_kind[request.kind.kind].pop(key, None)
        return True

    def _note_of(self, request: WriteStatus) -> GroupNote | None:
        """What stands of a group, if it is this request's."""
        note = self.group(str(request.ref), request.ref.uid)
        return note if note is not None and note.status is request.status else None

    def holds(self, job_uid: str, reason: str, message: str) -> bool:
        """Whether what was told last for the reason has the message in it, whatever its amounts."""
        last = self._told.get(job_uid, {}).get(reason)
        return last is not None and without_amounts(message) in last.text

    def is_news(self, job_uid: str, reason: str, message: str, now: float) -> bool:
        """Whether to tell it; notes that it was told."""
        told = self._told.setdefault(job_uid, {})
        last, text = told.get(reason), without_amounts(message)
        if last is None or last.text != text:
            told[reason] = Message(text, now, FIRST_PAUSE_S)
        elif now - last.told_at < last.pause_s:
            return False
        else:
            told[reason] = Message(text, now, min(LONGEST_PAUSE_S, 2 * last.pause_s))
        return True

    def told_again_at(self, job_uid: str, reason: str) -> float:
        """When the last of a reason is told again, though nothing has changed."""
        last = self._told.get(job_uid, {}).get(reason)
        return inf if last is None else last.told_at + last.pause_s

    def is_arriving(self, job: Job, now: float) -> bool:
        """Whether the pods that a gang lacks may be only just coming."""
        last = self._arrivals.get(job.uid)
        if last is None or job.valid_count > last.pods:
            last = self._arrivals[job.uid] = Arrival(job.valid_count, now)
        return now - last.at < self._period_s

    def forget_pod(self, uid: str) -> None:
        self.pods.pop(uid, None)
        self.pauses.forget("Pod", uid)
        self.pauses.forget("Gate", uid)

    def forget_group(self, job_uid: str) -> None:
        self.groups.pop(job_uid, None)
        self._arrivals.pop(job_uid, None)
        self.others.discard(job_uid)
        self.pauses.forget("PodGroup", job_uid)
        self.quiet.pop(job_uid, None)
        self._told.pop(job_uid, None)


# The status of a PodGroup as it is written, and when it is worth writing.

AMOUNTS_S = 60.0  #: within it a condition is not written again for the amounts in its message
Status = dict[str, Any]


def known_status(group: PodGroup) -> Status:
    """As the watch has it."""
    known: Status = msgspec.to_builtins(group.status)
    return known


def next_status(before: Status, group: GroupStatus, at: str, transition: str) -> Status:
    """What the cycle makes of it. Conditions of other types stay; their order too."""
    counts = group.job.counts
    after: Status = {"phase": group.phase}
    for name, bit in (("running", status.RUNNING), ("succeeded", status.SUCCEEDED), ("failed", status.FAILED)):
        if counts[bit]:
            after[name] = counts[bit]
    conditions = list(before.get("conditions") or ())
    if group.condition is not None:
        condition = {
            "type": group.condition.type,
            "status": "True",
            "transitionID": transition,
            "lastTransitionTime": at,
            "reason": group.condition.reason,
            "message": group.condition.message,
        }
        _lay(conditions, {key: value for key, value in condition.items() if value})
    if conditions:
        after["conditions"] = conditions
    return after


def _lay(conditions: list[Status], condition: Status) -> None:
    for index, old in enumerate(conditions):
        if old.get("type") == condition["type"]:
            conditions[index] = condition
            return
    conditions.append(condition)


def news_at(before: Status, after: Status) -> float:
    """When it is to be written: never for times and ids of transitions, and not soon again for the amounts in messages alone, which change
    for everybody who waits whenever anybody is placed."""
    if _meaning(before) == _meaning(after):
        return inf
    if _meaning(before, without_amounts) != _meaning(after, without_amounts):
        return -inf
    changed = [old for old, new in zip(_conditions(before), _conditions(after), strict=False) if old != new]
    return min(_since(old) for old in changed) + AMOUNTS_S


def _conditions(given: Status) -> list[Status]:
    return given.get("conditions") or []


def _since(condition: Status) -> float:
    try:
        return instant(condition.get("lastTransitionTime") or "")
    except ValueError:
        return 0.0


def _meaning(given: Status, reading: Callable[[str], str] = str) -> tuple[Any, ...]:
    numbers = tuple(given.get(name) or 0 for name in ("running", "succeeded", "failed"))
    told = ("type", "status", "reason", "message")
    conditions = tuple(tuple(reading(condition.get(field) or "") for field in told) for condition in _conditions(given))
    return given.get("phase") or "", numbers, conditions


# What queues hold, themselves and all below them, written where it differs from what the server has.
#
# An open queue of which nothing has been written yet is written even if it holds nothing: who reads it finds zeros, not a gap. One that has
# no state yet is left to its controller, lest both write at once. Of replicas that share the work, one writes a queue's status, with what
# its own jobs hold: they would overwrite each other for ever.


def queue_request(
    cluster: Cluster, name: str, held: Vector, sent_status: SentStatus, now: float, ring: Ring | None = None
) -> WriteStatus | None:
    """What the server is to know of a queue that holds so much, if it does not."""
    if (ring is not None and not ring.has(name)) or sent_status.pauses.holds("Queue", name, now):
        return None
    queue = cluster.queues[name]
    note = sent_status.queues.get(name)
    before = queue.wire.status if queue.wire is not None else QueueStatus()
    known = note.held if note is not None else cluster.dimensions.vector(before.allocated)
    held = cluster.dimensions.fitted(held)  # an unheard-of name in the stored status may have widened all vectors
    unknown = note is None and bool(before.state) and not before.allocated
    if not unknown and np.abs(cluster.dimensions.fitted(known) - held).max() < EPSILON:
        return None
    sent_status.queues[name] = QueueNote(held)
    return WriteStatus(ObjectRef(name), QUEUES, {"allocated": cluster.dimensions.quantities(held)}, {})


def queue_totals(cluster: Cluster) -> dict[str, Vector]:
    """By name, for queues that exist. Between cycles nothing is pipelined, so what a queue holds is what it has been allocated."""
    totals: dict[str, Vector] = {name: cluster.dimensions.zeros() for name, queue in cluster.queues.items() if queue.exists}
    for queue in cluster.queues.values():
        if not queue.held.any():
            continue
        met: set[str] = set()
        above: Queue | None = queue
        while above is not None and above.name not in met:
            met.add(above.name)
            if above.name in totals:
                totals[above.name] += queue.held
            above = cluster.queues.get(above.parent) if above.parent else None
    return totals
