"""Ending the pods of a job: all but those in retained phases, or only those of one task, pod or partition.

A whole kill ends an attempt: the version counts up, so that whatever is still heard of these pods is old news, and the group
and the plugins' objects go. A partial one leaves the rest of the job at work; its pods are marked first, so that their end is
not taken for an eviction. With the last retry spent, pods that have ended stay for their users to read.
"""

from __future__ import annotations

from collections.abc import Iterable

from pumice.api import annotations as key
from pumice.controllers.job import spec, state
from pumice.controllers.job.request import Request
from pumice.controllers.objects import Object, annotations_of, labels_of, status_of, terminating, uid_of
from pumice.controllers.writes import Write, delete, patch


def condemned(job: Object, pods: Iterable[Object], retain: frozenset[str]) -> list[Object]:
    """The pods that a kill ends."""
    begun = spec.retry_count(job) + (spec.phase_of(job) != state.RESTARTING)
    if begun >= spec.max_retry(job):
        retain = state.SOFT
    return [pod for pod in pods if not terminating(pod) and (status_of(pod).get("phase") or "Pending") not in retain]


def targeted(pods: Iterable[Object], action: str, request: Request) -> list[Object]:
    """The pods that a partial restart is about; a pod that is gone may have a successor by now, which is not meant."""

    def meant(pod: Object) -> bool:
        if action == state.RESTART_POD:
            return uid_of(pod) == request.pod_uid
        same_task = bool(request.task) and annotations_of(pod).get(key.TASK_SPEC) == request.task
        if action == state.RESTART_PARTITION and request.partition:
            return same_task and labels_of(pod).get(key.PARTITION_ID) == request.partition
        return same_task

    return [pod for pod in pods if meant(pod)]


def end(pods: Iterable[Object]) -> list[Write]:
    return [delete(pod) for pod in pods]


def end_on_purpose(pods: Iterable[Object]) -> list[Write]:
    """End pods whose end is no event for the job's policies: all are marked first, so that they end together."""
    mark = {"metadata": {"annotations": {key.KILLED_ON_PURPOSE: "true"}}}
    gone = list(pods)
    return [*(patch(pod, mark) for pod in gone), *end(gone)]
