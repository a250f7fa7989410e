"""drf: the job with the smaller dominant share of the cluster first; who has more may be preempted by who has less.

A job's share is the greatest part it holds of any resource. With the switch enableHierarchy the shares of queues are compared
level by level along their paths: see `pumice.plugins.hdrf`.
"""

from __future__ import annotations

from pumice.framework.plugin import Plugin
from pumice.framework.session import Session
from pumice.model.job import Job
from pumice.model.resources import Vector, dominant_share
from pumice.model.task import Task

EQUAL = 1e-6  #: shares nearer than this are equal


class Drf(Plugin):
    name = "drf"

    def open(self, session: Session) -> None:
        super().open(session)
        self._total = session.total

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
