"""The draft of a job's status: the counts of pods by phase, the change to another phase, and the patch that results.

Times are written only together with the change that they date, so reconciling an unchanged job again writes nothing.
"""

from collections.abc import Iterable

from pumice.api import Object, annotations as key, rfc3339, status_of
from pumice.api.json_objects import annotations_of, copied, created_at, terminating
from pumice.controllers.volcano.job import spec
from pumice.controllers.volcano.job.state import COUNTED
from pumice.controllers.writes import Emit, Write, status_change


def new_status(job: Object) -> Object:
    """The draft of the job's status, with the fields that plans rely on."""
    status: Object = copied(status_of(job))
    status["minAvailable"] = spec.min_available(job)
    status["state"] = {"phase": "Pending", **(status.get("state") or {})}
    return status


def count_pods(status: Object, pods: Iterable[Object], killed: frozenset[str] = frozenset()) -> None:
    """Put the counts of the pods into the draft. Pods named in `killed` count as terminating."""
    counts = dict.fromkeys(("pending", "running", "succeeded", "failed", "unknown", "terminating"), 0)
    by_task: dict[str, dict[str, dict[str, int]]] = {}
    for pod in pods:
        if terminating(pod) or pod["metadata"]["name"] in killed:
            counts["terminating"] += 1
            continue
        phase = status_of(pod).get("phase") or "Pending"
        counts[COUNTED.get(phase, "unknown")] += 1
        of_task = by_task.setdefault(annotations_of(pod).get(key.TASK_SPEC, ""), {"phase": {}})["phase"]
        of_task[phase] = of_task.get(phase, 0) + 1
    status.update(counts)
    status["taskStatusCount"] = by_task


def explain(status: Object, reason: str, message: str) -> None:
    """Put into the draft why the job does not go on; an empty text removes the reason or message."""
    for name, text in (("reason", reason), ("message", message)):
        if text:
            status["state"][name] = text
        else:
            status["state"].pop(name, None)


def status_writes(job: Object, status: Object, now: float) -> list[Write]:
    """The writes that store the draft as the job's status, and an Event if its message is new."""
    phase = status["state"]["phase"]
    if phase != spec.phase_of(job):
        stamp = rfc3339(now)
        status["state"]["lastTransitionTime"] = stamp
        status["runningDuration"] = _go_duration(max(0.0, now - created_at(job)))
        entries = [entry for entry in status.get("conditions") or () if entry.get("status") != phase]
        status["conditions"] = [*entries, {"status": phase, "lastTransitionTime": stamp}]
    writes = status_change(job, _without_zeros(job, status))
    reason, message = (status["state"].get(part) for part in ("reason", "message"))
    if message and message != (status_of(job).get("state") or {}).get("message"):
        writes.append(Emit(job, "Warning", str(reason), str(message)))
    return writes


def _without_zeros(job: Object, status: Object) -> Object:
    """The status without fields that are empty, such as counts of zero, unless the stored status has the field."""
    stored = status_of(job)
    return {name: value for name, value in status.items() if value or name in stored}


def _go_duration(seconds: float) -> str:
    whole = int(seconds)
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{rest}s"
