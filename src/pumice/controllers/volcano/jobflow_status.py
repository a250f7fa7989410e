"""The status of a JobFlow: `jobStatusList` has the phases that each job went through, `conditions` the present state of each job.

A job that is gone stays in them as it was last seen.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pumice.api import Object, instant, name_of, spec_of, status_of
from pumice.api.json_objects import copied, created_at, field
from pumice.controllers.volcano.job import spec as job_spec, state

OVER = (*state.FINISHED, state.ABORTED)


def job_status_list(flow: Object, jobs: Iterable[Object]) -> list[Object]:
    """The `jobStatusList` of a flow, in the order in which the jobs were first seen."""
    kept = {each["name"]: each for each in status_of(flow).get("jobStatusList") or ()}
    return list((kept | {name_of(job): _record(job, kept.get(name_of(job), {})) for job in jobs}).values())


def conditions(flow: Object, jobs: Iterable[Object]) -> dict[str, Object]:
    return {**(status_of(flow).get("conditions") or {}), **{name_of(job): _condition(job) for job in jobs}}


def _condition(job: Object) -> Object:
    stated = {name: status_of(job).get(name) for name in ("runningDuration", "taskStatusCount")}
    head = {"phase": job_spec.phase_of(job), "createTime": job["metadata"].get("creationTimestamp")}
    return {name: copied(value) for name, value in (head | stated).items() if value}


def _record(job: Object, before: Object) -> Object:
    moved = field(job, "status.state.lastTransitionTime")
    record = {
        "name": name_of(job),
        "state": job_spec.phase_of(job) or state.PENDING,
        "startTimestamp": job["metadata"].get("creationTimestamp"),
        "restartCount": job_spec.retry_count(job),
    }
    if job_spec.phase_of(job) in OVER and moved and instant(moved) >= created_at(job):
        record["endTimestamp"] = moved
    same = before.get("startTimestamp") == record["startTimestamp"]  # if not, it was another job of this name
    histories = _histories(job_spec.phase_of(job), moved, before.get("runningHistories") or [] if same else [])
    return record | ({"runningHistories": histories} if histories else {})


def _histories(phase: str, since: str | None, before: list[Object]) -> list[Object]:
    """The phases so far, each with its start time and, except for the last phase, its end time."""
    if not phase or not since:
        return before
    entry = {"state": phase, "startTimestamp": since}
    if before and before[-1] == entry:
        return before
    ended = [{**before[-1], "endTimestamp": since}] if before else []
    return [*before[:-1], *ended, entry]


LISTS = {
    "pendingJobs": (state.PENDING,),
    "runningJobs": (state.RUNNING, state.RESTARTING, state.ABORTING, state.COMPLETING, state.TERMINATING),
    "failedJobs": (state.FAILED, state.ABORTED),
    "terminatedJobs": (state.TERMINATED,),
    "completedJobs": (state.COMPLETED,),
}
PENDING, RUNNING, SUCCEED, FAILED, TERMINATING = "Pending", "Running", "Succeed", "Failed", "Terminating"


def job_name(flow: Object, step: str) -> str:
    return f"{name_of(flow)}-{step}"


def flow_status(flow: Object, jobs: Mapping[str, Object], completed: set[str]) -> Object:
    """The new status of a flow that is not over."""
    names = list(dict.fromkeys(job_name(flow, step["name"]) for step in spec_of(flow).get("flows") or ()))
    phases = {name: job_spec.phase_of(job) for name, job in jobs.items()} | dict.fromkeys(completed, state.COMPLETED)
    status: dict[str, Any] = {key: [name for name in names if phases.get(name) in wanted] or None for key, wanted in LISTS.items()}
    status["unKnowJobs"] = [name for name in names if name in jobs and not phases[name]] or None
    there = [jobs[name] for name in names if name in jobs]
    status["jobStatusList"] = job_status_list(flow, there) or None
    status["conditions"] = conditions(flow, there) or None
    if status["failedJobs"] or status["terminatedJobs"]:
        phase = FAILED
    elif names and all(name in completed for name in names):
        phase = SUCCEED
    else:
        phase = RUNNING if status["runningJobs"] or completed else PENDING
    return {**status_of(flow), **status, "state": {"phase": phase}}
