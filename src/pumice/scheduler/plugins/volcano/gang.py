"""gang: a job's pods start together or not at all.

A job is valid with enough pods (of each role, of each sub-group), ready when its minimum holds a node (`Job.is_ready`), and may lose a
pod only while more than the minimum run. Jobs that are not ready are served first.

Where it is configured the action `giveback` runs last (actions/giveback.py).
"""

from typing import Any

from pumice.scheduler.framework.decisions import GANG_READY
from pumice.scheduler.framework.hook_answers import NOT_ENOUGH_PODS_OF_TASK, NOT_ENOUGH_TASKS, Refusal, Vote
from pumice.scheduler.framework.job_status import fit_error, not_ready
from pumice.scheduler.framework.moved_jobs import MovedJobs
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Job, SubJob, Task, status


class Gang(Plugin):
    name = "gang"
    reads_only_state = True
    plain_for_newcomers = True
    plain_in_line = True

    def open(self, session: Session) -> None:
        super().open(session)
        self._moved: MovedJobs | None = None
        self._elastic = set[Job]()

    def job_valid(self, job: Job) -> Refusal | None:
        if not job.roles_reach(status.VALID):
            return Refusal(NOT_ENOUGH_PODS_OF_TASK, "Not enough valid pods of each task for gang-scheduling")
        if not self._enough_subgroups(job, lambda subjob: True):
            return Refusal(NOT_ENOUGH_PODS_OF_TASK, "Not enough valid subGroups of each task for gang-scheduling")
        valid = job.valid_count
        if valid < job.min_member:
            return Refusal(NOT_ENOUGH_TASKS, f"Not enough valid tasks for gang-scheduling, valid: {valid}, min: {job.min_member}")
        return None

    def job_order(self, job: Job) -> bool:
        return job.is_ready

    order_of_newcomer = job_order

    def sub_job_order(self, subjob: SubJob) -> bool:
        return subjob.is_ready

    def job_ready(self, job: Job) -> bool:
        if not job.is_ready or not job.roles_reach(status.READY):
            return False
        return self._enough_subgroups(job, lambda subjob: subjob.is_ready)

    def job_pipelined(self, job: Job) -> Vote:
        if not job.is_pipelined or not job.roles_reach(status.READY | status.PIPELINED):
            return Vote.REJECT
        return Vote.PERMIT if self._enough_subgroups(job, lambda subjob: subjob.is_pipelined) else Vote.REJECT

    def sub_job_ready(self, subjob: SubJob) -> bool:
        return subjob.is_ready

    def sub_job_pipelined(self, subjob: SubJob) -> Vote:
        return Vote.PERMIT if subjob.is_pipelined else Vote.REJECT

    def job_starving(self, job: Job) -> bool:
        return job.is_starving

    def preemptable(self, evictor: Task, candidates: list[Task]) -> list[Task]:
        """The candidates, in order, as long as their job has more ready pods than its minimum."""
        left: dict[str, int] = {}
        victims = []
        for task in candidates:
            job = task.job
            if job is None:
                continue
            ready = left.setdefault(job.uid, job.ready_count)
            if ready > job.min_member:
                left[job.uid] = ready - 1
                victims.append(task)
        return victims

    reclaimable = preemptable

    def exposes(self) -> set[Job]:
        """The jobs that have more ready pods than their minimum."""
        if self._moved is None:
            self._moved = MovedJobs(self.session.cluster, since_now=True)
            self._elastic = set(self.session.cluster.elastic_jobs())
        for job in self._moved.now():
            (self._elastic.add if job.queue is not None and job.ready_count > job.min_member else self._elastic.discard)(job)
        return self._elastic

    def spares(self, evictor: Task, task: Task) -> bool:
        return task.job is None or task.job.ready_count <= task.job.min_member

    def spares_rows(self, evictor: Task) -> bool:
        return not self.exposes()

    def eviction_cache_key(self, evictor: Task) -> None:
        """All evictors get the same answers."""

    def unified_evictable(self, context: Any, candidates: list[Task]) -> list[Task]:
        return candidates

    def close(self, session: Session) -> None:
        """Set a condition of every job that says whether its gang is ready."""
        for alike in session.together(session.cluster.changed):
            job = alike.first
            if not job.tasks:
                continue
            if job.is_ready:
                session.conditions[job.uid] = GANG_READY
            elif not _only_leaving(job):
                tried = session.last_try.keys() & job.pending.keys()
                found = sum(1 for uid in tried if session.last_try[uid].status & status.ALLOCATED_ALL)
                why = session.states[job.uid] = fit_error(session, job) if session.observer.reads_reasons else ""
                session.conditions[job.uid] = not_ready(job, found, why)

    @staticmethod
    def _enough_subgroups(job: Job, counts: Any) -> bool:
        if job.has_one_part:
            return True
        parts = job.subjobs
        return all(sum(1 for subjob in parts if subjob.policy == name and counts(subjob)) >= least for name, least in parts.minimum.items())


def _only_leaving(job: Job) -> bool:
    """Whether the job lacks pods only because pods of it are leaving: it shrinks or restarts."""
    if not job.counts[status.RELEASING]:
        return False
    leaving = sum(1 for task in job.tasks.values() if task.status == status.RELEASING and task.node_name)
    scheduled = job.count(status.RUNNING | status.BOUND | status.FINISHED)
    waits = len(job.pending) + job.counts[status.PIPELINED]
    return leaving > 0 and waits == 0 and scheduled + leaving >= job.min_member
