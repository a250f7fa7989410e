"""What each queue and all queues below it hold, written where it differs from what the server has.

A queue without a written amount is written even if it holds nothing, so that readers find zeros and not a gap. Before it has a state, an
empty queue is left to its controller, so that the two do not write at once. Of replicas that share the work, only one writes a queue's
status, with what its own jobs hold: otherwise they would overwrite each other for ever.
"""

from collections.abc import Iterable

import numpy as np

from pumice.api.kinds import QUEUES, ObjectRef
from pumice.api.quantity import quantity
from pumice.api.volcano import QueueStatus
from pumice.live.scheduler.hash_ring import Ring
from pumice.live.scheduler.requests import WriteStatus
from pumice.live.scheduler.sent_status import QueueNote, SentStatus
from pumice.scheduler.model import EPSILON, Cluster, Queue, Vector, status


def queue_request(
    cluster: Cluster, name: str, held: Vector, sent_status: SentStatus, now: float, ring: Ring | None = None
) -> WriteStatus | None:
    """The request that writes what a queue holds. None if the server has it already, or if it is not to be written now or not by us."""
    if (ring is not None and not ring.has(name)) or sent_status.pauses.holds("Queue", name, now):
        return None
    queue = cluster.queues[name]
    note = sent_status.queues.get(name)
    before = queue.wire.status if queue.wire is not None else QueueStatus()
    known = note.held if note is not None else cluster.dimensions.vector(before.allocated)
    held = cluster.dimensions.fitted(held)  # a new resource name in the stored status may have made all vectors longer
    unknown = note is None and bool(before.state) and not before.allocated
    if not unknown and np.abs(cluster.dimensions.fitted(known) - held).max() < EPSILON:
        return None
    sent_status.queues[name], sent_status.queues_at = QueueNote(held), now
    return WriteStatus(ObjectRef(name), QUEUES, {"allocated": cluster.dimensions.quantities(held)}, {})


def queue_totals(cluster: Cluster) -> dict[str, Vector]:
    """What each existing queue and all below it hold, by name. Jobs of a queue that is gone are in no sum. Between cycles nothing is
    pipelined, so all that is held is allocated."""
    totals: dict[str, Vector] = {name: cluster.dimensions.zeros() for name, queue in cluster.queues.items() if queue.exists}
    claims: dict[str, dict[str, None]] = {}  #: what pods of a queue and of those below it claim: a claim that they share counts once
    for queue in cluster.queues.values():
        if not queue.exists or not queue.held.any():
            continue
        mine = _claims_in(queue) if cluster.of("ResourceClaim") else {}
        met: set[str] = set()
        above: Queue | None = queue
        while above is not None and above.name not in met:
            met.add(above.name)
            if above.name in totals:
                totals[above.name] += queue.held
                claims.setdefault(above.name, {}).update(mine)
            above = cluster.queues.get(above.parent) if above.parent else None
    for name, keys in claims.items():
        if keys:
            totals[name] = cluster.dimensions.fitted(totals[name]) + _devices(cluster, keys)
    return totals


def _claims_in(queue: Queue) -> dict[str, None]:
    """The keys of the ResourceClaims of the pods that hold a place."""
    tasks = (task for job in queue.jobs.values() for task in job.tasks.values() if task.claims and task.status & status.HELD)
    return {f"{task.namespace}/{name}": None for task in tasks for _, name in task.claims}


def _devices(cluster: Cluster, keys: Iterable[str]) -> Vector:
    """What these claims take, by device class, as quotas name it."""
    from pumice.scheduler.plugins.kube.devices.device_class_usage import claimed  # loaded only where there are claims

    known, amounts = cluster.of("ResourceClaim"), dict[str, float]()
    for key in keys:
        for name, milli in claimed(known[key]).items() if key in known else ():
            amounts[name] = amounts.get(name, 0.0) + milli
    return cluster.dimensions.vector({name: quantity(f"{milli:.0f}m") for name, milli in amounts.items()})
