"""What the pods of a Job amount to, with what its status knows of pods that are gone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pumice.api.annotations import COMPLETION_INDEX, IGNORED_FAILURES, INDEX_FAILURES
from pumice.api.integers import index_set, integer
from pumice.api.times import instant
from pumice.controllers.objects import Object, annotations_of, name_of, spec_of, status_of, terminating
from pumice.controllers.workloads.job_rules import FAIL_INDEX, FAIL_JOB, IGNORE, judged
from pumice.controllers.workloads.pods import ENDED, active, phase

BACKOFF_S, LONGEST_BACKOFF_S = 10.0, 360.0


class Attempts(NamedTuple):
    """The failures of one index."""

    counted: int = 0
    ignored: int = 0
    next_at: float = 0.0  #: when it may be tried again


FIRST = Attempts()


class Tally(NamedTuple):
    active: list[Object]
    surplus: list[Object]  #: active, yet with an index that is done, failed, beyond the last one or another pod's
    leaving: list[Object]
    succeeded: int
    failed: int
    done: frozenset[int]  #: indexes that are complete
    lost: frozenset[int]  #: indexes that have failed for good
    verdict: str  #: why a pod's failure is that of the job
    attempts: dict[int, Attempts]  #: by index
    next_at: float  #: when the next pod may be made, by all failures together


def indexed(job: Object) -> bool:
    return bool(spec_of(job).get("completionMode") == "Indexed")


def by_index(job: Object) -> bool:
    """Whether each index has failures of its own."""
    return indexed(job) and spec_of(job).get("backoffLimitPerIndex") is not None


def index_of(pod: Object) -> int:
    return integer(annotations_of(pod).get(COMPLETION_INDEX, ""), -1)


def tally(job: Object, pods: list[Object]) -> Tally:
    stored = status_of(job)
    ended = [pod for pod in pods if phase(pod) in ENDED and (not indexed(job) or _is_index(job, index_of(pod)))]
    won, failures = [], []
    for pod in ended:
        if phase(pod) == "Succeeded":
            won.append(pod)
        else:
            failures.append((pod, judged(job, pod)))
    counted = sum(verdict.action != IGNORE for _, verdict in failures)
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
    return Tally(
        running,
        _surplus(job, running, done | lost) if indexed(job) else [],
        [pod for pod in pods if terminating(pod) and phase(pod) not in ENDED],
        len(done) if indexed(job) else max(len(won), int(stored.get("succeeded") or 0)),
        max(counted, int(stored.get("failed") or 0)),
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
    """After failures the next pod waits, counted from the last one; a success in between ends the count."""
    last_success = max(map(_ended_at, won), default=-1.0)
    ends = [at for at in map(_ended_at, failures) if at > last_success]
    return max(ends) + _pause_s(len(ends)) if ends else 0.0


def _pause_s(failures: int) -> float:
    return min(LONGEST_BACKOFF_S, BACKOFF_S * 2.0 ** min(10, failures - 1))


def _ended_at(pod: Object) -> float:
    stamps = [
        ((each.get("state") or {}).get("terminated") or {}).get("finishedAt") for each in status_of(pod).get("containerStatuses") or ()
    ]
    return max((instant(stamp) for stamp in stamps if stamp), default=0.0)
