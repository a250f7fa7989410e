"""What gang evictions take from a victim's job at a time: its surplus, or all the rest of its pods.

The pods of a job in a domain are split in two bundles. The Safe bundle holds the pods that the job can lose and still run (all of them if
the job does not run anyway). The Whole bundle holds the others: losing any of them breaks the gang, so it may as well lose all. Safe
bundles go first. Whole bundles that give much here for little loss elsewhere come before other Whole bundles (`gang_roster.py`).
"""

from collections.abc import Sequence

from pumice.scheduler.model import Job, Task, status


def safe_ones(job: Job, candidates: Sequence[Task]) -> list[bool]:
    """For each candidate whether it is in its job's Safe bundle. Candidates are evictable tasks of one job, the least important first."""
    if job.ready_count < job.min_member:
        return [True] * len(candidates)
    surplus = _Surplus(job)
    return [surplus.takes(task) for task in candidates]


class _Surplus:
    """The tasks that a job can lose and still have its minimum, that of each role, and that of each sub-group policy."""

    def __init__(self, job: Job) -> None:
        self._left = job.ready_count - job.min_member
        self._roles: dict[str, int] | None = None
        if job.role_minimum and job.min_member >= job.role_minimum_total:
            self._roles = {role: -minimum for role, minimum in job.role_minimum.items()}
            for task in job.tasks.values():
                if task.status & status.READY:
                    self._roles[task.role] = self._roles.get(task.role, 0) + 1
        self._parts: _PartSurplus | None = None if job.has_one_part else _PartSurplus(job)

    def takes(self, task: Task) -> bool:
        """Whether this task is surplus too. If so it counts as lost from now on."""
        if self._left <= 0 or (self._roles is not None and self._roles.get(task.role, 0) <= 0):
            return False
        if self._parts is not None and not self._parts.takes(task):
            return False
        self._left -= 1
        if self._roles is not None:
            self._roles[task.role] -= 1
        return True


class _PartSurplus:
    """The ready sub-jobs that each policy has beyond its minimum."""

    def __init__(self, job: Job) -> None:
        self._subjobs = job.subjobs
        self._margins = {part.uid: part.ready_margin for part in job.subjobs}  #: ready tasks above the part's minimum
        self._spare = {policy: -minimum for policy, minimum in job.subjobs.minimum.items()}
        for part in job.subjobs:
            self._spare[part.policy] = self._spare.get(part.policy, 0) + (self._margins[part.uid] >= 0)

    def takes(self, task: Task) -> bool:
        """Whether the task's sub-job is broken anyway, or its policy can spare a sub-job. If so the task counts as lost from now on."""
        part = self._subjobs.of(task)
        if self._margins[part.uid] >= 0:
            if self._spare[part.policy] <= 0:
                return False
            self._spare[part.policy] -= self._margins[part.uid] == 0
        self._margins[part.uid] -= 1
        return True
