"""What a flow's status tells of each of its jobs: `jobStatusList`, with the phases each went through, and `conditions`, as each stands.

A job that is gone is told of as it was last seen.
"""

from __future__ import annotations

from collections.abc import Iterable

from pumice.api.json_objects import copied
from pumice.api.times import instant
from pumice.controllers.job import spec as job_spec
from pumice.controllers.job import state
from pumice.controllers.objects import Object, created_at, field, name_of, status_of

OVER = (*state.FINISHED, state.ABORTED)


def job_status_list(flow: Object, jobs: Iterable[Object]) -> list[Object]:
    """In the order in which the jobs were first seen."""
    kept = {each["name"]: each for each in status_of(flow).get("jobStatusList") or ()}
    return list((kept | {name_of(job): _record(job, kept.get(name_of(job), {})) for job in jobs}).values())


def conditions(flow: Object, jobs: Iterable[Object]) -> dict[str, Object]:
    """By the name of the job."""
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
    same = before.get("startTimestamp") == record["startTimestamp"]  # or else another job had the name
    histories = _histories(job_spec.phase_of(job), moved, before.get("runningHistories") or [] if same else [])
    return record | ({"runningHistories": histories} if histories else {})


def _histories(phase: str, since: str | None, before: list[Object]) -> list[Object]:
    """The phases so far, each with its begin and, but for the last, its end."""
    if not phase or not since:
        return before
    entry = {"state": phase, "startTimestamp": since}
    if before and before[-1] == entry:
        return before
    ended = [{**before[-1], "endTimestamp": since}] if before else []
    return [*before[:-1], *ended, entry]
