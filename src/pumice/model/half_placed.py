"""Gangs whose placing was cut short: some of their pods have nodes, and the others have waited since before.

Pods of a gang get their nodes together, so this happens only between binds: the scheduler ended or lost its lead, or binds failed. A gang
that ran and then lost pods is another matter: the pods that wait are younger than the places of the others.
"""

from __future__ import annotations

from pumice.model import status
from pumice.model.job import Job

PLACED = status.BOUND | status.RUNNING


def cut_short_at(job: Job) -> float | None:
    """When the last of its pods got its node; None for any other job."""
    placed, waiting = job.counts[status.BOUND] + job.counts[status.RUNNING], job.counts[status.PENDING] + job.counts[status.PIPELINED]
    if not 0 < placed < job.min_member <= placed + waiting or placed + waiting < len(job.tasks):
        return None
    since = [task.placed_at for task in job.tasks.values() if task.status & PLACED and task.placed_at is not None]
    if len(since) < placed or any(task.created > min(since) for task in job.tasks.values()):
        return None
    return max(since)
