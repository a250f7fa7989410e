"""How a Job ends. First its status gets the condition SuccessCriteriaMet or FailureTarget, and its pods are ended; when the last of them
has ended, it gets the condition Complete or Failed.
"""

from typing import NamedTuple

from pumice.api import Object, instant, rfc3339, spec_of, status_of
from pumice.api.json_objects import condition, is_true
from pumice.controllers.kubernetes.job.backoff_limit import exceeded
from pumice.controllers.kubernetes.job.pod_tally import SUCCESS_CRITERIA_MET, PodTally, by_index, indexed
from pumice.controllers.kubernetes.job.success_policy import success_rule
from pumice.controllers.kubernetes.owned_pods import ENDED, phase
from pumice.controllers.kubernetes.pod_writes import ended
from pumice.controllers.writes import Emit, Write

COMPLETE, FAILED = "Complete", "Failed"
_FIRST = {COMPLETE: SUCCESS_CRITERIA_MET, FAILED: "FailureTarget"}


class End(NamedTuple):
    type: str  #: COMPLETE or FAILED
    reason: str
    message: str


def has_ended(job: Object) -> bool:
    return any(is_true(job, type_) for type_ in _FIRST)


def verdict(job: Object, tally: PodTally, now: float) -> End | None:
    """How the job ends; None if it goes on. An end that its conditions have stated once stays."""
    for type_, first in _FIRST.items():
        if is_true(job, first):
            found = condition(job, first) or {}
            return End(type_, found.get("reason", ""), found.get("message", ""))
    return _failure(job, tally, now) or _success(job, tally) or _without_hope(job, tally)


def _failure(job: Object, tally: PodTally, now: float) -> End | None:
    spec = spec_of(job)
    if tally.verdict:
        return End(FAILED, "PodFailurePolicy", tally.verdict)
    if exceeded(job, tally.failures.total, tally.active):
        return End(FAILED, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    at = deadline(job, status_of(job))
    if at is not None and now >= at and not spec.get("suspend"):
        return End(FAILED, "DeadlineExceeded", "Job was active longer than specified deadline")
    most = spec.get("maxFailedIndexes")
    if by_index(job) and most is not None and len(tally.lost) > int(most):
        return End(FAILED, "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes")
    return None


def _success(job: Object, tally: PodTally) -> End | None:
    rule = success_rule(job, tally.done) if indexed(job) else None
    if rule is not None:
        return End(COMPLETE, "SuccessPolicy", f"Matched rules at index {rule}")
    completions = spec_of(job).get("completions")
    succeeded = tally.won.total
    enough = succeeded >= int(completions) if completions is not None else succeeded > 0 and not tally.active
    return End(COMPLETE, "CompletionsReached", "Reached expected number of succeeded pods") if enough else None


def _without_hope(job: Object, tally: PodTally) -> End | None:
    over = tally.lost and len(tally.lost) + len(tally.done) >= int(spec_of(job).get("completions") or 0)
    return End(FAILED, "FailedIndexes", "Job has failed indexes") if over else None


def deadline(job: Object, status: Object) -> float | None:
    limit, start = spec_of(job).get("activeDeadlineSeconds"), status.get("startTime")
    return instant(start) + float(limit) if limit is not None and start else None


def finish(job: Object, tally: PodTally, end: End, status: Object, now: float) -> list[Write]:
    """Put the end into `status`, and return the writes that end the pods."""
    before = _FIRST[end.type]
    if not is_true(job, before):
        status["conditions"] = [*(status.get("conditions") or ()), entry(before, "True", end.reason, end.message, now)]
    writes = ended(job, tally.active)
    if not tally.is_settled or any(phase(pod) not in ENDED for pod in (*tally.active, *tally.leaving)):
        return writes
    status["conditions"] = [*status["conditions"], entry(end.type, "True", end.reason, end.message, now)]
    if end.type == COMPLETE:
        status["completionTime"] = rfc3339(now)
        return [*writes, Emit(job, "Normal", "Completed", "Job completed")]
    return [*writes, Emit(job, "Warning", end.reason, end.message)]


def entry(type_: str, status: str, reason: str, message: str, now: float) -> Object:
    stamp = rfc3339(now)
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastProbeTime": stamp, "lastTransitionTime": stamp}
