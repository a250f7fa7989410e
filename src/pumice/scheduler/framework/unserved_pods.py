"""Pending pods that no action looks at, and what is missing: their PodGroup, its queue, or the scheduler that they name.

A running scheduler reports the pods that name it (`stranded`), after giving controllers a moment to make what is missing. For a state
that is read from files all such pods are reported (`unserved`).
"""

from __future__ import annotations

from math import inf
from operator import attrgetter

from pumice.api import did_you_mean
from pumice.api.annotations import GROUP_NAME
from pumice.scheduler.framework.decisions import Decisions, Waiting
from pumice.scheduler.framework.hook_answers import UNSCHEDULABLE
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import Cluster, Task, status

_queue = attrgetter("queue")

GRACE_S = 5.0  #: for this time a new pod may be without its PodGroup


def stranded(cluster: Cluster, policy: Policy, now: float) -> list[Waiting]:
    """For each pod that names this scheduler, that no action looks at, and that is older than GRACE_S: why it waits."""
    if policy.profiles is not None and cluster.schedulers <= policy.profiles.by_name.keys():
        return []
    waits = [task for task in _looked_at_by_none(cluster) if now - task.created >= GRACE_S and not task.gated]
    return [Waiting(task, UNSCHEDULABLE, why) for task in waits if (why := _missing(cluster, policy, task))]


def next_stranded(cluster: Cluster, now: float) -> float:
    """When the next pod that no action looks at will be older than GRACE_S; inf if there is no such pod."""
    return min((task.created + GRACE_S for task in _looked_at_by_none(cluster) if now - task.created < GRACE_S), default=inf)


def _looked_at_by_none(cluster: Cluster) -> list[Task]:
    missing = {queue for queue in {*map(_queue, cluster.waiting.values())} if queue is None or not queue.exists}
    jobs = [job for job in cluster.waiting.values() if job.queue in missing] if missing else ()
    return [*cluster.without_job.values(), *(task for job in jobs for task in job.pending.values())]


def unserved(cluster: Cluster, policy: Policy, decisions: Decisions) -> list[Waiting]:
    """For each Pending pod that the decisions do not mention: why it waits."""
    explained = {waiting.task.uid for waiting in decisions.waiting}
    waits = [task for task in cluster.tasks.values() if task.status == status.PENDING and task.uid not in explained]
    return [Waiting(task, UNSCHEDULABLE, why) for task in waits if (why := _missing(cluster, policy, task))]


def _missing(cluster: Cluster, policy: Policy, task: Task) -> str:
    wanted, job = task.template.scheduler_name, task.job
    if wanted not in cluster.schedulers:
        return f'it asks for scheduler "{wanted}"; this one serves {", ".join(sorted(cluster.schedulers))}'
    if policy.profiles is not None and wanted in policy.profiles.by_name:
        return ""
    if job is None:
        return f"it has no PodGroup; name one in the annotation {GROUP_NAME}, or have Volcano's controllers make one"
    if job.group is None:
        groups = (other.name for other in cluster.jobs.values() if other.group is not None and other.namespace == job.namespace)
        return cluster.absent("PodGroup", f"PodGroup {job.uid} does not exist{did_you_mean(job.name, groups)}")
    if job.queue is not None and not job.queue.exists:
        queues = (queue.name for queue in cluster.queues.values() if queue.exists)
        return cluster.absent("Queue", f"queue {job.queue.name} does not exist{did_you_mean(job.queue.name, queues)}")
    return ""
