"""JobFlows: each step is a job made from a JobTemplate, once what the step depends on is done.

A flow that succeeded is over: with `jobRetainPolicy: delete` its jobs go. A JobTemplate lists the jobs made from it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from pumice.api import annotations as key_names
from pumice.api.json_objects import copied
from pumice.controllers import kinds
from pumice.controllers.controller import NOTHING, Change, Result, its_controller, itself, result
from pumice.controllers.objects import (
    Key,
    Object,
    annotations_of,
    controlled_by,
    field,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    spec_of,
    status_of,
    terminating,
    uid_of,
)
from pumice.controllers.volcano.job import spec as job_spec
from pumice.controllers.volcano.job.state import COMPLETED
from pumice.controllers.volcano.jobflow_status import SUCCEED, TERMINATING, Reachable, flow_status, job_name, may_start
from pumice.controllers.world import World
from pumice.controllers.writes import Create, Write, delete, status_change

# What a step of a flow writes over its JobTemplate: only what differs, down to a single variable of one container.
#
# Tasks and containers are found by name (one without a name is the one at its place) and merged; of other lists that have a key, entries
# take the place of those with the same key. All other lists, and what makes sense only as a whole, are replaced.

MERGED = ("tasks", "containers", "initContainers")
KEYS = {
    **dict.fromkeys(MERGED, ("name",)),
    "env": ("name",),
    "hostAliases": ("ip",),
    "ports": ("containerPort",),
    "tolerations": ("key",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name", "mountPath"),  # of pods, and of jobs
}
WHOLE = ("affinity", "securityContext", "livenessProbe", "readinessProbe", "startupProbe", "networkTopology")


def laid_over(stored: Any, patch: Any, field: str = "") -> Any:
    """`patch` over `stored`, which is called `field`; both are left as they are."""
    if isinstance(patch, dict) and isinstance(stored, dict) and field not in WHOLE:
        return {**copied(stored), **{name: laid_over(stored.get(name), value, name) for name, value in patch.items()}}
    if isinstance(patch, list) and isinstance(stored, list) and field in KEYS:
        return _entries(stored, patch, field)
    return copied(patch)


def _entries(stored: list[Any], patch: list[Any], field: str) -> list[Any]:
    result: list[Any] = copied(stored)
    for index, entry in enumerate(patch):
        place = next((at for at, other in enumerate(stored) if _same(entry, other, field)), None)
        if place is None and field in MERGED and not entry.get("name") and index < len(stored):
            place = index
        if place is None:
            result.append(copied(entry))
        else:
            result[place] = laid_over(result[place], entry) if field in MERGED else copied(entry)
    return result


def _same(entry: Any, other: Any, field: str) -> bool:
    return any(entry.get(key) is not None and entry.get(key) == other.get(key) for key in KEYS[field])


PROBE_AGAIN_S = 5.0
LONGEST_LABEL = 63  #: where a namespace and a name together have more, an annotation must do


class JobFlows:
    """Runs flows. `reachable` answers their HTTP and TCP probes."""

    name = "jobflow"

    def __init__(self, reachable: Reachable) -> None:
        self.reachable = reachable
        self.watches = {
            kinds.JOB_FLOW: itself,
            kinds.JOB: its_controller(kinds.JOB_FLOW),
            kinds.JOB_TEMPLATE: _flows_using,
        }

    def reconcile(self, key: Hashable, world: World, now: float) -> Result:
        assert isinstance(key, Key)
        flow = world.get(kinds.JOB_FLOW, *key)
        if flow is None:
            return NOTHING
        if terminating(flow):
            return result(status_change(flow, {**status_of(flow), "state": {"phase": TERMINATING}}))
        jobs = {name_of(job): job for job in world.dependents(uid_of(flow), kinds.JOB) if not terminating(job)}
        if field(flow, "status.state.phase") == SUCCEED:
            tidy = spec_of(flow).get("jobRetainPolicy") == "delete"
            return result(map(delete, jobs.values()) if tidy else [])
        completed = {name for name, job in jobs.items() if job_spec.phase_of(job) == COMPLETED}
        completed |= set(status_of(flow).get("completedJobs") or ())
        writes: dict[str, Write] = {}
        waits_for_probe = False
        for step in spec_of(flow).get("flows") or ():
            name = job_name(flow, step["name"])
            template = world.get(kinds.JOB_TEMPLATE, key.namespace, step["name"])
            if name in jobs or name in completed or name in writes or template is None:
                continue
            if may_start(flow, step, jobs, completed, lambda job: world.dependents(uid_of(job), kinds.POD), self.reachable):
                writes[name] = Create(_job(flow, step, template), flow)
            else:
                waits_for_probe = waits_for_probe or _asks_the_network(step)
        has_news = bool(jobs or completed or writes or status_of(flow))  # else who changes the flow that he just made would meet a conflict
        told = status_change(flow, flow_status(flow, jobs, completed)) if has_news else []
        later = [(now + PROBE_AGAIN_S, key)] if waits_for_probe else []
        return result([*writes.values(), *told], later)


def _asks_the_network(step: Object) -> bool:
    probe = (step.get("dependsOn") or {}).get("probe") or {}
    return bool(probe.get("httpGetList") or probe.get("tcpSocketList"))


def _job(flow: Object, step: Object, template: Object) -> Object:
    patch = step.get("patch") or {}
    changes = patch.get("spec") or patch.get("jobSpec") or {}  # as definitions of today and of before call it
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


def _flows_using(change: Change, world: World) -> Iterable[Key]:
    """Flows with a step that waits for this template."""
    if change.old is None:
        for flow in world.all(kinds.JOB_FLOW, namespace_of(change.object)):
            if any(step.get("name") == name_of(change.object) for step in spec_of(flow).get("flows") or ()):
                yield key_of(flow)


class JobTemplates:
    """Lists in a template's status the jobs that were made from it."""

    name = "jobtemplate"

    def __init__(self) -> None:
        self.watches = {kinds.JOB_TEMPLATE: itself, kinds.JOB: _template_of}

    def reconcile(self, key: Hashable, world: World, now: float) -> Result:
        assert isinstance(key, Key)
        template = world.get(kinds.JOB_TEMPLATE, *key)
        if template is None:
            return NOTHING
        origin = f"{key.namespace}.{key.name}"
        jobs = world.all(kinds.JOB, key.namespace)
        names = [name_of(job) for job in jobs if annotations_of(job).get(key_names.CREATED_BY_TEMPLATE) == origin]
        return result(status_change(template, {**copied(status_of(template)), "jobDependsOnList": names or None}))


def _template_of(change: Change, world: World) -> Iterable[Key]:
    origin = annotations_of(change.object).get(key_names.CREATED_BY_TEMPLATE, "")
    if origin and (change.old is None or change.new is None):
        yield Key(namespace_of(change.object), origin.partition(".")[2])
