"""What gang evictions take from a victim's job at a time: its surplus, or all the rest of it.

The pods of a job in a domain are split in two. The Safe bundle holds those that it can lose and still run (all of them if it does
not run as it is); the Whole bundle the others: losing any of them breaks the gang, so it may as well lose all. Safe bundles go
first; what breaks a gang should give much here for little elsewhere (`offer.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pumice.scheduler.model import status
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.task import Task

READY = status.ALLOCATED_ALL | status.SUCCEEDED


def safe_ones(job: Job, candidates: Sequence[Task]) -> list[bool]:
    """Of those of a job's tasks that may be evicted here, the least important first: which are in its Safe bundle."""
    if job.ready_count < job.min_member:
        return [True] * len(candidates)
    surplus = _Surplus(job)
    return [surplus.takes(task) for task in candidates]


class _Surplus:
    """What a job can lose and still have its minimum, that of each role, and that of each policy."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._left = job.ready_count - job.min_member
        self._roles: dict[str, int] | None = None
        if job.role_minimum and job.min_member >= job.role_minimum_total:
            self._roles = {role: -minimum for role, minimum in job.role_minimum.items()}
            for task in job.tasks.values():
                if task.status & READY:
                    self._roles[task.role] = self._roles.get(task.role, 0) + 1
        self._parts: _PartSurplus | None = None if job.has_one_part else _PartSurplus(job)

    def takes(self, task: Task) -> bool:
        """Whether this task is surplus too; if so it is taken."""
        if self._left <= 0 or (self._roles is not None and self._roles.get(task.role, 0) <= 0):
            return False
        if self._parts is not None and not self._parts.takes(task):
            return False
        self._left -= 1
        if self._roles is not None:
            self._roles[task.role] -= 1
        return True


class _PartSurplus:
    """Sub-jobs that a policy has ready beyond its minimum."""

    def __init__(self, job: Job) -> None:
        self._subjobs = job.subjobs
        self._margins = {part.uid: part.ready_margin for part in job.subjobs}  #: ready tasks above the part's minimum
        self._spare = {policy: -minimum for policy, minimum in job.subjobs.minimum.items()}
        for part in job.subjobs:
            self._spare[part.policy] = self._spare.get(part.policy, 0) + (self._margins[part.uid] >= 0)

    def takes(self, task: Task) -> bool:
        """Whether its sub-job is broken anyway, or its policy can spare one."""
        part = self._subjobs.of(task)
        if self._margins[part.uid] >= 0:
            if self._spare[part.policy] <= 0:
                return False
            self._spare[part.policy] -= self._margins[part.uid] == 0
        self._margins[part.uid] -= 1
        return True
