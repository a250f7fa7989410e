"""drf: the job with the smaller dominant share of the cluster first; who has more may be preempted by who has less.

A job's share is the greatest part it holds of any resource. With the switch enableHierarchy the shares of queues are compared
level by level along their paths: see `pumice.plugins.hdrf`.
"""

from __future__ import annotations

from pumice.framework.plugin import Plugin
from pumice.framework.session import Session
from pumice.model.job import Job
from pumice.model.queue import Queue
from pumice.model.resources import Vector, dominant_share
from pumice.model.task import Task
from pumice.plugins.hdrf import Tree

EQUAL = 1e-6  #: shares nearer than this are equal


class Drf(Plugin):
    name = "drf"
    hierarchy_only = frozenset({"compare_queues", "reclaimable", "on_allocate", "on_deallocate"})

    def open(self, session: Session) -> None:
        super().open(session)
        self._total = session.total
        self._tree: Tree | None = None

    def job_order(self, job: Job) -> float:
        return dominant_share(job.held, self._total)

    def preemptable(self, preemptor: Task, candidates: list[Task]) -> list[Task]:
        """Tasks whose job would still have a share no smaller than the preemptor's job with its new task."""
        job = preemptor.job
        assert job is not None
        share = dominant_share(job.held + preemptor.template.request, self._total)
        left: dict[str, Vector] = {}
        victims = []
        for task in candidates:
            victim_job = task.job
            if victim_job is None:
                continue
            left[victim_job.uid] = left.get(victim_job.uid, victim_job.held) - task.template.request
            rest = dominant_share(left[victim_job.uid], self._total)
            if share < rest or abs(share - rest) <= EQUAL:
                victims.append(task)
        return victims

    def evictor_kind(self, evictor: Task) -> tuple[str | bytes, bytes]:
        """By what it asks for and its job has; in a hierarchy jobs differ in more."""
        assert evictor.job is not None
        return evictor.job.uid if self.hierarchy else evictor.job.held.tobytes(), evictor.template.request.tobytes()

    # -- with the switch enableHierarchy

    @property
    def tree(self) -> Tree:
        """Grown when first asked for."""
        if self._tree is None:
            self._tree = Tree(self.session.queues, self._total)
        return self._tree

    def compare_queues(self, left: Queue, right: Queue) -> int:
        return self.tree.compare(left, right)

    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> list[Task]:
        """Tasks whose queue would still come after the reclaimer's, were it served and those before them gone to others."""
        job = reclaimer.job
        assert job is not None and job.queue is not None
        victims, tree = [], self.tree
        tree.shift(job, reclaimer.template.request)
        for task in candidates:
            owner = task.job
            if owner is None or owner.queue is None:
                continue
            tree.shift(owner, -task.template.request)
            if tree.compare(job.queue, owner.queue) < 0:
                victims.append(task)
                tree.keep_taken(task.template.request)
            else:
                tree.shift(owner, task.template.request)
        for task in victims:
            assert task.job is not None
            tree.keep_taken(-task.template.request)
            tree.shift(task.job, task.template.request)
        tree.shift(job, -reclaimer.template.request)
        return victims

    def on_allocate(self, task: Task) -> None:
        if task.job is not None and self._tree is not None:
            self._tree.shift(task.job, task.template.request)

    def on_deallocate(self, task: Task) -> None:
        if task.job is not None and self._tree is not None:
            self._tree.shift(task.job, -task.template.request)
