"""Events of a job, which are the keys of the job controller: made from changes of jobs, pods, PodGroups and other objects.

A change that only requires the job to be looked at again gives a request without an event; so a thousand pods that start are one
key. A request with an event is made only if one of the job's policies would act on it. A pod that is failed when it is first seen
counts as a pod that has just failed: it failed while no controller was running. So does a PodGroup that lost members.
"""

from collections.abc import Iterable
from typing import NamedTuple

from pumice.api import Object, annotations as key, kinds, name_of, namespace_of, spec_of, status_of, uid_of
from pumice.api.defaults import DEFAULT_QUEUE
from pumice.api.integers import integer
from pumice.api.json_objects import annotations_of, condition, controller_of, labels_of, terminating
from pumice.api.kinds import kind_of
from pumice.controllers.controller import Lister, ObjectChange
from pumice.controllers.volcano.job import spec

ANY = "*"
OUT_OF_SYNC = "OutOfSync"
POD_FAILED, POD_EVICTED, POD_PENDING, UNKNOWN = "PodFailed", "PodEvicted", "PodPending", "Unknown"
TASK_COMPLETED, TASK_FAILED = "TaskCompleted", "TaskFailed"


class JobEvent(NamedTuple):
    """A request about one job: an event, or (with OutOfSync, which stands for no event) only to look at the job again."""

    namespace: str
    job: str
    event: str = OUT_OF_SYNC
    uid: str = ""  #: the uid of the job that the event belongs to
    task: str = ""
    pod: str = ""
    pod_uid: str = ""
    partition: str = ""
    exit_code: int = 0
    version: int = 0  #: the version of the job for which the pod was made
    action: str = ""  #: the action if it is decided already, as in a delayed request
    due: float = 0.0  #: when a delayed action is due, in seconds since 1970


def from_job(change: ObjectChange, lister: Lister) -> Iterable[JobEvent]:
    """The request for a job that is new, or whose spec or phase changed."""
    old, new = change
    if new is None or (old and spec_of(old) == spec_of(new) and spec.phase_of(old) == spec.phase_of(new)):
        return
    yield JobEvent(namespace_of(new), name_of(new))


def from_group(change: ObjectChange, lister: Lister) -> Iterable[JobEvent]:
    """The request for a job whose PodGroup has another phase or another reason for not being placed, or is gone."""
    owner = controller_of(change.object)
    if owner is None or kind_of(owner) != kinds.JOB:
        return
    bare = JobEvent(namespace_of(change.object), owner["name"])
    before, after = (status_of(state).get("phase") or "" if state else None for state in change)
    if before != after == UNKNOWN and not terminating(change.object):
        yield bare._replace(event=UNKNOWN, uid=owner["uid"], version=_version_of_job(bare, lister))
    elif before != after or why_unschedulable(change.old) != why_unschedulable(change.new):
        yield bare


def why_unschedulable(group: Object | None) -> str:
    """The scheduler's message about a PodGroup that it cannot place; empty if there is none."""
    if group is None or status_of(group).get("phase") not in (None, "", "Pending", "Inqueue"):
        return ""
    found = condition(group, "Unschedulable") or {}
    return str(found.get("message") or "") if found.get("status") == "True" else ""


def from_lost(change: ObjectChange, lister: Lister) -> Iterable[JobEvent]:
    """The request for a job of whose plugins an object is gone: a user deleted it, or it belonged to an earlier job of this name."""
    owner = controller_of(change.object)
    if change.new is None and owner is not None and kind_of(owner) == kinds.JOB:
        yield JobEvent(namespace_of(change.object), owner["name"])


def _version_of_job(request: JobEvent, lister: Lister) -> int:
    job = lister.get(kinds.JOB, request.namespace, request.job)
    return spec.version_of(job) if job else 0


def from_queue(change: ObjectChange, lister: Lister) -> Iterable[JobEvent]:
    """The requests for the jobs that wait for a queue that did not exist. A job that names none waits for the default queue."""
    name = name_of(change.object)
    for stated in (name, *([""] if name == DEFAULT_QUEUE else [])) if change.old is None else ():
        for job in lister.by_field(kinds.JOB, "spec.queue", stated):
            yield JobEvent(namespace_of(job), name_of(job))


def from_claim(change: ObjectChange, lister: Lister) -> Iterable[JobEvent]:
    """The requests for the jobs that wait for a volume claim that did not exist."""
    if change.old is None:
        for job in lister.all(kinds.JOB, namespace_of(change.object)):
            if any(volume.get("volumeClaimName") == name_of(change.object) for volume in spec_of(job).get("volumes") or ()):
                yield JobEvent(namespace_of(job), name_of(job))


def from_pod(change: ObjectChange, lister: Lister) -> Iterable[JobEvent]:
    """The request for the job of a changed pod; if the pod is gone, also for jobs that may have waited for its name."""
    pod = change.object
    owner = controller_of(pod)
    if change.new is None:
        yield from _waiting_for_its_name(pod, lister)
    if owner is None or kind_of(owner) != kinds.JOB:
        return
    bare = JobEvent(namespace_of(pod), owner["name"])
    job = lister.get(kinds.JOB, *bare[:2])
    event, exit_code = _pod_event(change)
    task = annotations_of(pod).get(key.TASK_SPEC, "")
    if job is None or not _interests(job, task, event) or not _complete(event, job, task, lister):
        yield bare
        return
    yield _about(pod, owner, event, exit_code)


