"""Where a task stands. Statuses are bits, so that a class of them is a mask."""

from __future__ import annotations

from pumice.api.pod import Pod

PENDING = 1
ALLOCATED = 2  #: a node with room chosen in this session, not yet committed
PIPELINED = 4  #: a node chosen whose room is still being released; lasts for the session
BINDING = 8  #: the bind has been decided
BOUND = 16
RUNNING = 32
RELEASING = 64
SUCCEEDED = 128
FAILED = 256
UNKNOWN = 512

ALLOCATED_ALL = ALLOCATED | BINDING | BOUND | RUNNING
HELD = ALLOCATED_ALL | PIPELINED  #: counted against its job and queue
VALID = ALLOCATED_ALL | SUCCEEDED | PIPELINED | PENDING
READY = ALLOCATED_ALL | SUCCEEDED  #: counted towards the minimum of its job
FINISHED = SUCCEEDED | FAILED
PREEMPTABLE = BOUND | RUNNING
ON_NODE = ALLOCATED_ALL | RELEASING | UNKNOWN  #: takes from `used` of its node

NAMES = {
    PENDING: "Pending",
    ALLOCATED: "Allocated",
    PIPELINED: "Pipelined",
    BINDING: "Binding",
    BOUND: "Bound",
    RUNNING: "Running",
    RELEASING: "Releasing",
    SUCCEEDED: "Succeeded",
    FAILED: "Failed",
    UNKNOWN: "Unknown",
}


def of_pod(pod: Pod) -> int:
    """The status that a pod's own fields tell."""
    match pod.status.phase:
        case "Running":
            return RELEASING if pod.metadata.deletion_timestamp else RUNNING
        case None | "" | "Pending":
            if pod.metadata.deletion_timestamp:
                return RELEASING
            return BOUND if pod.spec.node_name else PENDING
        case "Succeeded":
            return SUCCEEDED
        case "Failed":
            return FAILED
    return UNKNOWN


def is_echo(known: int, told: int) -> bool:
    """Whether news of a pod are from before what we decided about it: its bind, or its eviction. No pod goes those ways back."""
    if known == RELEASING:
        return bool(told & (PENDING | BOUND | RUNNING))
    return told == PENDING and bool(known & ALLOCATED_ALL)
