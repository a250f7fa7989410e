"""Rules for CronJobs: a valid schedule, a time zone that exists, and a job that would be admitted."""

from collections.abc import Iterator

from msgspec.structs import replace

from pumice.api import Object, name_of, namespace_of, spec_of
from pumice.api.dns_names import is_subdomain
from pumice.api.json_objects import copied
from pumice.controllers.admission import job as job_rules
from pumice.controllers.admission.problem import CREATE, Problem, Settings, not_negative, one_of
from pumice.controllers.controller import Lister
from pumice.controllers.volcano.cron_schedule import ScheduleError, parse_schedule

LONGEST_NAME = 52  #: the names of its jobs have up to 11 characters more, and must be valid labels
SOME_MINUTE = "29000000"  #: stands for the minute in which a job's name ends
DEFAULTS = {"concurrencyPolicy": "Allow", "suspend": False, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}


def mutate(cron_job: Object, lister: Lister, settings: Settings) -> Object:
    result: Object = copied(cron_job)
    stated = {name: value for name, value in spec_of(result).items() if value is not None}
    result["spec"] = {**DEFAULTS, **stated}
    return result


def validate(operation: str, new: Object | None, old: Object | None, lister: Lister, settings: Settings) -> list[Problem]:
    assert new is not None
    spec = spec_of(new)
    misnamed = list(_name(new))
    problems = [
        *misnamed,
        *_schedule(spec),
        *one_of(spec.get("concurrencyPolicy"), ("Allow", "Forbid", "Replace"), "spec.concurrencyPolicy"),
    ]
    for field in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        problems.extend(not_negative(spec.get(field), f"spec.{field}"))
    if misnamed:
        return problems  # its jobs have invalid names too
    if old is not None and spec_of(old).get("jobTemplate") == spec.get("jobTemplate"):
        return problems  # its queue may have been closed since: the CronJob can still be suspended
    return [*problems, *_template(new, lister, settings)]


def _name(cron_job: Object) -> Iterator[Problem]:
    name = name_of(cron_job)
    if len(name) > LONGEST_NAME or not is_subdomain(name):
        message = f'invalid cronJob name "{name}": cronJob base name must be no more than {LONGEST_NAME} characters'
        yield Problem("metadata.name", f'{message}, which are lower case letters, digits and "-"; its jobs get some more')


def _schedule(spec: Object) -> Iterator[Problem]:
    text = spec.get("schedule") or ""
    if "TZ" in text:
        yield Problem("spec.schedule", f'cannot use TZ or CRON_TZ in schedule "{text}"; write the zone into spec.timeZone')
    else:
        try:
            parse_schedule(text)
        except ScheduleError as error:
            yield Problem("spec.schedule", str(error))
    zone = spec.get("timeZone")
    if zone is not None and not _zone_exists(zone):
        yield Problem("spec.timeZone", f'unknown time zone {zone}; write one such as "Etc/UTC" or "Europe/Berlin"')


def _zone_exists(name: str) -> bool:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return bool(name) and name.lower() != "local" and ZoneInfo(name) is not None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False


def _template(cron_job: Object, lister: Lister, settings: Settings) -> Iterator[Problem]:
    template = spec_of(cron_job).get("jobTemplate") or {}
    meta = {"name": f"{name_of(cron_job)}-{SOME_MINUTE}", "namespace": namespace_of(cron_job)}
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": meta, "spec": template.get("spec") or {}}
    for problem in job_rules.validate(CREATE, job_rules.mutate(job, lister, settings), None, lister, settings):
        yield replace(problem, field=f"spec.jobTemplate.{problem.field}")
