"""The tasks of a job that are still to be placed, in their order; for a job in parts, its parts in their order.

Best-effort tasks are left to the action backfill. Tasks with scheduling gates are left out, except those whose only gate is that of their
queue: for them the queue is asked for room, and the gate is removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from pumice.scheduler.framework.orders import OrderKey
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Job, SubJob, Task


class PendingTasks:
    """The tasks of a job that are not tried yet, in order."""

    def __init__(self, job: Job, tasks: list[Task]) -> None:
        self.job = job
        self.tasks = tasks  #: the next one last

    @classmethod
    def of(cls, session: Session, job: Job, among: Iterable[Task]) -> PendingTasks:
        tasks = [task for task in among if not task.best_effort and (not task.gated or task.at_queue_gate)]
        return cls(job, sorted(tasks, key=session.orders.task_key, reverse=True) if len(tasks) > 1 else tasks)

    def __bool__(self) -> bool:
        return bool(self.tasks)

    def copy(self) -> PendingTasks:
        return PendingTasks(self.job, self.tasks.copy())

    def pop(self) -> Task:
        return self.tasks.pop()

    def run_length(self, task: Task, enough: int | None = None) -> int:
        """The number of equal tasks in a row from this one on; not counted further than `enough`."""
        length = 1
        for follower in reversed(self.tasks):
            if follower.template is not task.template or length == enough:
                break
            length += 1
        return length


class PendingParts:
    """The sub-jobs with tasks that are not tried yet. Those that the job needs to start come first, then the order of plugins counts."""

    def __init__(self, session: Session, job: Job) -> None:
        self._session = session
        self.job = job
        self.pending_by_part: dict[str, PendingTasks] = {}
        self._needed = _needed(session, job)
        self._waiting: list[tuple[OrderKey, SubJob]] = []
        for part in job.subjobs:
            pending = PendingTasks.of(session, job, part.pending)
            if pending:
                self.pending_by_part[part.uid] = pending
                self._waiting.append((self._key(part), part))
        heapify(self._waiting)

    def _key(self, part: SubJob) -> OrderKey:
        return (part.uid not in self._needed, *self._session.orders.sub_job_key(part))

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def has_needed(self) -> bool:
        """Whether a sub-job waits without which some policy misses its minimum. It is the next one then."""
        return bool(self._waiting) and self._waiting[0][1].uid in self._needed

    @property
    def tasks(self) -> list[Task]:
        return [task for _, part in self._waiting for task in self.pending_by_part[part.uid].tasks]

    def pop(self) -> tuple[SubJob, PendingTasks]:
        part = heappop(self._waiting)[1]
        return part, self.pending_by_part[part.uid]

    def push(self, part: SubJob) -> None:
        heappush(self._waiting, (self._key(part), part))

    def copy(self) -> PendingParts:
        fresh = PendingParts.__new__(PendingParts)
        fresh._session, fresh.job, fresh._needed = self._session, self.job, self._needed
        fresh.pending_by_part = {uid: pending.copy() for uid, pending in self.pending_by_part.items()}
        fresh._waiting = self._waiting.copy()
        return fresh

    def take(self, other: PendingParts) -> None:
        """Take over the state of a copy."""
        self.pending_by_part, self._waiting = other.pending_by_part, other._waiting


def _needed(session: Session, job: Job) -> frozenset[str]:
    """The uids of sub-jobs that are not ready and without which some policy misses its minimum."""
    missing = dict(job.subjobs.minimum)
    unready = []
    for part in sorted(job.subjobs, key=session.orders.sub_job_key):
        if session.sub_job_ready(job, part):
            missing[part.policy] = missing.get(part.policy, 0) - 1
        else:
            unready.append(part)
    needed = set()
    for part in unready:
        if missing.get(part.policy, 0) > 0:
            missing[part.policy] -= 1
            needed.add(part.uid)
    return frozenset(needed)
