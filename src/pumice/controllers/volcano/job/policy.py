"""The action that an event means for a job: the lifecycle policies of the pod's task come first, then those of the job, in their order.
What the action does is in `state.py`.

An event that is older than the job's last restart, or belongs to another job of the same name, means only to look at the
job again. So does an older order to restart it, as an order is tried until its writes succeed; any other order is followed. A policy with
a timeout acts only if the cause still exists when the time is up.
"""

from msgspec import Struct

from pumice.api import Object, duration, kinds, spec_of, status_of, uid_of
from pumice.api.json_objects import created_at, terminating
from pumice.controllers.controller import Lister
from pumice.controllers.volcano.job import spec
from pumice.controllers.volcano.job.event import OUT_OF_SYNC, POD_EVICTED, POD_FAILED, POD_PENDING, UNKNOWN, JobEvent, answers
from pumice.controllers.volcano.job.state import RESTART_JOB

SYNC = "SyncJob"


class PolicyChoice(Struct, frozen=True):
    action: str
    delay_s: float | None = None  #: None: at once


def choose(job: Object, request: JobEvent) -> PolicyChoice:
    """The action for a request, and its delay."""
    is_anothers = bool(request.uid) and request.uid != uid_of(job)
    is_late = request.version < spec.version_of(job)
    if request.action:
        return PolicyChoice(SYNC if is_anothers or (is_late and request.action == RESTART_JOB) else request.action)
    if request.event == OUT_OF_SYNC or is_anothers or is_late:
        return PolicyChoice(SYNC)
    task = spec.task_named(job, request.task) if request.task else None
    for policy in (*((task or {}).get("policies") or ()), *(spec_of(job).get("policies") or ())):
        if _matches(policy, request):
            timeout = policy.get("timeout")
            return PolicyChoice(policy.get("action") or SYNC, None if timeout is None else duration(timeout))
    return PolicyChoice(SYNC)


def _matches(policy: Object, request: JobEvent) -> bool:
    return answers(policy, request.event) or (policy.get("exitCode") is not None and policy["exitCode"] == request.exit_code)


def delayed(request: JobEvent, choice: PolicyChoice, lister: Lister, now: float) -> JobEvent:
    """The request with its action decided, due after the delay of its policy. For PodPending, the delay counts from the pod's creation."""
    pod = lister.get(kinds.POD, request.namespace, request.pod)
    start = created_at(pod) if pod is not None and request.event == POD_PENDING and uid_of(pod) == request.pod_uid else now
    return request._replace(action=choice.action, due=start + (choice.delay_s or 0.0))


def still_stands(job: Object, request: JobEvent, lister: Lister) -> bool:
    """Whether the cause of a delayed action still exists."""
    if request.version < spec.version_of(job) or request.uid != uid_of(job):
        return False
    pod = lister.get(kinds.POD, request.namespace, request.pod) if request.pod else None
    phase = status_of(pod).get("phase") or "Pending" if pod is not None else ""
    if pod is not None and terminating(pod):
        return False  # another action was faster
    if request.event == POD_PENDING:
        return pod is not None and uid_of(pod) == request.pod_uid and phase == "Pending"
    if request.event in (POD_FAILED, POD_EVICTED):
        return phase not in ("Running", "Succeeded")
    if request.event == UNKNOWN:
        return any(status_of(group).get("phase") == UNKNOWN for group in lister.dependents(uid_of(job), kinds.POD_GROUP))
    return True
