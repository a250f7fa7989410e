"""The tally of a Job's pods, including the pods that are gone, as its status counts them.

Each pod is counted once, even if it is deleted early. A pod keeps a finalizer until its Job's status lists it among
`uncountedTerminatedPods`. Once the finalizer is gone, the pod is in the status's count and no longer in the list. The success of an
indexed pod needs no list: its index is in the status.
"""

from collections.abc import Iterable
from typing import NamedTuple

from pumice.api import Object, name_of, spec_of, status_of, uid_of
from pumice.api.annotations import COMPLETION_INDEX, JOB_TRACKING
from pumice.api.integers import index_set, integer
from pumice.api.json_objects import annotations_of, finalizers_of, is_true, terminating
from pumice.controllers.kubernetes.job.backoff_limit import FIRST, Attempts, attempt, next_at
from pumice.controllers.kubernetes.job.pod_failure_policy import FAIL_INDEX, FAIL_JOB, IGNORE, judged
from pumice.controllers.kubernetes.owned_pods import ENDED, active, phase
from pumice.controllers.writes import Write, without_finalizer

SUCCESS_CRITERIA_MET = "SuccessCriteriaMet"


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
    return [write for pod in pods for write in without_finalizer(pod, JOB_TRACKING)]


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
    if not is_true(job, SUCCESS_CRITERIA_MET):  # a pod that was deleted because the job succeeded has not failed
        lost_pods += [pod for pod in pods if phase(pod) not in ENDED and is_over(job, pod)]
    done = _known(job, "completedIndexes") | {index_of(pod) for pod in won} if indexed(job) else frozenset()
    attempts: dict[int, Attempts] = {}
    lost = _known(job, "failedIndexes")
    if by_index(job):
        for pod, verdict in failures:
            index = index_of(pod)
            attempts[index] = max(attempts.get(index, FIRST), attempt(pod, ignored=verdict.action == IGNORE))
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
        0.0 if by_index(job) else next_at(won, [pod for pod, _ in failures]),
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
