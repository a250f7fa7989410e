"""Schedules read, times computed, jobs started by the clock."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, reset_tzpath

import pytest
from hypothesis import given, strategies as st

from pumice.api import kinds
from pumice.api.json_objects import Object, name_of
from pumice.api.times import instant
from pumice.controllers.registry import volcano_controllers
from pumice.controllers.volcano.cron_schedule import ScheduleError, missed, parse_schedule
from pumice.controllers.volcano.cronjob import CronJobs
from tests.controllers.stage import Stage, fixed_key_pair, table, vcjob


def test_time_zones_need_no_files_of_the_machine() -> None:
    """An image may have none, and then every CronJob with a zone would be refused."""
    reset_tzpath(to=[])
    try:
        assert ZoneInfo.no_cache("Europe/Berlin").key == "Europe/Berlin"
    finally:
        reset_tzpath()


@pytest.mark.parametrize("row", table("cron_times.yaml"), ids=lambda row: f"{row['schedule']} after {row['after']}")
def test_the_next_times_of_a_schedule(row: dict[str, Any]) -> None:
    zone = ZoneInfo(row.get("zone", "UTC"))
    schedule, at, found = parse_schedule(row["schedule"]), instant(row["after"]), []
    for _ in row["times"]:
        following = schedule.next_after(at, zone)
        assert following is not None
        at = following
        found.append(datetime.fromtimestamp(at, zone).isoformat())
    assert found == row["times"]


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("", "five"),
        ("* * * *", '"* * * *" has 4 fields'),
        ("60 * * * *", '"60" is not a minute; write a number from 0 to 59'),
        ("* * 0 * *", '"0" is not a day of the month'),
        ("* * * foo *", '"foo" is not a month; write a number from 1 to 12, or a name'),
        ("5-1 * * * *", '"5-1" is not a range of the minute'),
        ("*/0 * * * *", '"0" is not a minute'),
        ("@often", '"@often" is not a schedule'),
        ("@every soon", '"soon" is not a duration'),
        ("@every 1ms", "is too often"),
    ],
)
def test_what_is_no_schedule_is_refused_with_advice(text: str, advice: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        parse_schedule(text)
    assert advice in str(refusal.value)


def test_once_a_second_is_not_too_often() -> None:
    assert parse_schedule("@every 1s").next_after(10.0) == 11.0


def test_a_day_that_never_comes_has_no_time() -> None:
    assert parse_schedule("0 0 30 2 *").next_after(0.0) is None


@given(st.integers(0, 59), st.integers(0, 23), st.floats(0, 4e9))
def test_a_daily_time_is_met_within_two_days_at_the_right_clock_time(minute: int, hour: int, moment: float) -> None:
    zone = ZoneInfo("Europe/Berlin")
    found = parse_schedule(f"{minute} {hour} * * *").next_after(moment, zone)
    assert found is not None and moment < found <= moment + 49 * 3600
    local = datetime.fromtimestamp(found, zone)
    assert (local.minute, local.hour, local.second) == (minute, hour, 0)


def test_many_missed_times_leave_the_latest() -> None:
    schedule = parse_schedule("*/5 * * * *")
    now = instant("2027-06-01T12:03:00Z")
    assert missed(schedule, None, now - 30 * 86400, now) == (instant("2027-06-01T12:00:00Z"), 101)
    assert missed(schedule, None, now - 60, now) == (None, 0)


START = instant("2027-06-01T12:00:30Z")


def cron(**spec: Any) -> Object:
    meta = {"name": "nightly", "namespace": "default", "uid": "uid-cron", "creationTimestamp": "2027-06-01T12:00:30Z"}
    fields = {"schedule": "*/5 * * * *", "jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": vcjob()["spec"]}, **spec}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob", "metadata": meta, "spec": fields}


def play(**spec: Any) -> Stage:
    return Stage(cron(**spec), controllers=[CronJobs()], now=START)


def end(stage: Stage, job: str, phase: str = "Completed") -> None:
    stage.change(kinds.JOB, job, {"status": {"state": {"phase": phase, "lastTransitionTime": "2027-06-01T12:06:00Z"}}})


def test_a_job_is_started_at_each_time() -> None:
    stage = play()
    assert stage.names(kinds.JOB) == []
    stage.wait(270)
    assert len(stage.names(kinds.JOB)) == 1
    job = next(iter(stage.lister.all(kinds.JOB)))
    assert job["metadata"]["labels"] == {"a": "b"}
    assert name_of(job) == f"nightly-{int(START + 270) // 60}"
    status = stage.get(kinds.CRON_JOB, "nightly")["status"]
    assert status["lastScheduleTime"] == "2027-06-01T12:05:00Z"
    assert [(each["name"], each["uid"]) for each in status["active"]] == [(name_of(job), job["metadata"]["uid"])]
    stage.assert_settled()
    end(stage, name_of(job))
    status = stage.get(kinds.CRON_JOB, "nightly")["status"]
    assert status["lastSuccessfulTime"] == "2027-06-01T12:06:00Z" and "active" not in status
    told = [(event.reason, event.message) for event in stage.lister.emitted]
    name = name_of(job)
    assert told == [("SuccessfulCreate", f"Created job {name}"), ("SawCompletedJob", f"Saw completed job: {name}, status: Completed")]


def test_a_second_job_is_allowed_forbidden_or_takes_the_place_of_the_first() -> None:
    counts = {}
    for policy in ("Allow", "Forbid", "Replace"):
        stage = play(concurrencyPolicy=policy)
        stage.wait(300)
        first = stage.names(kinds.JOB)
        stage.wait(300)
        counts[policy] = (len(stage.names(kinds.JOB)), first[0] in stage.names(kinds.JOB))
        (only, *_) = stage.get(kinds.CRON_JOB, "nightly")["status"]["active"]
        assert only["name"] == (stage.names(kinds.JOB)[-1] if policy == "Replace" else first[0])
    assert counts == {"Allow": (2, True), "Forbid": (1, True), "Replace": (1, False)}


def test_a_suspended_schedule_starts_nothing_and_a_broken_one_neither() -> None:
    told = {"suspend": [], "schedule": ["UnparseableSchedule"], "timeZone": ["UnknownTimeZone"]}
    for name, value in (
        ("suspend", True),
        ("schedule", "nonsense"),
        ("timeZone", "Mars/Base"),
        ("timeZone", "America"),
        ("timeZone", ".."),
    ):
        stage = play(**{name: value})
        stage.wait(600)
        assert stage.names(kinds.JOB) == []
        assert [event.reason for event in stage.lister.emitted] == told[name]


def test_a_schedule_that_comes_at_no_time_is_told() -> None:
    stage = play(schedule="59 23 31 2 *")
    assert ("Warning", "InvalidSchedule") in [(event.type, event.reason) for event in stage.lister.emitted]


def test_a_time_that_was_missed_by_too_much_is_let_go() -> None:
    for deadline, started in ((60, 0), (600, 1)):
        stage = play(startingDeadlineSeconds=deadline, suspend=True)
        stage.now += 450
        stage.change(kinds.CRON_JOB, "nightly", {"spec": {"suspend": False}})
        assert len(stage.names(kinds.JOB)) == started


def test_periods_are_counted_from_the_last_start_whoever_looks_when() -> None:
    """Not from when its controllers were started anew, and a short deadline is met by who is on time."""
    stage = play(schedule="@every 24h", startingDeadlineSeconds=60)
    stage.wait(86400)
    (first,) = stage.names(kinds.JOB)
    end(stage, first)
    stage.now += 23 * 3600
    late = Stage(*stage.lister.all(kinds.CRON_JOB), *stage.lister.all(kinds.JOB), controllers=[CronJobs()], now=stage.now)
    late.wait(3599)
    assert late.names(kinds.JOB) == [first]
    late.wait(1)
    assert late.names(kinds.JOB) == [first, f"nightly-{int(START + 2 * 86400) // 60}"]
    late.now += 86400
    late.wait(61)
    assert len(late.names(kinds.JOB)) == 2, "too late by more than the deadline"


def test_three_good_and_one_bad_job_are_kept_unless_it_is_said_otherwise() -> None:
    stage = play()
    for phase in ["Completed"] * 5 + ["Failed"] * 3:
        stage.wait(300)
        end(stage, stage.names(kinds.JOB)[-1], phase)
    kept = [job["status"]["state"]["phase"] for job in stage.lister.all(kinds.JOB)]
    assert kept == ["Completed"] * 3 + ["Failed"]


def test_only_so_many_ended_jobs_are_kept() -> None:
    stage = play(successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
    for phase in ("Completed", "Completed", "Failed"):
        stage.wait(300)
        end(stage, stage.names(kinds.JOB)[-1], phase)
    assert len(stage.names(kinds.JOB)) == 1


def test_too_many_missed_times_are_told() -> None:
    stage = play(schedule="* * * * *", suspend=True)
    stage.now += 3 * 3600
    stage.change(kinds.CRON_JOB, "nightly", {"spec": {"suspend": False}})
    assert stage.lister.emitted[0].reason == "TooManyMissedTimes"
    assert len(stage.names(kinds.JOB)) == 1


def test_kubernetes_own_cron_jobs_start_kubernetes_jobs() -> None:
    own = cron(jobTemplate={"metadata": {"annotations": {"x": "y"}}, "spec": {"template": {"spec": {}}}})
    stage = Stage({**own, "apiVersion": "batch/v1"}, controllers=[CronJobs(kinds.BATCH_CRON_JOB, kinds.BATCH_JOB)], now=START)
    stage.wait(300)
    name = stage.names(kinds.BATCH_JOB)[0]
    notes = stage.get(kinds.BATCH_JOB, name)["metadata"]["annotations"]
    assert notes == {"x": "y", "batch.kubernetes.io/cronjob-scheduled-timestamp": "2027-06-01T12:05:00Z"}
    ended = {"conditions": [{"type": "Complete", "status": "True"}], "completionTime": "2027-06-01T12:06:00Z"}
    stage.change(kinds.BATCH_JOB, name, {"status": ended})
    assert stage.get(kinds.BATCH_CRON_JOB, "nightly")["status"]["lastSuccessfulTime"] == "2027-06-01T12:06:00Z"
    assert stage.lister.emitted[-1].message == f"Saw completed job: {name}, status: Complete"
    stage.assert_settled()


def test_all_of_volcanos_controllers_have_names_of_their_own() -> None:
    names = [controller.name for controller in volcano_controllers(fixed_key_pair)]
    assert len(set(names)) == len(names)
