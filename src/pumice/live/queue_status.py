"""What queues hold, themselves and all below them, written where it differs from what the server has.

An open queue of which nothing has been written yet is written even if it holds nothing: who reads it finds zeros, not a gap. One that
has no state yet is left to its controller, lest both write at once. Of replicas that share the work, one writes a queue's status, with what
its own jobs hold: they would overwrite each other for ever.
"""

from __future__ import annotations

import numpy as np

from pumice.api.volcano import QueueStatus
from pumice.live.requests import WriteQueue
from pumice.live.ring import Ring
from pumice.live.said import QueueNote, Said
from pumice.model.cluster import Cluster
from pumice.model.queue import Queue
from pumice.model.resources import EPSILON, Vector


def queue_requests(cluster: Cluster, said: Said, now: float, ring: Ring | None = None) -> list[WriteQueue]:
    """Between cycles nothing is pipelined, so what a queue holds is what it has been allocated."""
    writes = []
    for name, held in _totals(cluster).items():
        if (ring is not None and not ring.has(name)) or said.pauses.holds("Queue", name, now):
            continue
        queue = cluster.queues[name]
        note = said.queues.get(name)
        before = queue.wire.status if queue.wire is not None else QueueStatus()
        known = note.held if note is not None else cluster.dimensions.vector(before.allocated)
        held = cluster.dimensions.fitted(held)  # an unheard-of name in the stored status may have widened all vectors
        unknown = note is None and bool(before.state) and not before.allocated
        if unknown or np.abs(cluster.dimensions.fitted(known) - held).max() >= EPSILON:
            writes.append(WriteQueue(name, cluster.dimensions.quantities(held)))
            said.queues[name] = QueueNote(held)
    return writes


def _totals(cluster: Cluster) -> dict[str, Vector]:
    """By name, for queues that exist."""
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
