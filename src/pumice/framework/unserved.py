"""Pods that wait though no action looks at them, and what is missing: their PodGroup, its queue, or a scheduler that they would accept.

A running scheduler tells those that ask for it (`stranded`), and gives controllers a moment to make what is missing. Who reads files wants
to know of all (`unserved`).
"""

from __future__ import annotations

from pumice.api.annotations import GROUP_NAME
from pumice.api.errors import did_you_mean
from pumice.framework.decisions import Decisions, Waiting
from pumice.framework.policy import Policy
from pumice.framework.verdict import UNSCHEDULABLE
from pumice.model import status
from pumice.model.cluster import Cluster
from pumice.model.lacking import absent
from pumice.model.task import Task

GRACE_S = 5.0  #: within it the PodGroup of a new pod may still come


def stranded(cluster: Cluster, policy: Policy, now: float) -> list[Waiting]:
    """Those that ask for this scheduler, and have waited for a while."""
    if policy.profiles is not None and cluster.schedulers <= policy.profiles.by_name.keys():
        return []
    jobs = [job for job in cluster.waiting.values() if job.queue is None or not job.queue.exists]
    tasks = [*cluster.loose.values(), *(task for job in jobs for task in job.pending.values())]
    waits = [task for task in tasks if now - task.created >= GRACE_S and not task.gated]
    return [Waiting(task, UNSCHEDULABLE, why) for task in waits if (why := _missing(cluster, policy, task))]


def unserved(cluster: Cluster, policy: Policy, decisions: Decisions) -> list[Waiting]:
    """Those that the decisions do not tell of."""
    told = {waiting.task.uid for waiting in decisions.waiting}
    waits = [task for task in cluster.tasks.values() if task.status == status.PENDING and task.uid not in told]
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
        return absent(cluster, "PodGroup", f"PodGroup {job.uid} does not exist{did_you_mean(job.name, groups)}")
    if job.queue is not None and not job.queue.exists:
        queues = (queue.name for queue in cluster.queues.values() if queue.exists)
        return absent(cluster, "Queue", f"queue {job.queue.name} does not exist{did_you_mean(job.queue.name, queues)}")
    return ""
