"""What proportion, capacity and overcommit share: holding a request against what a queue, or the cluster, may hold.

Amounts are compared exactly and only in the dimensions that are asked for; how many pods there are is no matter of queues.
"""

from __future__ import annotations

from collections.abc import Sequence

from pumice.framework.session import Session
from pumice.framework.verdict import Vote
from pumice.model.job import Job
from pumice.model.resources import PODS, Mask, Vector


def asked_for(request: Vector) -> Mask:
    """The dimensions that a request is about."""
    asked: Mask = request > 0
    asked[PODS] = False
    return asked


def within(request: Vector, held: Vector, limit: Vector) -> bool:
    """Whether the limit is kept with the request on top of what is held."""
    asked = asked_for(request)
    return bool((held[asked] + request[asked] <= limit[asked]).all())


def shortfall(session: Session, name: str, request: Vector, held: Vector, limit: Vector, word: str) -> str:
    """The first dimension in which a queue would exceed its limit, in a sentence; empty if there is none."""
    asked = asked_for(request)
    dimensions = session.cluster.dimensions
    for column in (asked & (held + request > limit)).nonzero()[0].tolist():
        amounts = (dimensions.format(column, amount) for amount in (held[column], max(limit[column], 0.0), request[column]))
        has, may, more = amounts
        return f"queue {name} holds {has} of the {may} {dimensions.names[column]} {word}, {more} more is asked for"
    return ""


def lacking(job: Job, claimed: Vector, limit: Vector) -> list[int]:
    """The dimensions in which a job's minimum does not fit."""
    return [c for c, amount in job.min_amounts.items() if amount > 0 and c != PODS and claimed[c] + amount > limit[c]]


def refuse(session: Session, job: Job, columns: Sequence[int]) -> Vote:
    """Tell the PodGroup that its queue has no room for its minimum."""
    names = ", ".join(session.cluster.dimensions.names[column] for column in columns)
    session.event(job, "Normal", "Unschedulable", f"queue resource quota insufficient: insufficient {names}")
    return Vote.REJECT
