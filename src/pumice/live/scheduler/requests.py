"""What a cycle asks of the API server, as plain values. `effects` makes them, `sender` carries them out."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct

from pumice.api.kinds import Kind, ObjectRef
from pumice.client.events import EventRecord
from pumice.live.scheduler.prerequisites import NONE, Prerequisites


class BindPod(NamedTuple):
    """Put a pod on a node, once its `needs` are fulfilled. `already`: an extender has done it, and only the watch is waited for."""

    pod: ObjectRef
    node: str
    annotations: dict[str, str]
    already: bool = False
    needs: Prerequisites = NONE


class EvictPod(NamedTuple):
    """Tell in the pod's status why, then delete it."""

    pod: ObjectRef
    why: str  #: because of which action, and for whom
    scheduler: str  #: the victim's schedulerName


class MarkPod(NamedTuple):
    """PodScheduled=False and the nominated node. `nominated` None leaves that as it is, "" takes it back."""

    pod: ObjectRef
    reason: str
    message: str
    nominated: str | None


class OpenGate(Struct, frozen=True):
    """Take the queue's scheduling gate from a pod: its queue has room for it."""

    pod: ObjectRef


class ReadPod(Struct, frozen=True):
    """Find out how a pod really is, which is `assumed` to have a status that nobody has confirmed."""

    pod: ObjectRef
    assumed: int


class WriteStatus(NamedTuple):
    """The status of a PodGroup, Queue or NodeShard, and annotations laid over the object's own (None: taken away)."""

    ref: ObjectRef
    kind: Kind
    status: dict[str, Any]
    annotations: dict[str, str | None]


Request = BindPod | EvictPod | MarkPod | OpenGate | WriteStatus


class Amiss(NamedTuple):
    """A fault of ours stood in the way of a request, which has no more in it than whose it is."""

    request: BindPod | EvictPod | MarkPod | WriteStatus
    error: Exception


class Requests(NamedTuple):
    """All of one cycle, in the order in which they should leave."""

    evictions: list[EvictPod]
    binds: list[BindPod]
    gates: list[OpenGate]
    marks: list[MarkPod]
    statuses: list[WriteStatus]
    events: list[EventRecord]
    amiss: list[Amiss]

    def __bool__(self) -> bool:
        return any(self)