def _about(pod: Object, owner: Object, event: str, exit_code: int) -> JobEvent:
    return JobEvent(
        namespace_of(pod),
        owner["name"],
        event=event,
        uid=owner["uid"],
        task=annotations_of(pod).get(key.TASK_SPEC, ""),
        pod=name_of(pod),
        pod_uid=uid_of(pod),
        partition=labels_of(pod).get(key.PARTITION_ID, ""),
        exit_code=exit_code,
        version=_number(annotations_of(pod).get(key.JOB_VERSION, "")),
    )


def ends(job: Object, lister: Lister) -> Iterable[JobEvent]:
    """The failures of the job's pods and then its tasks that are complete, as events that one of its policies would answer."""
    for pod in lister.dependents(uid_of(job), kinds.POD):
        owner = controller_of(pod)
        mine = owner is not None and owner["uid"] == uid_of(job) and not terminating(pod)
        if mine and status_of(pod).get("phase") == "Failed" and _interests(job, annotations_of(pod).get(key.TASK_SPEC, ""), POD_FAILED):
            yield _about(pod, owner or {}, POD_FAILED, _exit_code(pod))
    for task in spec.tasks(job):
        name = spec.task_name(job, task)
        if _interests(job, name, TASK_COMPLETED) and _complete(TASK_COMPLETED, job, name, lister):
            first = lister.get(kinds.POD, namespace_of(job), spec.pod_name(job, name, 0))
            owner = controller_of(first) if first is not None else None
            if first is not None and owner is not None and owner["uid"] == uid_of(job):
                yield _about(first, owner, TASK_COMPLETED, 0)


def _waiting_for_its_name(pod: Object, lister: Lister) -> Iterable[JobEvent]:
    """The requests for the jobs that may have waited for the name of a pod that was not theirs."""
    name, owner = name_of(pod), controller_of(pod)
    for end in (index for index, letter in enumerate(name) if letter == "-"):
        job = lister.get(kinds.JOB, namespace_of(pod), name[:end])
        if job is not None and (owner is None or owner["uid"] != uid_of(job)):
            yield JobEvent(namespace_of(pod), name[:end])


def _pod_event(change: ObjectChange) -> tuple[str, int]:
    """The event that a pod's change means, and the exit code that belongs to it."""
    if change.new is None:
        meant = key.KILLED_ON_PURPOSE in annotations_of(change.object)
        return (OUT_OF_SYNC if meant else POD_EVICTED), 0
    if terminating(change.new):
        return OUT_OF_SYNC, 0  # how the pod ends does not matter: its removal is the event
    before = status_of(change.old).get("phase") if change.old else None
    after = status_of(change.new).get("phase") or "Pending"
    if after == "Failed" and before != "Failed":
        return POD_FAILED, _exit_code(change.new)
    if after == "Succeeded" and before != "Succeeded":
        return TASK_COMPLETED, 0
    restarts = _restarts(change.old) if change.old else 0
    if after in ("Pending", "Running") and _restarts(change.new) > restarts:
        return TASK_FAILED, 0
    return (POD_PENDING if after == "Pending" else OUT_OF_SYNC), 0


def _number(text: str) -> int:
    """The number in an annotation, which anybody may have written: 0 if it is negative or not a number."""
    return max(0, integer(text))


def _exit_code(pod: Object) -> int:
    """The exit code of the pod's first container; 0 if it has not ended."""
    first: Object = next(iter(status_of(pod).get("containerStatuses") or ()), {})
    return int(((first.get("state") or {}).get("terminated") or {}).get("exitCode") or 0)


def _restarts(pod: Object) -> int:
    status = status_of(pod)
    containers = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    return sum(int(each.get("restartCount") or 0) for each in containers)


def _complete(event: str, job: Object, task_name: str, lister: Lister) -> bool:
    """Whether an event of a pod is complete: TaskCompleted and TaskFailed must be true for the task as a whole."""
    task = spec.task_named(job, task_name)
    if event not in (TASK_COMPLETED, TASK_FAILED) or task is None:
        return event not in (TASK_COMPLETED, TASK_FAILED)
    if event == TASK_COMPLETED:
        names = (spec.pod_name(job, task_name, index) for index in reversed(range(spec.replicas(task))))
        return all(_succeeded(lister.get(kinds.POD, namespace_of(job), name)) for name in names)  # stops at the first that has not
    pods = [pod for pod in lister.dependents(uid_of(job), kinds.POD) if annotations_of(pod).get(key.TASK_SPEC) == task_name]
    limit = int(task.get("maxRetry") or spec.MAX_RETRY)
    restarts = sum(_restarts(pod) for pod in pods if status_of(pod).get("phase") in ("Running", "Pending"))
    return 0 <= limit <= restarts


def _succeeded(pod: Object | None) -> bool:
    return pod is not None and status_of(pod).get("phase") == "Succeeded"


def _interests(job: Object, task_name: str, event: str) -> bool:
    """Whether one of the job's policies answers the event or, if a pod failed, an exit code."""
    task = spec.task_named(job, task_name) or {}
    return event != OUT_OF_SYNC and any(
        answers(policy, event) or (event == POD_FAILED and policy.get("exitCode") is not None)
        for policy in (*(task.get("policies") or ()), *(spec_of(job).get("policies") or ()))
    )


def answers(policy: Object, event: str) -> bool:
    """Whether a policy answers the event. That a pod is pending is an event only after some time."""
    names = events_of(policy)
    return (event in names or ANY in names) and (event != POD_PENDING or policy.get("timeout") is not None)


def events_of(policy: Object) -> list[str]:
    return [*((policy["event"],) if policy.get("event") else ()), *(policy.get("events") or ())]
