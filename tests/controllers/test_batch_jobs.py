"""Kubernetes' own Jobs: how many pods run, what failures mean, how they end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from pumice.api import kinds, rfc3339
from pumice.api.integers import as_ranges, index_set
from pumice.api.json_objects import Object, annotations_of, condition, labels_of, name_of, status_of
from tests.controllers.playing import alive, play, start, template, workload
from tests.controllers.stage import Stage


def test_a_job_runs_a_few_pods_at_a_time_until_enough_succeeded() -> None:
    stage = play(workload("Job", parallelism=2, completions=3))
    assert len(alive(stage)) == 2
    stage.pods("Succeeded")
    assert len(alive(stage)) == 1
    stage.pods("Succeeded")
    job = stage.get(kinds.BATCH_JOB, "web")
    assert job["status"]["succeeded"] == 3
    assert (condition(job, "Complete") or {})["status"] == "True"
    assert job["status"]["completionTime"]
    stage.assert_settled()


def test_an_indexed_job_gives_every_pod_an_index_and_tries_the_failed_one_again_later() -> None:
    stage = play(workload("Job", parallelism=3, completions=3, completionMode="Indexed"))
    by_index = {annotations_of(pod)["batch.kubernetes.io/job-completion-index"]: name_of(pod) for pod in alive(stage)}
    assert sorted(by_index) == ["0", "1", "2"]
    stage.pods("Succeeded", by_index["0"], by_index["2"])
    ended = {"terminated": {"exitCode": 1, "finishedAt": "2027-01-15T08:00:00Z"}}
    stage.now = 1_800_000_000.0
    stage.change(kinds.POD, by_index["1"], {"status": {"phase": "Failed", "containerStatuses": [{"name": "main", "state": ended}]}})
    assert alive(stage) == []
    assert stage.get(kinds.BATCH_JOB, "web")["status"]["completedIndexes"] == "0,2"
    stage.wait(10)
    assert [labels_of(pod)["batch.kubernetes.io/job-completion-index"] for pod in alive(stage)] == ["1"]
    stage.pods("Succeeded", *[name_of(pod) for pod in alive(stage)])
    assert stage.get(kinds.BATCH_JOB, "web")["status"]["completedIndexes"] == "0-2"


def test_a_job_gives_up_after_too_many_failures() -> None:
    stage = play(workload("Job", backoffLimit=1))
    for _ in range(2):
        stage.pods("Failed", *[name_of(pod) for pod in alive(stage)])
        stage.wait(600)
    failed = condition(stage.get(kinds.BATCH_JOB, "web"), "Failed") or {}
    assert failed["reason"] == "BackoffLimitExceeded"
    assert len(stage.names(kinds.POD)) == 2


def test_a_job_ends_at_its_deadline_and_a_suspended_one_has_no_pods() -> None:
    stage = play(workload("Job", activeDeadlineSeconds=100))
    stage.wait(100)
    assert (condition(stage.get(kinds.BATCH_JOB, "web"), "Failed") or {})["reason"] == "DeadlineExceeded"
    assert alive(stage) == []
    stage = play(workload("Job", suspend=True))
    assert alive(stage) == []
    stage.change(kinds.BATCH_JOB, "web", {"spec": {"suspend": False}})
    assert len(alive(stage)) == 1
    assert (condition(stage.get(kinds.BATCH_JOB, "web"), "Suspended") or {})["reason"] == "JobResumed"


INDEX = "batch.kubernetes.io/job-completion-index"


def by_index(stage: Stage) -> dict[int, str]:
    return {int(annotations_of(pod)[INDEX]): name_of(pod) for pod in alive(stage)}


def end(stage: Stage, phase: str, *indexes: int, exit_code: int = 1) -> None:
    stage.pods(phase, *[by_index(stage)[index] for index in indexes], exit_code=exit_code)


def conditions(stage: Stage) -> dict[str, str]:
    """Reasons by type, of the conditions that hold."""
    stated = status_of(stage.get(kinds.BATCH_JOB, "web")).get("conditions") or ()
    return {each["type"]: each["reason"] for each in stated if each["status"] == "True"}


def status(stage: Stage) -> Object:
    return status_of(stage.get(kinds.BATCH_JOB, "web"))


def indexed(completions: int, **spec: Any) -> Stage:
    return play(workload("Job", parallelism=completions, completions=completions, completionMode="Indexed", **spec))


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_an_index_fails_alone_after_its_own_limit_and_the_others_go_on(limit: int) -> None:
    stage = indexed(3, backoffLimitPerIndex=limit, backoffLimit=2**31 - 1)
    for failures in range(limit + 1):
        assert annotations_of(stage.get(kinds.POD, by_index(stage)[1]))["batch.kubernetes.io/job-index-failure-count"] == str(failures)
        assert status(stage)["failedIndexes"] == ""
        end(stage, "Failed", 1)
    assert (status(stage)["failedIndexes"], status(stage)["failed"]) == ("1", limit + 1)
    assert sorted(by_index(stage)) == [0, 2]
    end(stage, "Succeeded", 0, 2)
    assert conditions(stage) == {"FailureTarget": "FailedIndexes", "Failed": "FailedIndexes"}
    assert (status(stage)["completedIndexes"], status(stage)["succeeded"]) == ("0,2", 2)
    assert "completionTime" not in status(stage)
    stage.assert_settled()


def test_what_indexes_have_failed_and_how_often_outlives_their_pods() -> None:
    stage = indexed(3, backoffLimitPerIndex=1, backoffLimit=2**31 - 1)
    end(stage, "Failed", 1, 2)
    end(stage, "Failed", 1)
    for pod in list(stage.lister.all(kinds.POD)):
        if status_of(pod).get("phase") == "Failed":
            stage.lose(name_of(pod))
    assert (status(stage)["failedIndexes"], sorted(by_index(stage))) == ("1", [0, 2])
    end(stage, "Failed", 2)
    assert (status(stage)["failedIndexes"], sorted(by_index(stage))) == ("1-2", [0])


def test_each_index_waits_for_its_own_failures() -> None:
    stage = indexed(2, backoffLimitPerIndex=5, backoffLimit=2**31 - 1)
    ended = {"terminated": {"exitCode": 1, "finishedAt": "2027-01-15T08:00:00Z"}}
    failed = {"status": {"phase": "Failed", "containerStatuses": [{"name": "main", "state": ended}]}}
    stage.change(kinds.POD, by_index(stage)[0], failed)
    assert sorted(by_index(stage)) == [1]
    end(stage, "Failed", 1)
    assert sorted(by_index(stage)) == [1], "its failure is long ago"
    stage.wait(10)
    assert sorted(by_index(stage)) == [0, 1]


def test_more_failed_indexes_than_allowed_end_the_job() -> None:
    stage = indexed(4, backoffLimitPerIndex=0, maxFailedIndexes=1, backoffLimit=2**31 - 1)
    end(stage, "Failed", 0)
    assert not conditions(stage)
    end(stage, "Failed", 3)
    assert conditions(stage) == dict.fromkeys(("FailureTarget", "Failed"), "MaxFailedIndexesExceeded")
    assert (status(stage)["failedIndexes"], status(stage)["failed"], alive(stage)) == ("0,3", 4, []), "those cut short have failed"


@pytest.mark.parametrize(
    ("rules", "enough"),
    [
        ([{"succeededIndexes": "1-2"}], [1, 2]),
        ([{"succeededCount": 2}], [0, 3]),
        ([{"succeededIndexes": "0-2", "succeededCount": 1}], [2]),
        ([{"succeededIndexes": "0"}, {"succeededCount": 3}], [1, 2, 3]),
    ],
)
def test_a_success_policy_ends_the_job_as_soon_as_a_rule_is_met(rules: list[Object], enough: list[int]) -> None:
    stage = indexed(4, successPolicy={"rules": rules})
    for index in enough:
        assert not conditions(stage)
        end(stage, "Succeeded", index)
    assert conditions(stage) == dict.fromkeys(("SuccessCriteriaMet", "Complete"), "SuccessPolicy")
    met = condition(stage.get(kinds.BATCH_JOB, "web"), "Complete") or {}
    assert met["message"] == f"Matched rules at index {len(rules) - 1}"
    assert (status(stage)["succeeded"], status(stage).get("failed"), alive(stage)) == (len(enough), None, [])


@pytest.mark.parametrize("manager", ["example.com/queueing", ""])
def test_a_job_that_somebody_else_manages_is_left_alone(manager: str) -> None:
    stage = play(workload("Job", managedBy=manager))
    assert (alive(stage), status(stage)) == ([], {})
    assert alive(play(workload("Job", managedBy="kubernetes.io/job-controller")))


@pytest.mark.parametrize("count", ["Complete", "Failed"])
def test_a_job_says_what_it_has_come_to_and_ends_when_its_last_pod_is_gone(count: str) -> None:
    stage = indexed(2, successPolicy={"rules": [{"succeededCount": 1}]}, backoffLimit=0)
    stage.bind()
    end(stage, "Succeeded" if count == "Complete" else "Failed", 0)
    first = "SuccessCriteriaMet" if count == "Complete" else "FailureTarget"
    assert list(conditions(stage)) == [first]
    assert (status(stage)["terminating"], status(stage).get("active")) == (1, None)
    stage.wait(1000)
    stage.kubelet_ends()
    assert list(conditions(stage)) == [first, count]
    assert status(stage)["terminating"] == 0
    stage.assert_settled()


@pytest.mark.parametrize(("policy", "next_at_once"), [("TerminatingOrFailed", True), ("Failed", False)])
@pytest.mark.parametrize("mode", ["Indexed", "NonIndexed"])
def test_a_pod_is_replaced_when_it_begins_to_go_or_once_it_is_gone(policy: str, next_at_once: bool, mode: str) -> None:
    stage = play(workload("Job", parallelism=2, completions=2, completionMode=mode, podReplacementPolicy=policy))
    stage.bind()
    stage.delete(kinds.POD, name_of(alive(stage)[0]))
    assert len(alive(stage)) == (2 if next_at_once else 1)
    assert status(stage)["terminating"] == 1
    stage.kubelet_ends()
    assert len(alive(stage)) == 2


EXIT_42 = {"onExitCodes": {"operator": "In", "values": [42]}}


def policy(*rules: Object) -> Object:
    return {"podFailurePolicy": {"rules": list(rules)}, "podReplacementPolicy": "Failed"}


def test_a_failure_that_the_policy_calls_the_jobs_ends_it() -> None:
    stage = play(workload("Job", parallelism=2, completions=2, **policy({"action": "FailJob", **EXIT_42})))
    pod = alive(stage)[0]
    stage.pods("Failed", name_of(pod), exit_code=42)
    assert conditions(stage) == dict.fromkeys(("FailureTarget", "Failed"), "PodFailurePolicy")
    message = (condition(stage.get(kinds.BATCH_JOB, "web"), "Failed") or {})["message"]
    assert message == f"Container main for pod default/{name_of(pod)} failed with exit code 42 matching FailJob rule at index 0"


@pytest.mark.parametrize(("action", "counts"), [("Ignore", False), ("Count", True)])
def test_the_first_rule_that_fits_says_whether_a_failure_counts(action: str, counts: bool) -> None:
    stage = play(workload("Job", backoffLimit=0, **policy({"action": action, **EXIT_42}, {"action": "FailJob", **EXIT_42})))
    stage.pods("Failed", exit_code=42)
    assert ("Failed" in conditions(stage)) is counts
    assert status(stage).get("failed") == (1 if counts else None)
    assert len(alive(stage)) == (0 if counts else 1)


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        (EXIT_42, True),
        ({"onExitCodes": {"operator": "NotIn", "values": [42]}}, False),
        ({"onExitCodes": {"operator": "NotIn", "values": [1]}}, True),
        ({"onExitCodes": {"containerName": "main", "operator": "In", "values": [42]}}, True),
        ({"onExitCodes": {"containerName": "other", "operator": "In", "values": [42]}}, False),
        ({"onPodConditions": [{"type": "Ready", "status": "False"}]}, True),
        ({"onPodConditions": [{"type": "Ready"}]}, False),
        ({"onPodConditions": [{"type": "DisruptionTarget"}, {"type": "Ready", "status": "False"}]}, True),
    ],
)
def test_rules_look_at_exit_codes_and_conditions(rule: Object, fits: bool) -> None:
    stage = play(workload("Job", **policy({"action": "FailJob", **rule})))
    stage.pods("Failed", exit_code=42)
    assert ("Failed" in conditions(stage)) is fits


def test_an_index_may_fail_at_once_and_ignored_failures_leave_its_limit_alone() -> None:
    rules = {"action": "FailIndex", **EXIT_42}, {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}}
    stage = indexed(2, backoffLimitPerIndex=1, backoffLimit=2**31 - 1, **policy(*rules))
    for _ in range(3):
        end(stage, "Failed", 0, exit_code=7)
    assert annotations_of(stage.get(kinds.POD, by_index(stage)[0]))["batch.kubernetes.io/job-index-failure-count"] == "0"
    assert annotations_of(stage.get(kinds.POD, by_index(stage)[0]))["batch.kubernetes.io/job-index-ignored-failure-count"] == "3"
    end(stage, "Failed", 1, exit_code=42)
    assert (status(stage)["failedIndexes"], sorted(by_index(stage))) == ("1", [0])


def test_restarts_inside_pods_count_where_that_is_how_they_are_tried_again() -> None:
    for restarts, over in ((1, False), (2, True)):
        stage = play(workload("Job", backoffLimit=2, template=template(restartPolicy="OnFailure")))
        change = {"status": {"phase": "Running", "containerStatuses": [{"name": "main", "restartCount": restarts}]}}
        stage.change(kinds.POD, name_of(alive(stage)[0]), change)
        assert ("Failed" in conditions(stage)) is over


def test_an_indexed_job_that_is_made_smaller_or_larger_follows() -> None:
    stage = indexed(3)
    end(stage, "Succeeded", 2)
    stage.change(kinds.BATCH_JOB, "web", {"spec": {"parallelism": 2, "completions": 2}})
    assert (sorted(by_index(stage)), status(stage).get("succeeded")) == ([0, 1], None)
    stage.change(kinds.BATCH_JOB, "web", {"spec": {"parallelism": 4, "completions": 4}})
    assert sorted(by_index(stage)) == [0, 1, 3], "what was done once is done"


def test_two_pods_with_one_index_become_one() -> None:
    stage = indexed(2)
    twin = dict(stage.get(kinds.POD, by_index(stage)[1]))
    twin["metadata"] = {**twin["metadata"], "name": "twin", "uid": "uid-twin"}
    stage.add(twin)
    assert sorted(annotations_of(pod)[INDEX] for pod in alive(stage)) == ["0", "1"]


def test_success_ends_the_count_of_failures_that_delay_the_next_pod() -> None:
    stage = play(workload("Job", parallelism=1, completions=3))

    def ends(phase: str, at: str) -> None:
        state = {"terminated": {"exitCode": int(phase == "Failed"), "finishedAt": at}}
        change = {"status": {"phase": phase, "containerStatuses": [{"name": "main", "state": state}]}}
        stage.change(kinds.POD, name_of(alive(stage)[0]), change)

    ends("Failed", "2027-01-15T08:00:00Z")
    stage.wait(10)
    ends("Succeeded", "2027-01-15T08:00:10Z")
    ends("Failed", "2027-01-15T08:00:10.5Z")
    stage.wait(11)
    assert len(alive(stage)) == 1, "ten seconds, not twenty"


def test_a_pod_that_its_node_rejected_delays_the_next_one() -> None:
    """Otherwise a job that ignores such failures would make pods without end."""
    stage = play(workload("Job"))
    for pause in (10, 20):
        rejected = {"phase": "Failed", "reason": "OutOfcpu", "startTime": rfc3339(stage.now)}
        stage.change(kinds.POD, name_of(alive(stage)[0]), {"spec": {"nodeName": "n1"}, "status": rejected})
        stage.wait(pause - 1)
        assert alive(stage) == []
        stage.wait(1)
        assert len(alive(stage)) == 1


def test_a_suspended_jobs_pods_are_no_failures_and_its_deadline_begins_anew() -> None:
    stage = play(workload("Job", activeDeadlineSeconds=100, backoffLimit=0))
    stage.wait(90)
    stage.change(kinds.BATCH_JOB, "web", {"spec": {"suspend": True}})
    assert (status(stage).get("failed"), status(stage).get("startTime"), alive(stage)) == (None, None, [])
    stage.wait(90)
    stage.change(kinds.BATCH_JOB, "web", {"spec": {"suspend": False}})
    stage.wait(90)
    assert (conditions(stage), len(alive(stage))) == ({}, 1)
    stage.wait(10)
    assert conditions(stage)["Failed"] == "DeadlineExceeded"


def test_the_status_has_the_zeros_that_kubernetes_writes() -> None:
    stage = play(workload("Job"))
    assert {name: status(stage)[name] for name in ("active", "ready", "terminating")} == {"active": 1, "ready": 0, "terminating": 0}
    assert status(stage)["uncountedTerminatedPods"] == {} and "failed" not in status(stage)


@given(st.sets(st.integers(0, 60)))
def test_index_ranges_read_as_they_were_written(indexes: set[int]) -> None:
    assert index_set(as_ranges(indexes)) == indexes
    assert as_ranges({0, 1, 2, 5}) == "0-2,5"


# ---- each pod is counted once


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_was_deleted_after_it_ended_stays_counted(phase: str) -> None:
    stage = play(workload("Job", parallelism=1, completions=3))
    for _ in range(2):
        stage.pods(phase, *map(name_of, alive(stage)))
        for name in stage.names(kinds.POD):
            if status_of(stage.get(kinds.POD, name)).get("phase") == phase:
                stage.delete(kinds.POD, name)
        stage.wait(600)
    assert status(stage)[phase.lower()] == 2
    assert status(stage)["uncountedTerminatedPods"] == {}


@pytest.mark.parametrize(("policy", "failed"), [("TerminatingOrFailed", 1), ("Failed", None)])
def test_a_pod_that_is_deleted_before_it_ended_has_failed(policy: str, failed: int | None) -> None:
    stage = play(workload("Job", podReplacementPolicy=policy))
    start(stage)
    stage.delete(kinds.POD, name_of(alive(stage)[0]))
    assert status(stage).get("failed") == failed


def test_a_pod_that_ends_while_the_controller_is_away_is_counted_once() -> None:
    stage = play(workload("Job", parallelism=2, completions=4))
    one, other = map(name_of, alive(stage))
    stage.pods("Succeeded", one)
    listed = status(stage) | {"succeeded": None, "uncountedTerminatedPods": {"succeeded": [stage.get(kinds.POD, one)["metadata"]["uid"]]}}
    stage.change(kinds.BATCH_JOB, "web", {"status": listed})  # as it was between its two writes
    stage.pods("Succeeded", other)
    assert (status(stage)["succeeded"], status(stage)["uncountedTerminatedPods"]) == (2, {})


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
def test_pods_of_a_job_that_is_deleted_wait_for_nobody(propagation: str) -> None:
    stage = play(workload("Job", parallelism=2))
    stage.delete(kinds.BATCH_JOB, "web", propagation)
    assert not [pod for pod in stage.lister.all(kinds.POD) if pod["metadata"].get("finalizers")]


def test_a_pod_that_is_adopted_is_counted_and_one_that_is_let_go_waits_for_nobody() -> None:
    stage = play(workload("Job"))
    (mine,) = alive(stage)
    stage.change(kinds.POD, name_of(mine), {"metadata": {"labels": {"app": "other"}}})
    assert not stage.get(kinds.POD, name_of(mine))["metadata"].get("finalizers")
    stage.change(kinds.POD, name_of(mine), {"metadata": {"labels": {"app": "web"}}})
    assert stage.get(kinds.POD, name_of(mine))["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]
