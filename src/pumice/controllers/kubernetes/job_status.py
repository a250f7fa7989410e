"""How a Job counts its pods, and how it ends. First its status gets the condition SuccessCriteriaMet or FailureTarget, and its pods are
ended; when the last of them has ended, it gets the condition Complete or Failed.

Each pod is counted once, even if it is deleted early. A pod keeps a finalizer until its Job's status lists it among
`uncountedTerminatedPods`. Once the finalizer is gone, the pod is in the status's count and no longer in the list. The success of an
indexed pod needs no list: its index is in the status.

The tally of a Job's pods, including the pods that are gone, as its status counts them.
"""

from collections.abc import Iterable
from typing import NamedTuple

from pumice.api import Object, instant, name_of, rfc3339, spec_of, status_of, uid_of
from pumice.api.annotations import COMPLETION_INDEX, IGNORED_FAILURES, INDEX_FAILURES, JOB_TRACKING
from pumice.api.integers import index_set, integer
from pumice.api.json_objects import annotations_of, condition, finalizers_of, is_true, terminating
from pumice.controllers.kubernetes.job_rules import FAIL_INDEX, FAIL_JOB, IGNORE, judged, success_rule
from pumice.controllers.kubernetes.owned_pods import ENDED, active, phase
from pumice.controllers.kubernetes.pod_writes import ended
from pumice.controllers.writes import Emit, Write, patch


class Count(NamedTuple):
    """The number of pods that have ended in one way: succeeded or failed."""

    settled: int  #: the number of those whose finalizers are gone
    listed: list[str]  #: the uids of the others

    @property
    def total(self) -> int:
        return self.settled + len(self.listed)


def count(job: Object, pods: Iterable[Object], way: str, ended: Iterable[Object]) -> Count:
    """The count of the pods that the status has already, and of the pods in `ended` that it has not. `way`: succeeded or failed."""
    tracked = set(map(uid_of, filter(is_tracked, pods)))
    known = uncounted(job)
    listed = known.get(way) or []
    left = [uid for uid in listed if uid in tracked]
    known_uids = {uid for uids in known.values() for uid in uids}
    counted = [uid_of(pod) for pod in ended if uid_of(pod) in tracked and uid_of(pod) not in known_uids]
    return Count(int(status_of(job).get(way) or 0) + len(listed) - len(left), [*left, *counted])


def uncounted(job: Object) -> dict[str, list[str]]:
    return status_of(job).get("uncountedTerminatedPods") or {}


def replaces_failed_only(job: Object) -> bool:
    """Whether a pod that is being deleted is over only when it has ended. The API server sets this for jobs with a podFailurePolicy."""
    return bool(spec_of(job).get("podReplacementPolicy") == "Failed")


def is_over(job: Object, pod: Object) -> bool:
    """Whether a pod is over: it can be counted, and replaced."""
    return phase(pod) in ENDED or (terminating(pod) and not replaces_failed_only(job))


def is_tracked(pod: Object) -> bool:
    return JOB_TRACKING in finalizers_of(pod)


def let_go(pods: Iterable[Object]) -> list[Write]:
    """The writes that remove the finalizer from pods."""
    others = ((pod, [each for each in finalizers_of(pod) if each != JOB_TRACKING]) for pod in pods if is_tracked(pod))
    return [patch(pod, {"metadata": {"finalizers": left or None}}) for pod, left in others]


BACKOFF_S, LONGEST_BACKOFF_S = 10.0, 360.0


class Attempts(NamedTuple):
    """The failures of one index."""

    counted: int = 0
    ignored: int = 0
    next_at: float = 0.0  #: when the index may be tried again


FIRST = Attempts()


class PodTally(NamedTuple):
    active: list[Object]
    surplus: list[Object]  #: active pods with an index that is complete, failed, beyond the last one, or that of another pod
    leaving: list[Object]
    over: list[Object]  #: pods that are over, see `is_over`
    won: Count  #: the pods that have succeeded; for an indexed job, its complete indexes
    failures: Count
    done: frozenset[int]  #: indexes that are complete
    lost: frozenset[int]  #: indexes that have failed for good
    verdict: str  #: why the failure of a pod fails the job; empty if it does not
    attempts: dict[int, Attempts]  #: by index
    next_at: float  #: when the next pod may be made, after all failures together

    @property
    def is_settled(self) -> bool:
        """Whether every pod that is over is in the numbers of the status."""
        return not self.won.listed and not self.failures.listed


def indexed(job: Object) -> bool:
    return bool(spec_of(job).get("completionMode") == "Indexed")


def by_index(job: Object) -> bool:
    return indexed(job) and spec_of(job).get("backoffLimitPerIndex") is not None


def index_of(pod: Object) -> int:
    return integer(annotations_of(pod).get(COMPLETION_INDEX, ""), -1)


