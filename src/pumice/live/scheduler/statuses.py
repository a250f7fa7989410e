"""The status of a PodGroup as it is written, and when it is worth writing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from pumice.api.times import instant
from pumice.api.volcano import PodGroup, QueueStatus
from pumice.live.scheduler.options import Ring
from pumice.live.scheduler.requests import WriteQueue
from pumice.live.scheduler.sent_status import QueueNote, SentStatus, without_amounts
from pumice.scheduler.framework.decisions import GroupStatus
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.queue import Queue
from pumice.scheduler.model.resources import EPSILON, Vector

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


def is_news(before: Status, after: Status, now: float) -> bool:
    """Whether it is to be written: not for times and ids of transitions, and not soon again for the amounts in messages alone, which change
    for everybody who waits whenever anybody is placed."""
    if _meaning(before) == _meaning(after):
        return False
    changed = [old for old, new in zip(_conditions(before), _conditions(after), strict=False) if old != new]
    return _meaning(before, without_amounts) != _meaning(after, without_amounts) or any(now - _since(old) >= AMOUNTS_S for old in changed)


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


def queue_request(cluster: Cluster, name: str, held: Vector, said: SentStatus, now: float, ring: Ring | None = None) -> WriteQueue | None:
    """What the server is to know of a queue that holds so much, if it does not."""
    if (ring is not None and not ring.has(name)) or said.pauses.holds("Queue", name, now):
        return None
    queue = cluster.queues[name]
    note = said.queues.get(name)
    before = queue.wire.status if queue.wire is not None else QueueStatus()
    known = note.held if note is not None else cluster.dimensions.vector(before.allocated)
    held = cluster.dimensions.fitted(held)  # an unheard-of name in the stored status may have widened all vectors
    unknown = note is None and bool(before.state) and not before.allocated
    if not unknown and np.abs(cluster.dimensions.fitted(known) - held).max() < EPSILON:
        return None
    write = WriteQueue(name, cluster.dimensions.quantities(held))
    said.queues[name] = QueueNote(held)
    return write


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
