"""What we told the API server and have not heard back yet, so that nothing is written twice and no echo is taken for news.

* Groups and queues: a status stands here from the cycle that decided it until the watch shows an object at least as new as the answer to
  our write. Until then what the watch shows of that status is older than what we know.
* Pods: the last condition written, for as long as the pod waits.
* Writes that are refused: until when they are not asked for again.
* Events: when a message was told last. One that does not change but in its amounts is told again after growing pauses: who begins to
  watch for it just after it came still sees soon that it holds, and what waits for hours costs next to nothing.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from pumice.client.retry import Backoff
from pumice.scheduler.model.resources import Vector

# Writes that the server refuses, and would refuse again: tried ever more rarely, each by itself, and never given up.
#
# A role that lacks a verb, or a webhook that is stricter than we are, says no to every try; but an administrator may mend it, and an API
# server that has just started knows no roles for a moment. What was lost on the way or came too late is no refusal: the next cycle asks
# anew.

BACKOFF = Backoff(2.0, 120.0)
FORGIVEN_S = 300.0  #: after a pause, a refusal is the first again


class Write(NamedTuple):
    kind: str
    name: str  #: namespace/name, or a uid


class Pause(NamedTuple):
    refusals: int
    until: float
    over: bool = False  #: and that was told


class WriteBackoff:
    """See the module. `now` is the time."""

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


class SentStatus:
    """See the module."""

    def __init__(self) -> None:
        self.groups: dict[str, GroupNote] = {}  #: by job uid
        self.pods: dict[str, Mark] = {}  #: by pod uid
        self.queues: dict[str, QueueNote] = {}  #: by name
        self.shards: dict[str, tuple[list[str], ...]] = {}  #: by name: nodes in use, to add, to remove
        self.others: set[str] = set()  #: PodGroups whose pods other schedulers place: it is for those to speak of them; by job uid
        self.pauses = WriteBackoff()
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

    def forget_pod(self, uid: str) -> None:
        self.pods.pop(uid, None)
        self.pauses.forget("Pod", uid)
        self.pauses.forget("Gate", uid)

    def forget_group(self, job_uid: str) -> None:
        self.groups.pop(job_uid, None)
        self.others.discard(job_uid)
        self.pauses.forget("PodGroup", job_uid)
        self._told.pop(job_uid, None)
