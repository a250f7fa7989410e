"""What the plugins proportion, capacity and overcommit share: comparing a request with what a queue, or the cluster, may hold.

Amounts are compared exactly, and only in the dimensions that are requested. Queues do not limit the number of pods.
"""

from collections.abc import Sequence

import numpy as np

from pumice.scheduler.framework.fit_errors import Shortage
from pumice.scheduler.framework.hook_answers import Vote
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import PODS, Job, Mask, Queue, Task, Vector, status


def asked_for(request: Vector) -> Mask:
    """The dimensions in which something is requested, without pods."""
    asked: Mask = request > 0
    asked[PODS] = False
    return asked


def within(request: Vector, held: Vector, limit: Vector) -> bool:
    asked = enumerate(request.tolist())
    return all(held[column] + amount <= limit[column] for column, amount in asked if amount and column != PODS)


def room_within(held: Vector, limit: Vector) -> Vector:
    """What may be added to what is held within the limit. The number of pods is not limited."""
    room: Vector = limit - held
    room[PODS] = np.inf
    return room


def shortfall(session: Session, name: str, task: Task, held: Vector, limit: Vector, word: str) -> str:
    """A sentence about the first dimension in which a queue would exceed its limit; empty if there is none. What Allocated tasks of the
    task's own job have counts as requested, not as held: it is given back if the gang does not get its minimum."""
    if task.job is not None and task.job.counts[status.ALLOCATED]:
        text, short = _shortfall(session, name, task, held, limit, word)
    else:  # the answer is the same for all tasks of the template, until a task moves
        known, question = session.shortfalls_now, (name, word, task.template)
        if question not in known:
            known[question] = _shortfall(session, name, task, held, limit, word)
        text, short = known[question]
    session.shortages[task.uid] = short
    return text


def _shortfall(session: Session, name: str, task: Task, held: Vector, limit: Vector, word: str) -> tuple[str, tuple[Shortage, ...]]:
    request, taken, dimensions = task.template.request, _taken_in_thought(session, task), session.cluster.dimensions
    asked = request.tolist()
    if taken is not None:
        request, held = request + taken, held - taken
    amounts = enumerate(zip(asked, request.tolist(), held.tolist(), limit.tolist(), strict=True))
    short = tuple(
        Shortage(name, column, more, has, may)
        for column, (amount, more, has, may) in amounts
        if amount > 0 and column != PODS and has + more > may
    )
    if not short:
        return "", ()
    first, resource = short[0], dimensions.names[short[0].column]
    has, may, more = (dimensions.format_amount(first.column, amount) for amount in (first.held, max(first.allowed, 0.0), first.asked))
    return f"queue {name} holds {has} of the {may} {resource} {word}, {more} more is asked for", short


def _taken_in_thought(session: Session, task: Task) -> Vector | None:
    """What the Allocated tasks of the task's job request; None if there are none."""
    job = task.job
    if job is None or not job.counts[status.ALLOCATED]:
        return None
    state = len(session.cluster.log), job.counts[status.ALLOCATED]
    known = session.taken_in_thought.get(job.uid)
    if (
        known is None or known[0] != state or not session.policy.shortcuts
    ):  # kept, or each refused pod of a large gang would cost a pass over all its pods
        taken: Vector = np.sum([each.template.request for each in job.tasks.values() if each.status == status.ALLOCATED], axis=0)
        known = session.taken_in_thought[job.uid] = state, taken
    return known[1]


def lacking(job: Job, claimed: Vector, limit: Vector) -> list[int]:
    """The dimensions in which a job's minimum does not fit into the limit beside what is claimed."""
    least = enumerate(job.min_resources.tolist())
    return [c for c, amount in least if amount > 0 and c != PODS and claimed[c] + amount > limit[c]]


def refuse(session: Session, job: Job, columns: Sequence[int], name: str, claimed: Vector, limit: Vector) -> Vote:
    """Refuse to admit the job, because a queue has no room for its minimum. The text begins with Volcano's words."""
    names = ", ".join(session.cluster.dimensions.names[column] for column in columns)
    numbers = asked_and_allowed(session, job, columns, name, claimed, limit)
    session.refuse_admission(job, f"queue resource quota insufficient: insufficient {names}. Queue {name}: {numbers}")
    return Vote.REJECT


def refuse_closed(session: Session, job: Job, queue: Queue) -> Vote:
    """Refuse to admit the job, because its queue is not open."""
    session.refuse_admission(job, f"queue {queue.name} is {queue.state or 'not open yet'}: it lets no job in until it is open")
    return Vote.REJECT


def asked_and_allowed(session: Session, job: Job, columns: Sequence[int], queue: str, claimed: Vector, limit: Vector) -> str:
    """A text with the numbers of the dimensions in which a job's minimum does not fit, and whether it ever can. `queue`: empty for the
    cluster."""
    dimensions = session.cluster.dimensions
    session.shortages[job.uid] = tuple(
        Shortage(queue, column, job.min_resources[column], claimed[column], limit[column]) for column in columns
    )
    parts = []
    for column in columns:
        asked, held, allowed = (
            dimensions.format_amount(column, amount)
            for amount in (job.min_resources[column], max(claimed[column], 0.0), max(limit[column], 0.0))
        )
        parts.append(f"{asked} {dimensions.names[column]} asked for, {held} held or promised, {allowed} allowed")
    never = any(job.min_resources[column] > limit[column] for column in columns)
    return "; ".join(parts) + ("; it can never run within this limit" if never else "")
