"""JobFlows: each step is a job made from a JobTemplate, once the dependencies of the step are met.

A flow that succeeded is over: with `jobRetainPolicy: delete` its jobs are deleted.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pumice.api import Key, Object, annotations as key_names, key_of, kinds, name_of, namespace_of, spec_of, status_of, uid_of
from pumice.api.annotations import TASK_SPEC
from pumice.api.json_objects import annotations_of, controlled_by, field, labels_of, terminating
from pumice.controllers.controller import NOTHING, Lister, ObjectChange, Result, its_controller, itself, result
from pumice.controllers.volcano.job import spec as job_spec
from pumice.controllers.volcano.job.state import COMPLETED
from pumice.controllers.volcano.jobflow_patch import laid_over
from pumice.controllers.volcano.jobflow_status import SUCCEED, TERMINATING, flow_status, job_name
from pumice.controllers.writes import Create, Write, delete, status_change


class Probe(NamedTuple):
    """A probe: a URL, http://host:port/path or tcp://host:port, and an HTTP header to send."""

    url: str
    header: tuple[str, str] | None = None


Reachable = Callable[[Probe], bool]  #: whether the probe is answered
PodsOf = Callable[[Object], Iterable[Object]]  #: the pods of a job


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
