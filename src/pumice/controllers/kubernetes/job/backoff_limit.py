"""The backoffLimit of a Job, and the pauses after failures: how often its pods, or those of one index, are tried again, and when."""

from collections.abc import Iterable
from typing import NamedTuple

from pumice.api import Object, instant, spec_of, status_of
from pumice.api.annotations import IGNORED_FAILURES, INDEX_FAILURES
from pumice.api.integers import integer
from pumice.api.json_objects import annotations_of

BACKOFF_LIMIT = 6
BACKOFF_S, LONGEST_BACKOFF_S = 10.0, 360.0


class Attempts(NamedTuple):
    """The failures of one index."""

    counted: int = 0
    ignored: int = 0
    next_at: float = 0.0  #: when the index may be tried again


FIRST = Attempts()


def exceeded(job: Object, failures: int, active: Iterable[Object]) -> bool:
    limit = int(spec_of(job).get("backoffLimit", BACKOFF_LIMIT))
    return failures > limit or _restarted(job, active) >= max(1, limit)


def _restarted(job: Object, active: Iterable[Object]) -> int:
    """The number of restarts of containers, which count as failures if the restartPolicy is OnFailure; else 0."""
    if ((spec_of(job).get("template") or {}).get("spec") or {}).get("restartPolicy") != "OnFailure":
        return 0
    pods = (status_of(pod) for pod in active)
    statuses = (each for pod in pods for part in ("initContainerStatuses", "containerStatuses") for each in pod.get(part) or ())
    return sum(int(each.get("restartCount") or 0) for each in statuses)


def attempt(pod: Object, *, ignored: bool) -> Attempts:
    notes = annotations_of(pod)
    before = integer(notes.get(INDEX_FAILURES, "0")), integer(notes.get(IGNORED_FAILURES, "0"))
    return Attempts(before[0] + (not ignored), before[1] + ignored, _ended_at(pod) + _pause_s(sum(before) + 1))


def next_at(won: list[Object], failures: list[Object]) -> float:
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
