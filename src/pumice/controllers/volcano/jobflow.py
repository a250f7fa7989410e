"""JobFlows: each step is a job made from a JobTemplate, once the dependencies of the step are met.

A flow that succeeded is over: with `jobRetainPolicy: delete` its jobs are deleted. A JobTemplate's status lists the jobs made from it.

The jobs in a flow's status: `jobStatusList` has the phases that each job went through, `conditions` the present state of each job.
A job that is gone stays in them as it was last seen.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pumice.api import Key, Object, annotations as key_names, instant, key_of, kinds, name_of, namespace_of, spec_of, status_of, uid_of
from pumice.api.annotations import TASK_SPEC
from pumice.api.json_objects import annotations_of, controlled_by, copied, created_at, field, labels_of, terminating
from pumice.controllers.controller import NOTHING, Lister, ObjectChange, Result, its_controller, itself, result
from pumice.controllers.volcano.job import spec as job_spec, state
from pumice.controllers.volcano.job.state import COMPLETED
from pumice.controllers.volcano.step_patch import laid_over
from pumice.controllers.writes import Create, Write, delete, status_change

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


class Probe(NamedTuple):
    """A probe: a URL, http://host:port/path or tcp://host:port, and an HTTP header to send."""

    url: str
    header: tuple[str, str] | None = None


Reachable = Callable[[Probe], bool]  #: whether the probe is answered
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
    """Whether the dependencies of a step are met: its targets are completed or, if it has a probe, are as the probe requires."""
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
    """Whether all of these probes, and at least one, are answered. All are sent at once, because answers come later."""
    answers = [reachable(probe) for probe in probes]
    return bool(answers) and all(answers)


def _places(pods: Sequence[Object], wanted: Object) -> list[str]:
    """The IP address and port of each pod of a task; none unless all pods have addresses. IP addresses work without the plugin svc."""
    meant = [pod for pod in pods if annotations_of(pod).get(TASK_SPEC) == wanted.get("taskName")]
    addresses = [str(status_of(pod).get("podIP") or "") for pod in meant]
    port = wanted.get("port")
    return [f"[{address}]:{port}" if ":" in address else f"{address}:{port}" for address in addresses] if all(addresses) else []


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


PROBE_AGAIN_S = 5.0
LONGEST_LABEL = 63  #: if a namespace and a name together are longer, they are written as an annotation only


class JobFlows:
    """Runs flows. `reachable` answers their HTTP and TCP probes."""

    name = "jobflow"

    def __init__(self, reachable: Reachable) -> None:
        self.reachable = reachable
        self.watches = {kinds.JOB_FLOW: itself, kinds.JOB: its_controller(kinds.JOB_FLOW), kinds.JOB_TEMPLATE: _flows_using}

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, Key)
        flow = lister.get(kinds.JOB_FLOW, *key)
        if flow is None:
            return NOTHING
        if terminating(flow):
            return result(status_change(flow, {**status_of(flow), "state": {"phase": TERMINATING}}))
        jobs = {name_of(job): job for job in lister.dependents(uid_of(flow), kinds.JOB) if not terminating(job)}
        if field(flow, "status.state.phase") == SUCCEED:
            tidy = spec_of(flow).get("jobRetainPolicy") == "delete"
            return result(map(delete, jobs.values()) if tidy else [])
        completed = {name for name, job in jobs.items() if job_spec.phase_of(job) == COMPLETED}
        completed |= set(status_of(flow).get("completedJobs") or ())
        writes: dict[str, Write] = {}
        waits_for_probe = False
        for step in spec_of(flow).get("flows") or ():
            name = job_name(flow, step["name"])
            template = lister.get(kinds.JOB_TEMPLATE, key.namespace, step["name"])
            if name in jobs or name in completed or name in writes or template is None:
                continue
            if may_start(flow, step, jobs, completed, lambda job: lister.dependents(uid_of(job), kinds.POD), self.reachable):
                writes[name] = Create(_job(flow, step, template), flow)
            else:
                waits_for_probe = waits_for_probe or _asks_the_network(step)
        has_changes = bool(jobs or completed or writes or status_of(flow))  # else a user who changes a new flow at once gets a conflict
        status_writes = status_change(flow, flow_status(flow, jobs, completed)) if has_changes else []
        later = [(now + PROBE_AGAIN_S, key)] if waits_for_probe else []
        return result([*writes.values(), *status_writes], later)


def _asks_the_network(step: Object) -> bool:
    probe = (step.get("dependsOn") or {}).get("probe") or {}
    return bool(probe.get("httpGetList") or probe.get("tcpSocketList"))


def _job(flow: Object, step: Object, template: Object) -> Object:
    patch = step.get("patch") or {}
    changes = patch.get("spec") or patch.get("jobSpec") or {}  # the names in the present and the older definition
    spec = laid_over(spec_of(template), changes)
    made = kinds.new(kinds.JOB, namespace_of(flow), job_name(flow, step["name"]), spec=spec)
    origin = {
        key_names.CREATED_BY_FLOW: f"{namespace_of(flow)}.{name_of(flow)}",
        key_names.CREATED_BY_TEMPLATE: f"{namespace_of(template)}.{name_of(template)}",
    }
    made["metadata"]["labels"] = {**labels_of(template), **{name: text for name, text in origin.items() if len(text) <= LONGEST_LABEL}}
    made["metadata"]["annotations"] = {**annotations_of(template), **origin}
    made["metadata"]["ownerReferences"] = [controlled_by(flow)]
    return made


def _flows_using(change: ObjectChange, lister: Lister) -> Iterable[Key]:
    """The keys of the flows with a step that waits for this template."""
    if change.old is None:
        for flow in lister.all(kinds.JOB_FLOW, namespace_of(change.object)):
            if any(step.get("name") == name_of(change.object) for step in spec_of(flow).get("flows") or ()):
                yield key_of(flow)


class JobTemplates:
    """Lists in a template's status the jobs that were made from it."""

    name = "jobtemplate"

    def __init__(self) -> None:
        self.watches = {kinds.JOB_TEMPLATE: itself, kinds.JOB: _template_of}

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, Key)
        template = lister.get(kinds.JOB_TEMPLATE, *key)
        if template is None:
            return NOTHING
        origin = f"{key.namespace}.{key.name}"
        jobs = lister.all(kinds.JOB, key.namespace)
        names = [name_of(job) for job in jobs if annotations_of(job).get(key_names.CREATED_BY_TEMPLATE) == origin]
        return result(status_change(template, {**copied(status_of(template)), "jobDependsOnList": names or None}))


def _template_of(change: ObjectChange, lister: Lister) -> Iterable[Key]:
    origin = annotations_of(change.object).get(key_names.CREATED_BY_TEMPLATE, "")
    if origin and (change.old is None or change.new is None):
        yield Key(namespace_of(change.object), origin.partition(".")[2])
