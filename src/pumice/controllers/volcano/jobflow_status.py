"""How far the jobs of a flow have got: which may start, and what the flow as a whole has come to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pumice.api.annotations import TASK_SPEC
from pumice.api.json_objects import copied
from pumice.api.times import instant
from pumice.controllers.objects import Object, annotations_of, created_at, field, name_of, spec_of, status_of
from pumice.controllers.volcano.job import spec as job_spec
from pumice.controllers.volcano.job import state

# What a flow's status tells of each of its jobs: `jobStatusList`, with the phases each went through, and `conditions`, as each stands.
#
# A job that is gone is told of as it was last seen.

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


class Probe(NamedTuple):
    """What is asked: a URL, http://host:port/path or tcp://host:port, and a header to send along."""

    url: str
    header: tuple[str, str] | None = None


Reachable = Callable[[Probe], bool]  #: whether something answers
PodsOf = Callable[[Object], Iterable[Object]]  #: the pods of a job

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


def may_start(flow: Object, step: Object, jobs: Mapping[str, Object], completed: set[str], pods_of: PodsOf, reachable: Reachable) -> bool:
    """Whether what a step depends on is there: its targets complete, or as far as its probe asks."""
    depends = step.get("dependsOn") or {}
    probe = depends.get("probe") or {}
    for target in depends.get("targets") or ():
        name = job_name(flow, target)
        if not any(probe.values()):
            if name not in completed:
                return False
        elif name not in jobs or not all(_answers(jobs[name], probe, list(pods_of(jobs[name])), reachable)):
            return False
    return True


def _answers(job: Object, probe: Object, pods: Sequence[Object], reachable: Reachable) -> Iterator[bool]:
    for wanted in probe.get("taskStatusList") or ():
        counts = (status_of(job).get("taskStatusCount") or {}).get(wanted.get("taskName")) or {}
        yield bool((counts.get("phase") or {}).get(wanted.get("phase")))
    for wanted in probe.get("httpGetList") or ():
        path, header = str(wanted.get("path") or "/").lstrip("/"), wanted.get("httpHeader") or {}
        sent = (header["name"], str(header.get("value") or "")) if header.get("name") else None
        yield _all_reached([Probe(f"http://{place}/{path}", sent) for place in _places(pods, wanted)], reachable)
    for wanted in probe.get("tcpSocketList") or ():
        yield _all_reached([Probe(f"tcp://{place}") for place in _places(pods, wanted)], reachable)


def _all_reached(probes: Sequence[Probe], reachable: Reachable) -> bool:
    """Whether all answer, of some: all are asked at once, for answers come later."""
    answers = [reachable(probe) for probe in probes]
    return bool(answers) and all(answers)


def _places(pods: Sequence[Object], wanted: Object) -> list[str]:
    """Host and port of each pod of a task; none unless all have addresses. These need no names, hence no plugin."""
    meant = [pod for pod in pods if annotations_of(pod).get(TASK_SPEC) == wanted.get("taskName")]
    addresses = [str(status_of(pod).get("podIP") or "") for pod in meant]
    port = wanted.get("port")
    return [f"[{address}]:{port}" if ":" in address else f"{address}:{port}" for address in addresses] if all(addresses) else []


def flow_status(flow: Object, jobs: Mapping[str, Object], completed: set[str]) -> Object:
    """The status of a flow that is not over."""
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
