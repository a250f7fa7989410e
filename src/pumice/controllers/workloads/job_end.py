"""How a Job ends. First it says what it has come to (SuccessCriteriaMet, FailureTarget) and ends its pods; when the last of them is gone,
that it is Complete or Failed."""

from __future__ import annotations

from typing import NamedTuple

from pumice.api.times import instant, rfc3339
from pumice.controllers.objects import Object, condition, spec_of, status_of
from pumice.controllers.workloads.job_rules import success_rule
from pumice.controllers.workloads.job_tally import Tally, by_index, indexed
from pumice.controllers.workloads.pods import ENDED, phase
from pumice.controllers.workloads.told import ended
from pumice.controllers.writes import Emit, Write

COMPLETE, FAILED = "Complete", "Failed"
_FIRST = {COMPLETE: "SuccessCriteriaMet", FAILED: "FailureTarget"}
BACKOFF_LIMIT = 6


class End(NamedTuple):
    type: str  #: COMPLETE or FAILED
    reason: str
    message: str


def has_ended(job: Object) -> bool:
    return any(_says(job, type_) for type_ in _FIRST)


def _says(job: Object, type_: str) -> bool:
    return (condition(job, type_) or {}).get("status") == "True"


def verdict(job: Object, tally: Tally, now: float) -> End | None:
    """What the job has come to. What it has said once, stays."""
    for type_, first in _FIRST.items():
        if _says(job, first):
            said = condition(job, first) or {}
            return End(type_, said.get("reason", ""), said.get("message", ""))
    return _failure(job, tally, now) or _success(job, tally) or _without_hope(job, tally)


def _failure(job: Object, tally: Tally, now: float) -> End | None:
    spec = spec_of(job)
    if tally.verdict:
        return End(FAILED, "PodFailurePolicy", tally.verdict)
    limit = int(spec.get("backoffLimit", BACKOFF_LIMIT))
    if tally.failed > limit or _restarted(job, tally) >= max(1, limit):
        return End(FAILED, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    at = deadline(job, status_of(job))
    if at is not None and now >= at and not spec.get("suspend"):
        return End(FAILED, "DeadlineExceeded", "Job was active longer than specified deadline")
    most = spec.get("maxFailedIndexes")
    if by_index(job) and most is not None and len(tally.lost) > int(most):
        return End(FAILED, "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes")
    return None


def _restarted(job: Object, tally: Tally) -> int:
    """Where containers are restarted in their pods these are the failures."""
    if ((spec_of(job).get("template") or {}).get("spec") or {}).get("restartPolicy") != "OnFailure":
        return 0
    pods = (status_of(pod) for pod in tally.active)
    statuses = (each for pod in pods for part in ("initContainerStatuses", "containerStatuses") for each in pod.get(part) or ())
    return sum(int(each.get("restartCount") or 0) for each in statuses)


def _success(job: Object, tally: Tally) -> End | None:
    rule = success_rule(job, tally.done) if indexed(job) else None
    if rule is not None:
        return End(COMPLETE, "SuccessPolicy", f"Matched rules at index {rule}")
    completions = spec_of(job).get("completions")
    enough = tally.succeeded >= int(completions) if completions is not None else tally.succeeded > 0 and not tally.active
    return End(COMPLETE, "CompletionsReached", "Reached expected number of succeeded pods") if enough else None


def _without_hope(job: Object, tally: Tally) -> End | None:
    over = tally.lost and len(tally.lost) + len(tally.done) >= int(spec_of(job).get("completions") or 0)
    return End(FAILED, "FailedIndexes", "Job has failed indexes") if over else None


def deadline(job: Object, status: Object) -> float | None:
    limit, start = spec_of(job).get("activeDeadlineSeconds"), status.get("startTime")
    return instant(start) + float(limit) if limit is not None and start else None


def finish(job: Object, tally: Tally, end: End, status: Object, now: float) -> list[Write]:
    """Say it in `status`, and end the pods."""
    before = _FIRST[end.type]
    if not _says(job, before):
        status["conditions"] = [*(status.get("conditions") or ()), entry(before, "True", end.reason, end.message, now)]
    writes = ended(job, tally.active)
    if any(phase(pod) not in ENDED for pod in (*tally.active, *tally.leaving)):
        return writes
    status["conditions"] = [*status["conditions"], entry(end.type, "True", end.reason, end.message, now)]
    if end.type == COMPLETE:
        status["completionTime"] = rfc3339(now)
        return [*writes, Emit(job, "Normal", "Completed", "Job completed")]
    return [*writes, Emit(job, "Warning", end.reason, end.message)]


def entry(type_: str, status: str, reason: str, message: str, now: float) -> Object:
    stamp = rfc3339(now)
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastProbeTime": stamp, "lastTransitionTime": stamp}
