"""What admitted jobs are promised beyond what they hold: the sums of queues that depend on a job as a whole.

A job's part in these sums is kept with the job, so that a change of one job costs one subtraction and one addition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pumice.scheduler.model.resources import PODS, Dimensions, Sum, Vector, as_sum, exactly

if TYPE_CHECKING:
    from pumice.scheduler.model.job import Job


class Promises(NamedTuple):
    """A job's part in the sums of its queue. None stands for zero."""

    reserve: Sum | None = None  #: in Queue.reserved: what it may still request
    surplus: Sum | None = None  #: in Queue.surplus: what it holds above its minimum
    admitted: Sum | None = None  #: in Queue.promised: what overcommit counts


NO_PROMISES = Promises()
OF_NEWCOMER = Promises()  #: of a job that reserves room and holds nothing yet: it may still request all of its minimum

KnownPromises = dict[tuple[bytes, bytes, bool, str], Promises]  #: by what they depend on
MOST_KNOWN = 512


def refresh_promises(job: Job, known: KnownPromises) -> None:
    """Bring the job's part in the sums of its queue up to date. `known`: parts that were computed before, for jobs that are alike."""
    for task in job.pending.values():
        if task.template.gates:
            _replace(job, _promises(job))
            return
    reserves = job.reserves and not job.beyond
    if not job.counts:  # all of its tasks are Pending
        _replace(job, OF_NEWCOMER if reserves and job.least else NO_PROMISES)
        return
    question = job.holding.tobytes(), job.least, reserves, job.phase
    if question not in known:
        if len(known) >= MOST_KNOWN:
            known.clear()
        known[question] = _promises(job)
    _replace(job, known[question])


def _promises(job: Job) -> Promises:
    held = job.held
    rest = job.without_gated(job.outstanding(held)) if job.reserves and not job.beyond else None
    surplus = np.maximum(held - job.min_resources, 0.0)
    surplus[PODS] = 0.0  # queues do not count pods
    counted = job.without_gated(job.min_resources) if rest is not None and job.phase != "Running" else rest
    promises = Promises(_kept(rest), _kept(surplus), _kept(counted))
    return promises if any(part is not None for part in promises) else NO_PROMISES


def _parts(job: Job, promises: Promises) -> Promises:
    """The promises to a job. Those to a newcomer are not kept: of its minimum they are quickly made."""
    if promises is not OF_NEWCOMER:
        return promises
    least = exactly(job.least, job.width)
    return Promises(least, None, least)


def promises_to(job: Job) -> Promises:
    """The job's part in the sums of its queue."""
    return _parts(job, job.promises)


def promises_agree(job: Job) -> bool:
    """Whether the job's part in the sums of its queue is what it is if computed anew."""
    return all(np.array_equal(one, other) for one, other in zip(promises_to(job), _promises(job), strict=True))  # type: ignore[arg-type]


def fitted(promises: Promises, dimensions: Dimensions) -> Promises:
    """The promises with longer sums."""
    if promises is OF_NEWCOMER or promises is NO_PROMISES:
        return promises
    return Promises(*(None if part is None else dimensions.fitted(part) for part in promises))


def _kept(amounts: Vector | None) -> Sum | None:
    return None if amounts is None or not amounts.any() else as_sum(amounts)


def withdraw_promises(job: Job) -> None:
    """Take the job's part out of the sums of its queue."""
    _replace(job, NO_PROMISES)


def _replace(job: Job, promises: Promises) -> None:
    queue = job.queue
    assert queue is not None
    if promises is job.promises:
        return
    sums = queue.reserved, queue.surplus, queue.promised
    old, new = promises_to(job), _parts(job, promises)
    queue.promisees += (new.admitted is not None) - (old.admitted is not None)
    for total, before, after in zip(sums, old, new, strict=True):
        if before is not None:
            total -= before
        if after is not None:
            total += after
    job.promises = promises
