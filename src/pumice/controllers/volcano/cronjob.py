"""CronJobs, Volcano's and Kubernetes': a job is made at each time of the schedule, and old jobs are deleted.

A job's name ends in the minute of its scheduled time, so no time is served twice. Missed times are not made up for, except the
latest one, if it is not too long ago.

Cron schedules: five fields, names for months and days, steps, ranges, and the @ words; in any time zone.
If both the day of the month and the day of the week are restricted, either may match. A wall-clock time that a change of
clocks skips gives no job; a time that comes twice gives one job, unless the schedule restricts no hour.
"""

from collections.abc import Hashable, Sequence
from datetime import tzinfo

from pumice.api import Key, Object, instant, kinds, name_of, namespace_of, rfc3339, spec_of, status_of, uid_of
from pumice.api.annotations import CRON_SCHEDULED_AT, VOLCANO_SCHEDULED_AT
from pumice.api.json_objects import controlled_by, controller_of, copied, created_at, field, is_true, terminating
from pumice.api.kinds import kind_of
from pumice.controllers.controller import NOTHING, Lister, Result, its_controller, itself, result
from pumice.controllers.volcano.cron_schedule import CronSchedule, ScheduleError, coming, missed, parse_schedule
from pumice.controllers.volcano.job import spec as job_spec
from pumice.controllers.volcano.job.state import COMPLETED, FAILED, TERMINATED
from pumice.controllers.writes import Create, Delete, Emit, Write, delete, status_change

MANY = 100  #: if more times were missed, there is a warning


class CronJobs:
    """Starts the jobs of one kind of CronJob at the times of their schedules."""

    def __init__(self, kind: str = kinds.CRON_JOB, job_kind: str = kinds.JOB) -> None:
        self.kind, self.job_kind = kind, job_kind
        self.name = kind.lower()
        self.watches = {kind: itself, job_kind: its_controller(kind)}

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, Key)
        cron = lister.get(self.kind, *key)
        if cron is None or terminating(cron):
            return NOTHING
        owned = lister.dependents(uid_of(cron), self.job_kind)
        jobs = [job for job in owned if (controller_of(job) or {}).get("uid") == uid_of(cron)]
        running = [job for job in jobs if ended_well(job) is None and not terminating(job)]
        writes = [*_seen(cron, jobs), *_tidy(cron, jobs)]
        status = _status(cron, jobs)
        later: list[tuple[float, Hashable]] = []
        try:
            schedule, zone = parse_schedule(spec_of(cron).get("schedule") or ""), _zone(cron)
        except (KeyError, ValueError, OSError) as error:
            return result([*writes, _unreadable(cron, error), *status_change(cron, _with_active(status, running))])
        if not spec_of(cron).get("suspend"):
            started = self._start(cron, schedule, zone, running, lister, now)
            writes.extend(started)
            replaced = {write.uid for write in started if isinstance(write, Delete)}
            running = [job for job in running if uid_of(job) not in replaced]  # a new job is listed once it has a uid
            made = next((write.object for write in started if isinstance(write, Create)), None)
            if made is not None:
                status["lastScheduleTime"] = _scheduled_at(made)
            following = coming(schedule, zone, _latest(cron, status), now)
            later = [(following, key)] if following is not None else []
            if following is None:
                text = f"invalid schedule: {spec_of(cron)['schedule']} : it comes at no time"
                writes.append(Emit(cron, "Warning", "InvalidSchedule", text))
        return result([*writes, *status_change(cron, _with_active(status, running))], later)

    def _start(
        self, cron: Object, schedule: CronSchedule, zone: tzinfo | None, running: list[Object], lister: Lister, now: float
    ) -> list[Write]:
        """The writes for the time that is due; none if no time is due, or its job may not start."""
        since = _latest(cron, status_of(cron))
        deadline_s = spec_of(cron).get("startingDeadlineSeconds")
        earliest = 0.0 if deadline_s is None else now - float(deadline_s)
        due, count = missed(schedule, zone, since if schedule.every_s else max(since, earliest), now, MANY)
        if due is None or due < earliest:
            return []
        name = f"{name_of(cron)}-{int(due) // 60}"
        if lister.get(self.job_kind, namespace_of(cron), name) is not None:
            return []
        policy = spec_of(cron).get("concurrencyPolicy") or "Allow"
        if running and policy == "Forbid":
            return []
        writes = _ended(cron, running) if policy == "Replace" else []
        if count > MANY:
            writes.append(
                Emit(cron, "Warning", "TooManyMissedTimes", f"more than {MANY} start times were missed; only the latest is made up for")
            )
        return [*writes, Create(self._job(cron, name, due), cron), Emit(cron, "Normal", "SuccessfulCreate", f"Created job {name}")]

    def _job(self, cron: Object, name: str, due: float) -> Object:
        template = copied(spec_of(cron).get("jobTemplate") or {})
        meta = template.get("metadata") or {}
        made = kinds.new(self.job_kind, namespace_of(cron), name, spec=template.get("spec") or {})
        note = CRON_SCHEDULED_AT if self.job_kind == kinds.BATCH_JOB else VOLCANO_SCHEDULED_AT
        made["metadata"]["annotations"] = {**(meta.get("annotations") or {}), note: rfc3339(due)}
        if meta.get("labels"):
            made["metadata"]["labels"] = meta["labels"]
        made["metadata"]["ownerReferences"] = [controlled_by(cron)]
        return made


