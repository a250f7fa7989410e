"""Gangs whose placing was cut short: all their pods are there, some are placed, and those are fewer than the minimum."""

from pumice.scheduler.model import status
from pumice.scheduler.model.job import Job

PLACED = status.BOUND | status.RUNNING


def cut_short_at(job: Job) -> float | None:
    """When the last of the placed pods of a gang that was cut short got its node; None for any other job."""
    placed, waiting = job.counts[status.BOUND] + job.counts[status.RUNNING], len(job.pending) + job.counts[status.PIPELINED]
    if not placed or job.is_ready or placed + waiting < max(job.min_member, len(job.tasks)):
        return None
    since = [task.placed_at for task in job.tasks.values() if task.status & PLACED and task.placed_at is not None]
    if len(since) < placed or any(task.created > min(since) for task in job.tasks.values()):
        return None
    return max(since)