def tally(job: Object, pods: list[Object]) -> PodTally:
    ended = [pod for pod in pods if phase(pod) in ENDED and (not indexed(job) or _is_index(job, index_of(pod)))]
    won, failures = [], []
    for pod in ended:
        if phase(pod) == "Succeeded":
            won.append(pod)
        else:
            failures.append((pod, judged(job, pod)))
    lost_pods = [pod for pod, verdict in failures if verdict.action != IGNORE]
    if not is_true(job, _FIRST[COMPLETE]):  # a pod that was deleted because the job succeeded has not failed
        lost_pods += [pod for pod in pods if phase(pod) not in ENDED and is_over(job, pod)]
    done = _known(job, "completedIndexes") | {index_of(pod) for pod in won} if indexed(job) else frozenset()
    attempts: dict[int, Attempts] = {}
    lost = _known(job, "failedIndexes")
    if by_index(job):
        for pod, verdict in failures:
            index = index_of(pod)
            attempts[index] = max(attempts.get(index, FIRST), _attempt(pod, ignored=verdict.action == IGNORE))
            if verdict.action == FAIL_INDEX or attempts[index].counted > int(spec_of(job)["backoffLimitPerIndex"]):
                lost |= {index}
        lost -= done
    running = [pod for pod in pods if active(pod)]
    return PodTally(
        running,
        _surplus(job, running, done | lost) if indexed(job) else [],
        [pod for pod in pods if terminating(pod) and phase(pod) not in ENDED],
        [pod for pod in pods if is_over(job, pod)],
        Count(len(done), []) if indexed(job) else count(job, pods, "succeeded", won),
        count(job, pods, "failed", lost_pods),
        frozenset(done),
        frozenset(lost),
        next((verdict.because for _, verdict in failures if verdict.action == FAIL_JOB), ""),
        attempts,
        0.0 if by_index(job) else _next_at(won, [pod for pod, _ in failures]),
    )


def _is_index(job: Object, index: int) -> bool:
    return 0 <= index < int(spec_of(job).get("completions") or 0)


def _known(job: Object, field: str) -> frozenset[int]:
    return frozenset(index for index in index_set(status_of(job).get(field) or "") if _is_index(job, index))


def _surplus(job: Object, running: Iterable[Object], settled: frozenset[int]) -> list[Object]:
    taken = set(settled)
    surplus = []
    for pod in sorted(running, key=lambda each: (not spec_of(each).get("nodeName"), phase(each) != "Running", name_of(each))):
        index = index_of(pod)
        if index in taken or not _is_index(job, index):
            surplus.append(pod)
        taken.add(index)
    return surplus


def _attempt(pod: Object, *, ignored: bool) -> Attempts:
    notes = annotations_of(pod)
    before = integer(notes.get(INDEX_FAILURES, "0")), integer(notes.get(IGNORED_FAILURES, "0"))
    return Attempts(before[0] + (not ignored), before[1] + ignored, _ended_at(pod) + _pause_s(sum(before) + 1))


def _next_at(won: list[Object], failures: list[Object]) -> float:
    """When the next pod may be made: failures since the last success delay it, counted from the last failure."""
    last_success = max(map(_ended_at, won), default=-1.0)
    ends = [at for at in map(_ended_at, failures) if at > last_success]
    return max(ends) + _pause_s(len(ends)) if ends else 0.0


def _pause_s(failures: int) -> float:
    return min(LONGEST_BACKOFF_S, BACKOFF_S * 2.0 ** min(10, failures - 1))


def _ended_at(pod: Object) -> float:
    stamps = [
        ((each.get("state") or {}).get("terminated") or {}).get("finishedAt") for each in status_of(pod).get("containerStatuses") or ()
    ]
    stamps.append(status_of(pod).get("startTime"))  # no container of a pod that its node rejected has ever run
    return max((instant(stamp) for stamp in stamps if stamp), default=0.0)


COMPLETE, FAILED = "Complete", "Failed"
_FIRST = {COMPLETE: "SuccessCriteriaMet", FAILED: "FailureTarget"}
BACKOFF_LIMIT = 6


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
    limit = int(spec.get("backoffLimit", BACKOFF_LIMIT))
    if tally.failures.total > limit or _restarted(job, tally) >= max(1, limit):
        return End(FAILED, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    at = deadline(job, status_of(job))
    if at is not None and now >= at and not spec.get("suspend"):
        return End(FAILED, "DeadlineExceeded", "Job was active longer than specified deadline")
    most = spec.get("maxFailedIndexes")
    if by_index(job) and most is not None and len(tally.lost) > int(most):
        return End(FAILED, "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes")
    return None


def _restarted(job: Object, tally: PodTally) -> int:
    """The number of restarts of containers, which count as failures if the restartPolicy is OnFailure; else 0."""
    if ((spec_of(job).get("template") or {}).get("spec") or {}).get("restartPolicy") != "OnFailure":
        return 0
    pods = (status_of(pod) for pod in tally.active)
    statuses = (each for pod in pods for part in ("initContainerStatuses", "containerStatuses") for each in pod.get(part) or ())
    return sum(int(each.get("restartCount") or 0) for each in statuses)


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
