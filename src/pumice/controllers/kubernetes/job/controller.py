"""Kubernetes' Job: pods that run to completion, a number of them at a time, tried again within limits.

Indexed jobs give each pod an index and count each index once; each index may have its own limit of failures. Failures delay the next pod,
longer each time. If a job is suspended or has ended, its running pods are deleted. A job that another controller manages is
left alone.
"""

from collections.abc import Hashable, Iterable, Iterator
from itertools import islice

from pumice.api import Key, Object, kinds, name_of, rfc3339, spec_of, status_of, uid_of
from pumice.api.annotations import COMPLETION_INDEX, IGNORED_FAILURES, INDEX_FAILURES, JOB_TRACKING
from pumice.api.integers import as_ranges
from pumice.api.json_objects import condition, copied, terminating
from pumice.controllers.controller import NOTHING, KeysOf, Lister, ObjectChange, Result, its_controller, itself, result
from pumice.controllers.kubernetes.job import pod_groups
from pumice.controllers.kubernetes.job.backoff_limit import FIRST, Attempts
from pumice.controllers.kubernetes.job.end import deadline, entry, finish, has_ended, verdict
from pumice.controllers.kubernetes.job.pod_tally import PodTally, by_index, index_of, indexed, let_go, replaces_failed_only, tally
from pumice.controllers.kubernetes.orphan_pods import StrayPod, let_stray_go, strays
from pumice.controllers.kubernetes.owned_pods import claim, dispensable_first, free_names, from_template, its_claimants, ready
from pumice.controllers.kubernetes.pod_group_protection import GROUP
from pumice.controllers.kubernetes.pod_writes import created, ended
from pumice.controllers.pod_bursts import MOST_WAITING, burst, note, room
from pumice.controllers.writes import Create, Emit, Write, delete, status_change


def plain_pods(job: Object, count: int, lister: Lister) -> Iterator[Object]:
    return (_pod(job, name) for name in free_names(job, count, lister))


def indexed_pod(job: Object, index: int, attempts: Attempts | None, lister: Lister) -> Object:
    name = next(free_names(job, 1, lister, f"{name_of(job)}-{index}"))
    pod = _pod(job, name, **{COMPLETION_INDEX: str(index)})
    notes = pod["metadata"].setdefault("annotations", {})
    notes[COMPLETION_INDEX] = str(index)
    if by_index(job):
        counted, ignored, _ = attempts or FIRST
        notes[INDEX_FAILURES] = str(counted)
        if ignored:
            notes[IGNORED_FAILURES] = str(ignored)
    pod["spec"].setdefault("hostname", f"{name_of(job)}-{index}")
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{COMPLETION_INDEX}']"}}}
    for container in (*(pod["spec"].get("initContainers") or ()), *(pod["spec"].get("containers") or ())):
        container.setdefault("env", []).append(dict(variable))
    return pod


def _pod(job: Object, name: str, **labels: str) -> Object:
    pod = from_template(job, spec_of(job).get("template") or {}, name, **_labels(job), **labels)
    pod["metadata"]["finalizers"] = [JOB_TRACKING]
    return pod


def _labels(job: Object) -> dict[str, str]:
    names = {"controller-uid": uid_of(job), "job-name": name_of(job)}
    return {**names, **{f"batch.kubernetes.io/{name}": value for name, value in names.items()}}


OURS = "kubernetes.io/job-controller"


class BatchJobs:
    name = "batch-job"

    def __init__(self, most_waiting: int = MOST_WAITING, makes_groups: bool = False) -> None:
        """`makes_groups`: the feature gate WorkloadWithJob is on."""
        self._most_waiting = most_waiting
        self._makes_groups = makes_groups
        its_job = its_claimants(kinds.BATCH_JOB)

        def of_pod(change: ObjectChange, lister: Lister) -> Iterable[Hashable]:
            is_asked = lister.has_any(kinds.BATCH_JOB) and change.concerns_owners
            return [*(its_job(change, lister) if is_asked else ()), *strays(change, lister)]

        self.watches: dict[str, KeysOf] = {
            kinds.BATCH_JOB: lambda change, lister: [*itself(change, lister), *strays(change, lister)],
            kinds.POD: of_pod,
        }
        if makes_groups:
            self.watches |= dict.fromkeys((pod_groups.WORKLOAD, GROUP), its_controller(kinds.BATCH_JOB))

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        if isinstance(key, StrayPod):
            return result(let_stray_go(key, lister))
        assert isinstance(key, Key)
        job = lister.get(kinds.BATCH_JOB, *key)
        if job is None or spec_of(job).get("managedBy", OURS) != OURS:
            return NOTHING
        if terminating(job):
            return result(let_go(lister.dependents(uid_of(job), kinds.POD)))
        pods, claims = claim(job, kinds.POD, lister, finalizer=JOB_TRACKING)
        counted = tally(job, pods)
        if has_ended(job):
            synced = status_change(job, {**status_of(job), **_counts(job, counted, 0)})
            return result([*claims, *map(delete, counted.active), *synced, *let_go(counted.over)])
        its = pod_groups.grouping(job, pods, lister) if self._makes_groups else pod_groups.ALONE
        if its.waits:
            return result([*claims, *its.writes])
        most = max(self._most_waiting, its.least)
        end, free = verdict(job, counted, now), room(job, counted.active, most)
        status = _started(job, now)
        later: list[tuple[float, Hashable]] = []
        made = 0
        if end is not None:
            writes = finish(job, counted, end, status, now)
        elif spec_of(job).get("suspend"):
            writes = _dismissed(job, counted.active)
        else:
            writes, next_at = _scale(job, counted, free, lister, now)
            if its.group is not None:
                writes = [_joined(write, its.group) for write in writes]
            made = sum(isinstance(step, Create) for step in writes)
            wanted = int(spec_of(job).get("parallelism", 1)) > len(counted.active)
            note(status, free == 0 and wanted, most, now)
            later = [(at, key) for at in (next_at, deadline(job, status)) if at is not None and at > now]
        if end is not None or spec_of(job).get("suspend"):
            counted = counted._replace(active=[], leaving=[*counted.leaving, *counted.active])
        status |= _counts(job, counted, made)
        return result([*claims, *its.writes, *_events(job, status), *writes, *status_change(job, status), *let_go(counted.over)], later)


