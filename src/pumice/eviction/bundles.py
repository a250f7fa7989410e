"""What gang evictions take from a victim's job at a time: its surplus, or all the rest of it.

The pods of a job in a domain are split in two. The Safe bundle holds those that it can lose and still run (all of them if it does
not run as it is); the Whole bundle the others: losing any of them breaks the gang, so it may as well lose all. Safe bundles go
first; what breaks a gang should give much here for little elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from pumice.model import status
from pumice.model.job import Job
from pumice.model.resources import Vector
from pumice.model.task import Task

READY = status.ALLOCATED_ALL | status.SUCCEEDED


@dataclass
class Bundle:
    """Pods of one job that go together."""

    job: Job
    safe: bool
    tasks: list[Task]

    @cached_property
    def size(self) -> Vector:
        """What they ask for together."""
        return reduce(np.add, (task.template.request for task in self.tasks))


def split(job: Job, candidates: Iterable[Task]) -> list[Bundle]:
    """The bundles of a job, made of those of its tasks that may be evicted here."""
    tasks = sorted(candidates, key=lambda task: (task.priority, task.uid))
    if job.ready_count < job.min_member:
        return [Bundle(job, True, tasks)]
    surplus = _Surplus(job)
    safe = [task for task in tasks if surplus.takes(task)]
    chosen = {task.uid for task in safe}
    rest = [task for task in tasks if task.uid not in chosen]
    return [bundle for bundle in (Bundle(job, True, safe), Bundle(job, False, rest)) if bundle.tasks]


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


def in_order(bundles: list[Bundle], need: Vector, precedence: Callable[[list[Bundle]], list[Bundle]]) -> list[Bundle]:
    """Safe ones first, then as `precedence` sorts them (stably), then those that give most here for what they cost everywhere."""
    if not bundles:
        return []
    ranks = [
        (-worth, bundle.job.uid, bundle.tasks[0].uid, len(bundle.tasks))
        for worth, bundle in zip(_returns(bundles, need).tolist(), bundles, strict=True)
    ]
    ranked = [bundles[number] for number in sorted(range(len(bundles)), key=ranks.__getitem__)]
    return sorted(precedence(ranked), key=lambda bundle: not bundle.safe)


def _returns(bundles: list[Bundle], need: Vector) -> Vector:
    """What each gains here of what is needed, by what is lost in the whole cluster: with a Safe one nothing is."""
    asked = need > 0
    gains = (np.minimum([bundle.size for bundle in bundles], need)[:, asked] / need[asked]).sum(axis=1)
    costs = (np.array([bundle.job.held for bundle in bundles])[:, asked] / need[asked]).sum(axis=1)
    costs[[bundle.safe for bundle in bundles]] = 0.0
    returns: Vector = np.divide(gains, costs, out=np.full(len(bundles), np.inf), where=costs > 0)
    return returns


def approved(bundles: list[Bundle], tasks: Iterable[Task]) -> list[Bundle]:
    """What is left of the bundles when only these tasks may go: less of a Safe one, of a Whole one all or nothing."""
    allowed = {task.uid for task in tasks}
    left = []
    for bundle in bundles:
        kept = [task for task in bundle.tasks if task.uid in allowed]
        if kept and (bundle.safe or len(kept) == len(bundle.tasks)):
            left.append(Bundle(bundle.job, bundle.safe, kept))
    return left
