"""The state machine of a job: what an action does in each phase, and which phase the counts of pods lead to.

A phase maps an action to a plan: look after the pods (`sync`), or kill all pods except those in a phase of `retain`; then `enter` changes
the status, given its fresh counts. `Aborted`, `Completed`, `Terminated` and `Failed` end a job; only an aborted job can be resumed.
A job that has been restarted `maxRetry` times fails.
"""

from collections.abc import Callable

from msgspec import Struct

from pumice.api import Object
from pumice.controllers.volcano.job import spec

PENDING, RUNNING, RESTARTING = "Pending", "Running", "Restarting"
ABORTING, COMPLETING, TERMINATING = "Aborting", "Completing", "Terminating"
ABORTED, COMPLETED, TERMINATED, FAILED = "Aborted", "Completed", "Terminated", "Failed"
ENDING = (ABORTING, COMPLETING, TERMINATING)
FINISHED = (COMPLETED, TERMINATED, FAILED)

RESTART_JOB, ABORT_JOB, RESUME_JOB = "RestartJob", "AbortJob", "ResumeJob"
COMPLETE_JOB, TERMINATE_JOB = "CompleteJob", "TerminateJob"
RESTART_TASK, RESTART_POD, RESTART_PARTITION = "RestartTask", "RestartPod", "RestartPartition"
PARTIAL = (RESTART_TASK, RESTART_POD, RESTART_PARTITION)

NONE: frozenset[str] = frozenset()
SOFT = frozenset({"Succeeded", "Failed"})

Enter = Callable[[Object, Object], None]  #: (job, draft of its status with fresh counts)

COUNTED = {"Pending": "pending", "Running": "running", "Succeeded": "succeeded", "Failed": "failed"}  #: pod phase to status field


class JobPlan(Struct, frozen=True):
    """What to do with the pods, and then with the status."""

    enter: Enter
    retain: frozenset[str] | None = None  #: the phases of pods that are not killed; None: no pod is killed
    target_only: bool = False  #: kill only the pods that the request names


def plan(job: Object, action: str) -> JobPlan:
    """The plan for `action` in the job's present phase."""
    phase = spec.phase_of(job)
    if phase == RESTARTING and spec.retry_count(job) >= spec.max_retry(job):
        return JobPlan(_to(FAILED), SOFT)
    return PHASES.get(phase, _pending)(action)


def move(status: Object, phase: str) -> None:
    status["state"]["phase"] = phase


def _to(phase: str) -> Enter:
    return lambda job, status: move(status, phase)


def _restart(job: Object, status: Object) -> None:
    move(status, RESTARTING)
    status["retryCount"] = int(status.get("retryCount") or 0) + 1


ACTIVE = {
    RESTART_JOB: JobPlan(_restart, NONE),
    **dict.fromkeys(PARTIAL, JobPlan(_restart, NONE, target_only=True)),
    ABORT_JOB: JobPlan(_to(ABORTING), SOFT),
    COMPLETE_JOB: JobPlan(_to(COMPLETING), SOFT),
    TERMINATE_JOB: JobPlan(_to(TERMINATING), SOFT),
}  #: the actions that pending and running jobs have in common


def _new(action: str) -> JobPlan:
    """The plan for a new job, which becomes Pending whatever its counts: even a job that needs no pods is seen to begin."""
    return ACTIVE.get(action) or JobPlan(_stay)


def _pending(action: str) -> JobPlan:
    return ACTIVE.get(action) or JobPlan(_start_when_enough_pods)


def _running(action: str) -> JobPlan:
    return ACTIVE.get(action) or JobPlan(_end_or_go_on)


def _restarting(action: str) -> JobPlan:
    if action in (RESTART_JOB, *PARTIAL):
        return JobPlan(_wait_for_room, NONE, target_only=action in PARTIAL)
    return ACTIVE.get(action) or JobPlan(_wait_for_room)


def _aborting(action: str) -> JobPlan:
    return JobPlan(_restart, SOFT) if action == RESUME_JOB else JobPlan(_when_empty(ABORTED), SOFT)


def _aborted(action: str) -> JobPlan:
    return JobPlan(_restart, SOFT) if action == RESUME_JOB else JobPlan(_stay, SOFT)


def _stay(job: Object, status: Object) -> None:
    return


def _when_empty(phase: str) -> Enter:
    """Move the status to `phase` once no pod is terminating, pending or running."""

    def enter(job: Object, status: Object) -> None:
        if not status["terminating"] and not status["pending"] and not status["running"]:
            move(status, phase)

    return enter


def _start_when_enough_pods(job: Object, status: Object) -> None:
    if spec.min_available(job) <= status["running"] + status["succeeded"] + status["failed"]:
        move(status, RUNNING)


def _wait_for_room(job: Object, status: Object) -> None:
    if spec.total_replicas(job) - status["terminating"] >= spec.min_available(job):
        move(status, PENDING)


def _end_or_go_on(job: Object, status: Object) -> None:
    replicas, min_success = spec.total_replicas(job), spec.min_success(job)
    if replicas == 0:
        return
    if min_success is not None and status["succeeded"] >= min_success:
        move(status, COMPLETED)
    elif status["succeeded"] + status["failed"] == replicas:
        move(status, COMPLETED if _successful(job, status) else FAILED)
    elif status["pending"] > replicas - spec.min_available(job):
        move(status, PENDING)


def _successful(job: Object, status: Object) -> bool:
    """Whether a job whose pods have all ended has succeeded."""
    if spec.min_available(job) >= spec.total_min_available(job) and any(_fell_short(job, task, status) for task in spec.tasks(job)):
        return False
    return spec.min_success(job) is None and bool(status["succeeded"] >= spec.min_available(job))


def _fell_short(job: Object, task: Object, status: Object) -> bool:
    counts = status["taskStatusCount"].get(spec.task_name(job, task))
    wanted = task.get("minAvailable")
    return wanted is not None and counts is not None and bool(counts["phase"].get("Succeeded", 0) < wanted)


PHASES: dict[str, Callable[[str], JobPlan]] = {
    "": _new,
    PENDING: _pending,
    RUNNING: _running,
    RESTARTING: _restarting,
    ABORTING: _aborting,
    ABORTED: _aborted,
    COMPLETING: lambda action: JobPlan(_when_empty(COMPLETED), SOFT),
    TERMINATING: lambda action: JobPlan(_when_empty(TERMINATED), SOFT),
    **dict.fromkeys(FINISHED, lambda action: JobPlan(_stay, SOFT)),
}
