"""Which action an event means for a job: the lifecycle policies of its task first, then its own, each in their order.

Events that are older than the job's last restart, or belong to another job of the same name, mean nothing but a look at the
job. A policy with a timeout acts only if the cause still stands when the time is up.
"""

from __future__ import annotations

from typing import NamedTuple

from pumice.api.times import duration
from pumice.controllers import kinds
from pumice.controllers.objects import Object, created_at, spec_of, status_of, terminating, uid_of
from pumice.controllers.volcano.job import spec
from pumice.controllers.volcano.job.event import ANY, OUT_OF_SYNC, POD_EVICTED, POD_FAILED, POD_PENDING, UNKNOWN, JobEvent, events_of
from pumice.controllers.world import World

SYNC = "SyncJob"


class Choice(NamedTuple):
    action: str
    delay_s: float | None = None  #: None: at once


def choose(job: Object, request: JobEvent) -> Choice:
    """The action for a request."""
    stale = request.version < spec.version_of(job) or (request.uid and request.uid != uid_of(job))
    if request.action:
        return Choice(SYNC if stale and request.uid else request.action)
    if request.event == OUT_OF_SYNC or stale:
        return Choice(SYNC)
    task = spec.task_named(job, request.task) if request.task else None
    for policy in (*((task or {}).get("policies") or ()), *(spec_of(job).get("policies") or ())):
        if _matches(policy, request):
            timeout = policy.get("timeout")
            return Choice(policy.get("action") or SYNC, None if timeout is None else duration(timeout))
    return Choice(SYNC)


def _matches(policy: Object, request: JobEvent) -> bool:
    events = events_of(policy)
    if request.event and (request.event in events or ANY in events):
        return request.event != POD_PENDING or policy.get("timeout") is not None
    return policy.get("exitCode") is not None and policy["exitCode"] == request.exit_code


def delayed(request: JobEvent, choice: Choice, world: World, now: float) -> JobEvent:
    """The request again, decided, at the time its policy sets; waiting counts from the pod's creation."""
    pod = world.get(kinds.POD, request.namespace, request.pod)
    start = created_at(pod) if pod is not None and request.event == POD_PENDING and uid_of(pod) == request.pod_uid else now
    return request._replace(action=choice.action, due=start + (choice.delay_s or 0.0))


def still_stands(job: Object, request: JobEvent, world: World) -> bool:
    """Whether the cause of a delayed action is still there."""
    if request.version < spec.version_of(job) or request.uid != uid_of(job):
        return False
    pod = world.get(kinds.POD, request.namespace, request.pod) if request.pod else None
    phase = status_of(pod).get("phase") or "Pending" if pod is not None else ""
    if pod is not None and terminating(pod):
        return False  # an action was faster
    if request.event == POD_PENDING:
        return pod is not None and uid_of(pod) == request.pod_uid and phase == "Pending"
    if request.event in (POD_FAILED, POD_EVICTED):
        return phase not in ("Running", "Succeeded")
    if request.event == UNKNOWN:
        return any(status_of(group).get("phase") == UNKNOWN for group in world.dependents(uid_of(job), kinds.POD_GROUP))
    return True
