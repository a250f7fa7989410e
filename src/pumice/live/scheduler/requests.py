"""The requests of a cycle to the API server, as plain values. `requests_of` makes them, `sender` sends them."""

from typing import Any, NamedTuple

from pumice.api.kinds import Kind, ObjectRef
from pumice.client.event_correlator import EventRecord
from pumice.live.scheduler.prerequisites import NONE, Prerequisites
from pumice.scheduler.framework.profiles import ExtenderSpec


class BindPod(NamedTuple):
    """Bind a pod to a node, once its `needs` are ready. `binder`: the extender that binds it in our place."""

    pod: ObjectRef
    node: str
    annotations: dict[str, str]
    binder: ExtenderSpec | None = None
    needs: Prerequisites = NONE


class EvictPod(NamedTuple):
    """Write into the pod's status why it is evicted, then delete it."""

    pod: ObjectRef
    why: str  #: because of which action, and for whom; empty for kube-scheduler's preemption, which does not write it into the pod
    scheduler: str  #: the schedulerName of the pod for whom it goes, where that is known, else its own
    whom: str = "pod"  #: the kind for which it goes
    noted: tuple[str, ...] = ()  #: keys of PodGroups: the places that are held for them are to be noted on them first


class MarkPod(NamedTuple):
    """Write the condition PodScheduled=False and the nominated node. `nominated` None leaves that node as it is, "" removes it."""

    pod: ObjectRef
    reason: str
    message: str
    nominated: str | None


class OpenGate(NamedTuple):
    """Take the queue's scheduling gate from a pod: its queue has room for it."""

    pod: ObjectRef


class ReadPod(NamedTuple):
    """Read a pod whose `assumed` status the server has not confirmed."""

    pod: ObjectRef
    assumed: int


class WriteStatus(NamedTuple):
    """Write the status of a PodGroup, Queue or NodeShard, and merge annotations into the object's own (None removes one)."""

    ref: ObjectRef
    kind: Kind
    status: dict[str, Any]
    annotations: dict[str, str | None]


class WriteCondition(NamedTuple):
    """Write the condition of one of Kubernetes' own PodGroups. Its other conditions stay."""

    group: ObjectRef
    condition: dict[str, Any]


class ReleaseClaim(NamedTuple):
    """Take the devices away from a ResourceClaim, which are of no use where they are; or only keep them no longer for `user`, a uid."""

    claim: ObjectRef
    user: str = ""


Request = BindPod | EvictPod | MarkPod | OpenGate | WriteStatus | WriteCondition | ReleaseClaim


class FailedRequest(NamedTuple):
    """A request that could not be made because of a fault of ours, and the error. The request only says which object it was for."""

    request: BindPod | EvictPod | MarkPod | WriteStatus | WriteCondition
    error: Exception


class Requests(NamedTuple):
    """All requests of one cycle, in the order in which they should be sent."""

    evictions: list[EvictPod]
    binds: list[BindPod]
    gates: list[OpenGate]
    marks: list[MarkPod]
    statuses: list[WriteStatus]
    conditions: list[WriteCondition]
    releases: list[ReleaseClaim]
    events: list[EventRecord]
    faults: list[FailedRequest]

    def __bool__(self) -> bool:
        return any(self)