def _latest(cron: Object, status: Object) -> float:
    """The time that was served last; if there was none, the creation of the CronJob."""
    return instant(status["lastScheduleTime"]) if status.get("lastScheduleTime") else created_at(cron)


def _unreadable(cron: Object, error: Exception) -> Write:
    """The Event about a schedule or a time zone that cannot be read."""
    if isinstance(error, ScheduleError):
        return Emit(cron, "Warning", "UnparseableSchedule", f"unparseable schedule: {error}")
    return Emit(cron, "Warning", "UnknownTimeZone", f"invalid timeZone: {spec_of(cron)['timeZone']}")


def _zone(cron: Object) -> tzinfo | None:
    """The time zone of the schedule; None if it names none. Raises KeyError, ValueError or, if the name is that of a region, OSError."""
    from zoneinfo import ZoneInfo

    name = spec_of(cron).get("timeZone")
    return ZoneInfo(name) if name else None


def _scheduled_at(job: Object) -> str:
    notes = job["metadata"]["annotations"]
    return str(notes.get(CRON_SCHEDULED_AT) or notes[VOLCANO_SCHEDULED_AT])


def ended_well(job: Object) -> bool | None:
    if kind_of(job) == kinds.JOB:
        return {COMPLETED: True, FAILED: False, TERMINATED: False}.get(job_spec.phase_of(job))
    for type_, good in (("Complete", True), ("Failed", False)):
        if is_true(job, type_):
            return good
    return None


def _seen(cron: Object, jobs: Sequence[Object]) -> list[Write]:
    """The Events about jobs that have ended since they were last listed as active."""
    active = {reference.get("uid") for reference in status_of(cron).get("active") or ()}
    ends = ((job, _end(job)) for job in jobs if uid_of(job) in active)
    return [Emit(cron, "Normal", "SawCompletedJob", f"Saw completed job: {name_of(job)}, status: {end}") for job, end in ends if end]


def _end(job: Object) -> str:
    """How a job ended: the name of its phase or condition; empty while it has not ended."""
    well = ended_well(job)
    if well is None:
        return ""
    return job_spec.phase_of(job) if kind_of(job) == kinds.JOB else "Complete" if well else "Failed"


def _ended_at(job: Object) -> str:
    if kind_of(job) == kinds.JOB:
        return str(field(job, "status.state.lastTransitionTime") or "")
    return str(status_of(job).get("completionTime") or "")


def _tidy(cron: Object, jobs: Sequence[Object]) -> list[Write]:
    """The writes that delete the oldest ended jobs beyond the history limits."""
    writes: list[Write] = []
    for good, name, default in ((True, "successfulJobsHistoryLimit", 3), (False, "failedJobsHistoryLimit", 1)):
        limit = spec_of(cron).get(name)
        ended = sorted(
            (job for job in jobs if ended_well(job) is good and not terminating(job)), key=lambda job: (created_at(job), name_of(job))
        )
        writes.extend(_ended(cron, ended[: max(0, len(ended) - int(default if limit is None else limit))]))
    return writes


def _ended(cron: Object, jobs: Sequence[Object]) -> list[Write]:
    return [write for job in jobs for write in (delete(job), Emit(cron, "Normal", "SuccessfulDelete", f"Deleted job {name_of(job)}"))]


def _status(cron: Object, jobs: Sequence[Object]) -> Object:
    status: Object = copied(status_of(cron))
    ends = [_ended_at(job) for job in jobs if ended_well(job)]
    latest = max([*ends, status.get("lastSuccessfulTime") or ""])
    if latest:
        status["lastSuccessfulTime"] = latest
    return status


def _with_active(status: Object, running: Sequence[Object]) -> Object:
    references = [
        {"apiVersion": job["apiVersion"], "kind": job["kind"], "namespace": namespace_of(job), "name": name_of(job), "uid": uid_of(job)}
        for job in sorted(running, key=name_of)
    ]
    return {**status, "active": references or None}