def _joined(write: Write, group: Object) -> Write:
    """A write that makes a pod, with the pod as a member of the group."""
    return Create(pod_groups.join(write.object, group), write.about) if isinstance(write, Create) else write


def _started(job: Object, now: float) -> Object:
    status: Object = copied(status_of(job))
    suspended = bool(spec_of(job).get("suspend"))
    known = condition(job, "Suspended")
    if suspended:
        status.pop("startTime", None)
    elif not status.get("startTime"):
        status["startTime"] = rfc3339(now)
    if suspended or known is not None:
        values = ("True", "JobSuspended", "Job suspended") if suspended else ("False", "JobResumed", "Job resumed")
        if known is None or known.get("status") != values[0]:
            others = [each for each in status.get("conditions") or () if each.get("type") != "Suspended"]
            status["conditions"] = [*others, entry("Suspended", *values, now)]
    return status


def _events(job: Object, status: Object) -> list[Write]:
    """The Event that the job was suspended or resumed, if its status is only now going to say so."""
    suspended = condition({"status": status}, "Suspended")
    if suspended is None or suspended == condition(job, "Suspended"):
        return []
    return [Emit(job, "Normal", "Suspended" if suspended["status"] == "True" else "Resumed", suspended["message"])]


def _scale(job: Object, counted: PodTally, free: int, lister: Lister, now: float) -> tuple[list[Write], float | None]:
    """The writes that bring the pods to the wanted number, and when to look again, or None. Of those that lack, `free` are made now."""
    spec = spec_of(job)
    parallelism, completions = int(spec.get("parallelism", 1)), spec.get("completions")
    beyond = set(map(name_of, counted.surplus))
    running = [pod for pod in counted.active if name_of(pod) not in beyond]
    if completions is not None:
        wanted = min(parallelism, int(completions) - counted.won.total - len(counted.lost))
    else:
        wanted = parallelism if not counted.won.total else min(parallelism, len(running))
    missing = wanted - len(running)
    too_many = [*counted.surplus, *dispensable_first(running)[: max(0, -missing)]]
    if too_many:
        return _dismissed(job, too_many), None
    if replaces_failed_only(job):
        missing -= len(counted.leaving)
    if missing <= 0 or counted.next_at > now:
        return [], counted.next_at
    if not indexed(job):
        return created(job, plain_pods(job, missing, lister), min(burst(len(running)), free)), None
    return _indexes(job, counted, missing, free, lister, now)


def _dismissed(job: Object, pods: list[Object]) -> list[Write]:
    """The writes that delete pods which have not failed: without their finalizers, they are not counted."""
    return [*let_go(pods), *ended(job, pods)]


def _indexes(job: Object, counted: PodTally, missing: int, free: int, lister: Lister, now: float) -> tuple[list[Write], float | None]:
    kept = [*counted.active, *(counted.leaving if replaces_failed_only(job) else ())]
    taken = {*counted.done, *counted.lost, *map(index_of, kept)}
    waiting = {index: each.next_at for index, each in counted.attempts.items() if index not in taken and each.next_at > now}
    idle = (index for index in range(int(spec_of(job).get("completions") or 0)) if index not in taken and index not in waiting)
    pods = [
        indexed_pod(job, index, counted.attempts.get(index, FIRST), lister) for index in islice(idle, min(missing, burst(len(kept)), free))
    ]
    return created(job, pods, len(pods)), min(waiting.values(), default=None)


def _counts(job: Object, counted: PodTally, made: int) -> Object:
    """The counts in the job's status. As Kubernetes does, some zeros are written and others are left out."""
    ways = {"succeeded": counted.won, "failed": counted.failures}
    counts: Object = {
        "active": len(counted.active) + made or None,
        "ready": sum(map(ready, counted.active)),
        "terminating": len(counted.leaving),
        "succeeded": counted.won.settled or None,
        "failed": counted.failures.settled or None,
        "uncountedTerminatedPods": {way: each.listed for way, each in ways.items() if each.listed},
    }
    if indexed(job) and (counted.done or status_of(job).get("completedIndexes")):
        counts["completedIndexes"] = as_ranges(counted.done)
    if by_index(job):
        counts["failedIndexes"] = as_ranges(counted.lost)
    return counts
