"""Gangs whose placing was cut short: all their pods are there, some are placed, and those are fewer than the minimum.

Pods of a gang get their nodes together, so this happens only between binds: the scheduler ended or lost its lease, or binds failed. A
gang that ran and then lost pods is a different case: its waiting pods were created after the others had got their nodes.
"""

from math import inf

from pumice.api.times import instant_or
from pumice.scheduler.model import status
from pumice.scheduler.model.job import Job

PLACED = status.BOUND | status.RUNNING
CLOCKS_S = 5.0  #: by how much the clocks of the scheduler and of the API server may differ


def cut_short_at(job: Job) -> float | None:
    """When the last of the placed pods of a gang that was cut short got its node; None for any other job."""
    placed, waiting = job.counts[status.BOUND] + job.counts[status.RUNNING], len(job.pending) + job.counts[status.PIPELINED]
    if not placed or job.is_ready or placed + waiting < max(job.min_member, len(job.tasks)):
        return None
    since = [task.placed_at for task in job.tasks.values() if task.status & PLACED and task.placed_at is not None]
    if len(since) < placed or any(task.created > min(since) for task in job.tasks.values()):
        return None
    return None if _was_whole_after(max(since), job) else max(since)


def _was_whole_after(last: float, job: Job) -> bool:
    """Whether the gang was whole after its last bind, as its condition Scheduled tells: then it has lost pods. The condition of a gang that
    was cut short has the time of the decision, which is before all binds."""
    conditions = job.group.status.conditions if job.group is not None else None
    return any(each.type == "Scheduled" and instant_or(each.last_transition_time, -inf) > last + CLOCKS_S for each in conditions or ())
