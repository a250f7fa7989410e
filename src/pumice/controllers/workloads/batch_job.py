"""Kubernetes' Job: pods that run to completion, a number of them at a time, tried again within limits.

Indexed jobs give each pod an index and count each index once. Failures delay the next pod, longer each time. A job that is
suspended, over its deadline or out of retries loses its running pods.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import islice
from typing import NamedTuple

from pumice.api.integers import as_ranges, index_set, integer
from pumice.api.times import instant, rfc3339
from pumice.controllers import kinds
from pumice.controllers.controller import NOTHING, Result, its_controller, itself, result
from pumice.controllers.objects import Key, Object, annotations_of, condition, copied, name_of, spec_of, status_of, terminating, uid_of
from pumice.controllers.workloads.pods import active, dispensable_first, free_names, from_template, phase, pods_of, ready
from pumice.controllers.workloads.told import BURST, created, ended
from pumice.controllers.world import World
from pumice.controllers.writes import Create, Emit, Write, delete, status_change

INDEX = "batch.kubernetes.io/job-completion-index"
BACKOFF_S, LONGEST_BACKOFF_S = 10.0, 360.0
BACKOFF_LIMIT = 6


class Tally(NamedTuple):
    """The pods of a job, and what is known from pods that are gone."""

    active: list[Object]
    succeeded: int
    failed: int
    done: frozenset[int]  #: indexes that are complete


class BatchJobs:
    """Runs batch/v1 Jobs."""

    name = "batch-job"

    def __init__(self) -> None:
        self.watches = {kinds.BATCH_JOB: itself, kinds.POD: its_controller(kinds.BATCH_JOB)}

    def reconcile(self, key: Hashable, world: World, now: float) -> Result:
        assert isinstance(key, Key)
        job = world.get(kinds.BATCH_JOB, *key)
        if job is None or terminating(job):
            return NOTHING
        pods = pods_of(job, world)
        tally = _tally(job, pods)
        if finished(job):
            return result([*map(delete, tally.active), *status_change(job, {**status_of(job), **_counts(job, tally, 0)})])
        verdict = _verdict(job, tally, now)
        status = _started(job, now)
        writes: list[Write] = []
        later: list[tuple[float, Hashable]] = []
        made = 0
        if verdict is not None:
            writes, status = _finish(job, tally, verdict, status, now)
        elif spec_of(job).get("suspend"):
            writes = ended(job, tally.active)
        else:
            wanted_at = _not_before(pods, tally)
            steps = _scale(job, pods, tally, world, allow_new=wanted_at <= now)
            writes, made = steps, sum(isinstance(step, Create) for step in steps)
            later = [(at, key) for at in (wanted_at, _deadline(job, status)) if at is not None and at > now]
        writes = [*_told(job, status), *writes]
        status.update(_counts(job, tally, made))
        if verdict is not None or spec_of(job).get("suspend"):
            status.update(active=0, ready=0)
        return result([*writes, *status_change(job, _without_zeros(job, status))], later)


def finished(job: Object) -> bool:
    return any((condition(job, type_) or {}).get("status") == "True" for type_ in ("Complete", "Failed"))


def _indexed(job: Object) -> bool:
    return bool(spec_of(job).get("completionMode") == "Indexed")


def _index(pod: Object) -> int:
    return integer(annotations_of(pod).get(INDEX, ""), -1)


def _tally(job: Object, pods: list[Object]) -> Tally:
    stored = status_of(job)
    done = index_set(stored.get("completedIndexes") or "") | {_index(pod) for pod in pods if phase(pod) == "Succeeded"}
    succeeded = len(done - {-1}) if _indexed(job) else sum(phase(pod) == "Succeeded" for pod in pods)
    failed = sum(phase(pod) == "Failed" for pod in pods)
    succeeded, failed = max(succeeded, int(stored.get("succeeded") or 0)), max(failed, int(stored.get("failed") or 0))
    return Tally([pod for pod in pods if active(pod)], succeeded, failed, frozenset(done - {-1}))


def _verdict(job: Object, tally: Tally, now: float) -> tuple[str, str, str] | None:
    """How the job has ended: condition, reason, message."""
    spec = spec_of(job)
    if tally.failed > int(spec.get("backoffLimit", BACKOFF_LIMIT)):
        return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    deadline = _deadline(job, status_of(job))
    if deadline is not None and now >= deadline and not spec.get("suspend"):
        return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
    completions = spec.get("completions")
    if completions is not None:
        complete = tally.succeeded >= int(completions)
    else:
        complete = tally.succeeded > 0 and not tally.active
    return ("Complete", "CompletionsReached", "Reached expected number of succeeded pods") if complete else None


def _deadline(job: Object, status: Object) -> float | None:
    limit, start = spec_of(job).get("activeDeadlineSeconds"), status.get("startTime")
    return instant(start) + float(limit) if limit is not None and start else None


def _started(job: Object, now: float) -> Object:
    status: Object = copied(status_of(job))
    suspended = bool(spec_of(job).get("suspend"))
    known = condition(job, "Suspended")
    if suspended:
        status.pop("startTime", None)
    elif not status.get("startTime"):
        status["startTime"] = rfc3339(now)
    if suspended or known is not None:
        said = ("True", "JobSuspended", "Job suspended") if suspended else ("False", "JobResumed", "Job resumed")
        if known is None or known.get("status") != said[0]:
            status["conditions"] = [*_other_conditions(status, "Suspended"), _entry("Suspended", *said, now)]
    return status


def _told(job: Object, status: Object) -> list[Write]:
    """That it was suspended or goes on, when its status begins to say so."""
    said = condition({"status": status}, "Suspended")
    if said is None or said == condition(job, "Suspended"):
        return []
    return [Emit(job, "Normal", "Suspended" if said["status"] == "True" else "Resumed", said["message"])]


def _other_conditions(status: Object, type_: str) -> list[Object]:
    return [entry for entry in status.get("conditions") or () if entry.get("type") != type_]


def _entry(type_: str, status: str, reason: str, message: str, now: float) -> Object:
    stamp = rfc3339(now)
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastProbeTime": stamp, "lastTransitionTime": stamp}


def _finish(job: Object, tally: Tally, verdict: tuple[str, str, str], status: Object, now: float) -> tuple[list[Write], Object]:
    type_, reason, message = verdict
    before = "SuccessCriteriaMet" if type_ == "Complete" else "FailureTarget"
    entries = [_entry(each, "True", reason, message, now) for each in (before, type_)]
    status["conditions"] = [*(status.get("conditions") or ()), *entries]
    if type_ == "Complete":
        status["completionTime"] = rfc3339(now)
        return [*ended(job, tally.active), Emit(job, "Normal", "Completed", "Job completed")], status
    return [*ended(job, tally.active), Emit(job, "Warning", reason, message)], status


def _not_before(pods: list[Object], tally: Tally) -> float:
    """After failures the next pod waits, counted from the last failure."""
    if not tally.failed:
        return 0.0
    ends = [_ended_at(pod) for pod in pods if phase(pod) == "Failed"]
    return max(ends, default=0.0) + min(LONGEST_BACKOFF_S, BACKOFF_S * 2.0 ** min(10, tally.failed - 1))


def _ended_at(pod: Object) -> float:
    stamps = [
        ((each.get("state") or {}).get("terminated") or {}).get("finishedAt") for each in status_of(pod).get("containerStatuses") or ()
    ]
    return max((instant(stamp) for stamp in stamps if stamp), default=0.0)


def _scale(job: Object, pods: list[Object], tally: Tally, world: World, *, allow_new: bool) -> list[Write]:
    spec = spec_of(job)
    parallelism = int(spec.get("parallelism", 1))
    completions = spec.get("completions")
    if completions is not None:
        wanted = min(parallelism, int(completions) - tally.succeeded)
    else:
        wanted = parallelism if not tally.succeeded else min(parallelism, len(tally.active))
    missing = wanted - len(tally.active)
    if missing <= 0:
        return ended(job, dispensable_first(tally.active)[: -missing or 0])
    leaving = sum(terminating(pod) and phase(pod) not in ("Succeeded", "Failed") for pod in pods)
    if spec.get("podReplacementPolicy") == "Failed":
        missing = max(0, missing - leaving)
    if not allow_new or not missing:
        return []
    return created(job, (_indexed_pods if _indexed(job) else _plain_pods)(job, tally, missing, world))


def _plain_pods(job: Object, tally: Tally, count: int, world: World) -> list[Object]:
    return [from_template(job, spec_of(job).get("template") or {}, name, **_labels(job)) for name in free_names(job, count, world)]


def _indexed_pods(job: Object, tally: Tally, count: int, world: World) -> list[Object]:
    taken = tally.done | {_index(pod) for pod in tally.active}
    free = islice((index for index in range(int(spec_of(job).get("completions") or 0)) if index not in taken), min(count, BURST))
    made = []
    for index in free:
        name = next(free_names(job, 1, world, f"{name_of(job)}-{index}"))
        pod = from_template(job, spec_of(job).get("template") or {}, name, **_labels(job), **{INDEX: str(index)})
        pod["metadata"].setdefault("annotations", {})[INDEX] = str(index)
        pod["spec"].setdefault("hostname", f"{name_of(job)}-{index}")
        variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX}']"}}}
        for container in (*(pod["spec"].get("initContainers") or ()), *(pod["spec"].get("containers") or ())):
            container.setdefault("env", []).append(dict(variable))
        made.append(pod)
    return made


def _labels(job: Object) -> dict[str, str]:
    names = {"controller-uid": uid_of(job), "job-name": name_of(job)}
    return {**names, **{f"batch.kubernetes.io/{name}": value for name, value in names.items()}}


def _counts(job: Object, tally: Tally, made: int) -> Object:
    counts: Object = {
        "active": len(tally.active) + made,
        "ready": sum(map(ready, tally.active)),
        "succeeded": tally.succeeded,
        "failed": tally.failed,
    }
    if _indexed(job) and (tally.done or status_of(job).get("completedIndexes")):
        counts["completedIndexes"] = as_ranges(tally.done)
    return counts if not finished(job) else {name: value for name, value in counts.items() if name not in ("active", "ready")}


def _without_zeros(job: Object, status: Object) -> Object:
    return {name: value for name, value in status.items() if value or name in status_of(job)}
