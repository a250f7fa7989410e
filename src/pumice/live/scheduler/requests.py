"""What a cycle asks of the API server, as plain values. `effects` makes them, `sender` carries them out."""

from __future__ import annotations

from typing import Any, NamedTuple

from pumice.api.kinds import ObjectRef
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


class OpenGate(NamedTuple):
    """Take the queue's scheduling gate from a pod: its queue has room for it."""

    pod: ObjectRef


class ReadPod(NamedTuple):
    """Find out how a pod really is, which is `assumed` to have a status that nobody has confirmed."""

    pod: ObjectRef
    assumed: int


class WriteGroup(NamedTuple):
    """A PodGroup's status, and annotations laid over its own (None: taken away)."""

    group: ObjectRef
    status: dict[str, Any]
    annotations: dict[str, str | None]


class WriteQueue(NamedTuple):
    """What a queue holds."""

    queue: str
    allocated: dict[str, str]


class WriteShard(NamedTuple):
    """The nodes of a NodeShard that its scheduler uses, awaits, and has given up."""

    shard: str
    status: dict[str, Any]


class Amiss(NamedTuple):
    """A fault of ours stood in the way of a request, which has no more in it than whose it is."""

    request: BindPod | EvictPod | MarkPod | WriteGroup | WriteQueue
    error: Exception


class Requests(NamedTuple):
    """All of one cycle, in the order in which they should leave."""

    evictions: list[EvictPod]
    binds: list[BindPod]
    gates: list[OpenGate]
    marks: list[MarkPod]
    groups: list[WriteGroup]
    queues: list[WriteQueue]
    shards: list[WriteShard]
    events: list[EventRecord]
    amiss: list[Amiss]

    def __bool__(self) -> bool:
        return any(self)
