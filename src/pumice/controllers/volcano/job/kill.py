"""Ending the pods of a job: all pods except those in retained phases, or only the pods of one task or partition, or one pod.

A whole kill ends an attempt: the job's version counts up, so that later events of these pods are stale, and the PodGroup and the plugins'
objects are deleted. A partial kill leaves the rest of the job running; its pods are marked first, so that their end is not taken for an
eviction. After the last retry, pods that have ended stay, so that users can look at them.
"""

from collections.abc import Iterable

from pumice.api import Object, annotations as key, status_of, uid_of
from pumice.api.json_objects import annotations_of, labels_of, terminating
from pumice.controllers.volcano.job import spec, state
from pumice.controllers.volcano.job.event import JobEvent
from pumice.controllers.writes import Write, delete, patch


def condemned(job: Object, pods: Iterable[Object], retain: frozenset[str]) -> list[Object]:
    """The pods that a kill ends: pods in other phases than the retained ones; after the last retry, only pods that have not ended."""
    begun = spec.retry_count(job) + (spec.phase_of(job) != state.RESTARTING)
    if begun >= spec.max_retry(job):
        retain = state.SOFT
    return [pod for pod in pods if not terminating(pod) and (status_of(pod).get("phase") or "Pending") not in retain]


def targeted(pods: Iterable[Object], action: str, request: JobEvent) -> list[Object]:
    """The pods that a partial restart ends. If the event's pod is gone, a successor with its name is not meant."""

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
    """End pods without an event for the job's policies: all pods are marked first, so that they end together."""
    mark = {"metadata": {"annotations": {key.KILLED_ON_PURPOSE: "true"}}}
    gone = list(pods)
    return [*(patch(pod, mark) for pod in gone), *end(gone)]
