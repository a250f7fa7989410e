"""The statuses of tasks. Each status is a bit, so that a set of statuses is a mask."""

from pumice.api.pod import Pod

PENDING = 1
ALLOCATED = 2  #: the session has chosen a node with room, and has not committed it yet
PIPELINED = 4  #: the session has chosen a node whose room is still being released; lasts until the session closes
BINDING = 8  #: the bind has been decided
BOUND = 16
RUNNING = 32
RELEASING = 64
SUCCEEDED = 128
FAILED = 256
UNKNOWN = 512

ALLOCATED_ALL = ALLOCATED | BINDING | BOUND | RUNNING
HELD = ALLOCATED_ALL | PIPELINED  #: its request counts as held by its job and queue
PLACED = ALLOCATED | PIPELINED | BINDING  #: placed by this scheduler; its bind is not confirmed yet
VALID = ALLOCATED_ALL | SUCCEEDED | PIPELINED | PENDING
READY = ALLOCATED_ALL | SUCCEEDED  #: it counts towards the minimum of its job
FINISHED = SUCCEEDED | FAILED
PREEMPTABLE = BOUND | RUNNING
ON_NODE = ALLOCATED_ALL | RELEASING | UNKNOWN  #: its request counts in `used` of its node

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
    """The status that follows from the pod's own fields."""
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


def is_echo(known: int, reported: int) -> bool:
    """Whether a status that was just read dates from before our own decision on the pod, its bind or its eviction: a pod never goes back
    from the known status to such a status."""
    if known == RELEASING:
        return bool(reported & (PENDING | BOUND | RUNNING))
    return reported == PENDING and bool(known & ALLOCATED_ALL)
