"""Who was evicted of late, and why."""

from __future__ import annotations

from collections.abc import Iterable

from pumice.answers.answer import Why
from pumice.answers.subject import SHORT, Subject
from pumice.api.times import rfc3339
from pumice.scheduler.framework.past_evictions import PastEviction, past_evictions
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.task import Task

SHOWN = 10


def of_pods(cluster: Cluster, tasks: Iterable[Task], job: str = "") -> tuple[PastEviction, ...]:
    """Of these pods, those that had their names before them, and others of the job; the last ones."""
    keys = {task.key for task in tasks}
    return tuple(each for each in past_evictions(cluster) if each.pod in keys or (job and each.job == job))[-SHOWN:]


def gone_pod(cluster: Cluster, subject: str) -> Why | None:
    """The answer for a pod that is no longer there because it was evicted."""
    kind, _, name = subject.partition("/")
    key = name if "/" in name else f"default/{name}"
    evictions = tuple(each for each in past_evictions(cluster) if each.pod == key)[-SHOWN:]
    if SHORT.get(kind, kind) != "pod" or key in cluster.tasks or not evictions:
        return None
    last = evictions[-1]
    return Why(str(Subject("pod", key)), "was evicted", text=f"at {rfc3339(last.at)}, because of {last.words}", evictions=evictions)
