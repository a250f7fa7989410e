"""drf: the job with the smaller dominant share of the cluster first; who has more may be preempted by who has less.

A job's share is the greatest part it holds of any resource. With usage.halfLife what its user (`pumice.io/user` of the PodGroup, else its
namespace) used before counts beside what the job holds, in the order of jobs alone. With the switch enableHierarchy the shares of queues
are compared level by level along their paths (`hdrf.py`).
"""

from __future__ import annotations

from collections.abc import Hashable
from math import inf

import numpy as np

from pumice.scheduler.framework.moved_jobs import MovedJobs
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Job, Mask, Queue, Task, Vector, dominant_share
from pumice.scheduler.model.past_shares import PastUsageArgs, format_amount, past_shares
from pumice.scheduler.model.past_usage import user_of
from pumice.scheduler.plugins.volcano.drf.hdrf import HdrfTree

EQUAL = 1e-6  #: shares nearer than this are equal


class Drf(Plugin):
    name = "drf"
    tunable = True
    reads_only_state = True
    plain_for_newcomers = True
    Args = PastUsageArgs
    hierarchy_only = frozenset({"compare_queues", "reclaimable", "on_allocate", "on_deallocate"})

    def open(self, session: Session) -> None:
        super().open(session)
        self._total = session.total
        self._tree: HdrfTree | None = None
        self._past = past_shares(session.cluster, self.args, user_of, session.now)
        #: by node: the greatest share that any job with tasks there would have had without one of its tasks
        self._most_left = np.full(len(session.nodes), -inf)
        self._moved = MovedJobs(session.cluster)
        self._shares: dict[bytes, float] = {}  #: by what is held, the bytes of a sum or of a vector: many jobs hold the same

    def class_key(self, job: Job) -> str:
        return user_of(job) if self._past else ""

    def next_turn(self, session: Session) -> float:
        return self._past.next_turn if self._past else inf

    def job_order(self, job: Job) -> float:
        if self._past:
            return self._share(job.held + self._past.weight * self._past.mean(user_of(job)))
        key = job.holding.tobytes()
        if key not in self._shares:
            self._shares[key] = self._share(job.held)
        return self._shares[key]

    def order_of_newcomer(self, job: Job) -> float | None:
        """Newcomers hold nothing yet, so that only what was used before could tell them apart."""
        return None if self.args.half_life else 0.0

    def _share(self, held: Vector) -> float:
        key = held.tobytes()
        if key not in self._shares:
            self._shares[key] = dominant_share(held, self._total)
        return self._shares[key]

    def why_before(self, first: Job, second: Job) -> str:
        """How past usage explains that the first job goes before the second; empty if it does not."""
        if self._past is None or self._share(first.held) < self._share(second.held):
            return ""
        (one, less), (other, more) = ((user, self._share(self._past.mean(user))) for user in (user_of(first), user_of(second)))
        return format_amount(one, less, other, more, "the cluster")

    def preemptable(self, preemptor: Task, candidates: list[Task]) -> list[Task]:
        """The tasks whose job would still have a share no smaller than that of the preemptor's job with its new task."""
        job = preemptor.job
        assert job is not None
        share = self._share(job.held + preemptor.template.request)
        left: dict[str, Vector] = {}
        victims = []
        for task in candidates:
            victim_job = task.job
            if victim_job is None:
                continue
            left[victim_job.uid] = left.get(victim_job.uid, victim_job.held) - task.template.request
            rest = self._share(left[victim_job.uid])
            if share < rest or abs(share - rest) <= EQUAL:
                victims.append(task)
        return victims

    def spares(self, evictor: Task, task: Task) -> bool:
        if self.hierarchy:
            return False
        assert evictor.job is not None
        share = self._share(evictor.job.held + evictor.template.request)
        return task.job is None or share - self._share(task.job.held - task.template.request) > EQUAL

    def spares_rows(self, evictor: Task) -> Mask | bool:
        if self.hierarchy:
            return False
        assert evictor.job is not None
        for job in self._moved.now():
            if len(job.pending) < len(job.tasks):
                placed = [task for task in job.tasks.values() if task.node >= 0]
                left = max((self._share(job.held - template.request) for template in {task.template for task in placed}), default=-inf)
                for task in placed:
                    self._most_left[task.node] = max(self._most_left[task.node], left)
        mask: Mask = self._share(evictor.job.held + evictor.template.request) - self._most_left > EQUAL
        return mask

    def eviction_cache_key(self, evictor: Task) -> Hashable:
        """The share that the evictor's job would have; in a hierarchy the job and the request, since more counts there."""
        assert evictor.job is not None
        if self.hierarchy:
            return evictor.job.uid, evictor.template.request.tobytes()
        return self._share(evictor.job.held + evictor.template.request)

    # -- with the switch enableHierarchy

    @property
    def tree(self) -> HdrfTree:
        """The tree of queues, built when it is first asked for."""
        if self._tree is None:
            self._tree = HdrfTree(self.session.queues, self._total)
        return self._tree

    def compare_queues(self, left: Queue, right: Queue) -> int:
        return self.tree.compare(left, right)

    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> list[Task]:
        """The tasks whose queue would still come after the reclaimer's queue, if the reclaimer were placed and the earlier victims gone,
        with their room taken by others."""
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
