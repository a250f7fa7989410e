"""Kubernetes' own Jobs: how many pods run, what failures mean, how they end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pumice.api.integers import as_ranges, index_set
from pumice.controllers import kinds
from pumice.controllers.objects import annotations_of, condition, labels_of, name_of
from tests.controllers.playing import alive, play, workload


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


@given(st.sets(st.integers(0, 60)))
def test_index_ranges_read_as_they_were_written(indexes: set[int]) -> None:
    assert index_set(as_ranges(indexes)) == indexes
    assert as_ranges({0, 1, 2, 5}) == "0-2,5"
