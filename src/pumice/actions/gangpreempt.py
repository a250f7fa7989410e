"""gangpreempt: within a queue, less important gangs give way to a gang that lacks places to start, as whole gangs if need be."""

from __future__ import annotations

from pumice.actions.gang_eviction import GangEviction
from pumice.eviction.bundles import Bundle
from pumice.framework.session import Session
from pumice.model.job import Job
from pumice.model.task import Task


class GangPreempt(GangEviction):
    name = "gangpreempt"

    def may_go(self, job: Job, victim: Task, its_job: Job) -> bool:
        return its_job.queue is job.queue and its_job.priority < job.priority

    def precedence(self, session: Session, task: Task, bundles: list[Bundle]) -> list[Bundle]:
        return sorted(bundles, key=lambda bundle: session.job_plugin_key(bundle.job), reverse=True)
