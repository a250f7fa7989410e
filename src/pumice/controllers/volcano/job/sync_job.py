"""Looking after a job that is to run: its objects exist, its group is right, and once the group is let in so are its pods.

No pod is made while the group waits to be enqueued: that gate is how the scheduler keeps a full cluster free of pods that
cannot run. What keeps a job from starting is said in its status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pumice.api import annotations as key
from pumice.controllers import kinds
from pumice.controllers.objects import Object, annotations_of, labels_of, name_of, namespace_of, spec_of, status_of, terminating, uid_of
from pumice.controllers.volcano.job import job_status, spec, state
from pumice.controllers.volcano.job.event import JobEvent, why_unschedulable
from pumice.controllers.volcano.job.plugins import Plugin
from pumice.controllers.volcano.job.pod_group import group_of, group_writes
from pumice.controllers.volcano.job.pods import by_task, make_pod, may_start, missing_claim, mount, volume_writes
from pumice.controllers.world import World
from pumice.controllers.writes import Create, Write, delete, patch

# Ending the pods of a job: all but those in retained phases, or only those of one task, pod or partition.
#
# A whole kill ends an attempt: the version counts up, so that whatever is still heard of these pods is old news, and the group and the
# plugins' objects go. A partial one leaves the rest of the job at work; its pods are marked first, so that their end is not taken for an
# eviction. With the last retry spent, pods that have ended stay for their users to read.


def condemned(job: Object, pods: Iterable[Object], retain: frozenset[str]) -> list[Object]:
    """The pods that a kill ends."""
    begun = spec.retry_count(job) + (spec.phase_of(job) != state.RESTARTING)
    if begun >= spec.max_retry(job):
        retain = state.SOFT
    return [pod for pod in pods if not terminating(pod) and (status_of(pod).get("phase") or "Pending") not in retain]


def targeted(pods: Iterable[Object], action: str, request: JobEvent) -> list[Object]:
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


class Setting(NamedTuple):
    """A job and what there is of it."""

    job: Object
    pods: Sequence[Object]
    plugins: Mapping[str, Plugin]
    world: World


def sync(at: Setting, status: Object) -> list[Write]:
    """The writes that a running job needs now; counts and reasons go into the draft of its status."""
    job = at.job
    job_status.count(status, at.pods)
    waits = spec.phase_of(job) in ("", "Pending")
    obstacle = _obstacle(at) if waits else ("", "")
    job_status.explain(status, *(obstacle if obstacle[0] or not waits else _not_placed(at)))
    if obstacle[0]:
        return []
    queue = at.world.get(kinds.QUEUE, "", spec.queue_name(job))
    forwarded = queue is not None and bool(spec_of(queue).get("extendClusters"))
    return [*_objects(at, status, forwarded), *_pods(at, status, forwarded)]


def _obstacle(at: Setting) -> tuple[str, str]:
    """Why the job cannot begin, as reason and message; empty if nothing is in the way."""
    queue = spec.queue_name(at.job)
    if at.world.get(kinds.QUEUE, "", queue) is None:
        return "QueueNotFound", f'queue "{queue}" does not exist; create it or name another'
    claim = missing_claim(at.job, at.world)
    if claim:
        subject = f'PersistentVolumeClaim "{namespace_of(at.job)}/{claim}"'
        return "PVCError", f"{subject} does not exist; create it, or describe it in volumeClaim"
    return "", ""


def _not_placed(at: Setting) -> tuple[str, str]:
    """What the scheduler says of the job's group, so that one need not look for it there."""
    why = why_unschedulable(group_of(at.job, at.world))
    return ("PodGroupPending", f"PodGroup {namespace_of(at.job)}:{name_of(at.job)} unschedule,reason: {why}") if why else ("", "")


def _objects(at: Setting, status: Object, forwarded: bool) -> list[Write]:
    writes: list[Write] = []
    if forwarded and key.JOB_FORWARDING not in annotations_of(at.job):
        writes.append(patch(at.job, {"metadata": {"annotations": {key.JOB_FORWARDING: "true"}}}))
    if spec.phase_of(at.job) in ("", "Pending"):
        writes.extend(volume_writes(at.job, status, at.world))
    for name, plugin in at.plugins.items():
        writes.extend(plugin.keep(at.job, at.world))
        status["controlledResources"] = {**(status.get("controlledResources") or {}), f"plugin-{name}": name}
    return [*writes, *group_writes(at.job, group_of(at.job, at.world), at.world)]


def _pods(at: Setting, status: Object, forwarded: bool) -> list[Write]:
    group = group_of(at.job, at.world)
    if group is None or terminating(group) or status_of(group).get("phase") in (None, "", "Pending"):
        return []
    present = by_task(at.pods)
    left_over = dict(present)
    made: list[Object] = []
    surplus: list[Object] = []
    for task in spec.tasks(at.job):
        name = spec.task_name(at.job, task)
        there = left_over.pop(name, {})
        wanted = {spec.pod_name(at.job, name, index): index for index in range(spec.replicas(task))}
        surplus.extend(pod for pod_name, pod in there.items() if pod_name not in wanted)
        if may_start(at.job, task, present):
            missing = (index for pod_name, index in wanted.items() if pod_name not in there and not _taken(at, pod_name))
            made.extend(_dress(make_pod(at.job, task, index, name_of(group), forwarded), task, index, at) for index in missing)
    surplus.extend(pod for pods in left_over.values() for pod in pods.values())
    surplus = [pod for pod in surplus if not terminating(pod)]
    job_status.count(status, [*at.pods, *made], frozenset(map(name_of, surplus)))
    return [*end_on_purpose(surplus), *(Create(pod, at.job) for pod in made)]


def _taken(at: Setting, pod_name: str) -> bool:
    """Whether a pod of somebody else has the name: an earlier job's, or that of one whose name and task begin alike."""
    return at.world.get(kinds.POD, namespace_of(at.job), pod_name) is not None


def _dress(pod: Object, task: Object, index: int, at: Setting) -> Object:
    """Volumes, and what plugins add."""
    mount(pod, at.job)
    for plugin in at.plugins.values():
        plugin.dress(pod, at.job, task, index)
    return pod
