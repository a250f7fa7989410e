"""A job's status in the making: counts of its pods by phase, the move to another phase, and the patch that results.

Times are written only together with a change that they date, so looking twice at an unchanged job writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from pumice.api import annotations as key
from pumice.api.json_objects import copied
from pumice.api.times import rfc3339
from pumice.controllers.controller import Emit, Write, status_change
from pumice.controllers.objects import Object, annotations_of, created_at, status_of, terminating
from pumice.controllers.volcano.job import spec

COUNTED = {"Pending": "pending", "Running": "running", "Succeeded": "succeeded", "Failed": "failed"}  #: pod phase to status field


def begin(job: Object) -> Object:
    """The status to change, with the parts that `state` relies on."""
    status: Object = copied(status_of(job))
    status["minAvailable"] = spec.min_available(job)
    status["state"] = {"phase": "Pending", **(status.get("state") or {})}
    return status


def count(status: Object, pods: Iterable[Object], killed: frozenset[str] = frozenset()) -> None:
    """Fill in the counts. Pods named in `killed` are on their way out already."""
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
    """Say why the job does not go on; empty texts take that back."""
    for name, text in (("reason", reason), ("message", message)):
        if text:
            status["state"][name] = text
        else:
            status["state"].pop(name, None)


def finish(job: Object, status: Object, now: float) -> list[Write]:
    """The writes that make `status` the job's."""
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
    """A count of zero is absent on the wire, unless it stands there already."""
    stored = status_of(job)
    return {name: value for name, value in status.items() if value or name in stored}


def _go_duration(seconds: float) -> str:
    whole = int(seconds)
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{rest}s"
