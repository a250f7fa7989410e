"""What happens to a job's pods, and what its policies make of it."""

from __future__ import annotations

from pumice.api import annotations as key, kinds
from pumice.api.json_objects import labels_of, merged
from tests.controllers.job_stage import phase, play, running, status
from tests.controllers.stage import Stage, task, vcjob


def test_an_exit_code_chooses_the_action() -> None:
    stage = running(vcjob(tasks=[task(replicas=2, policies=[{"exitCode": 137, "action": "AbortJob"}])]))
    stage.pods("Failed", "train-w-0", exit_code=137)
    assert phase(stage) == "Aborting"
    stage.kubelet_ends()
    assert phase(stage) == "Aborted"


def test_the_exit_code_is_that_of_the_first_container() -> None:
    stage = running(vcjob(policies=[{"exitCode": 3, "action": "AbortJob"}, {"exitCode": 4, "action": "TerminateJob"}]))
    ends = [{"name": name, "state": {"terminated": {"exitCode": code}}} for name, code in (("main", 4), ("side", 3))]
    stage.change(kinds.POD, "train-w-0", {"status": {"phase": "Failed", "containerStatuses": ends}})
    assert phase(stage) in ("Terminating", "Terminated")


def test_an_evicted_pod_is_an_event_but_one_that_is_scaled_away_is_not() -> None:
    stage = running(vcjob(tasks=[task(replicas=3, minAvailable=1)], policies=[{"event": "PodEvicted", "action": "RestartJob"}]))
    smaller = task(replicas=2, minAvailable=1)
    stage.change(kinds.JOB, "train", {"spec": {"tasks": [smaller]}})
    stage.kubelet_ends()
    assert stage.names(kinds.POD) == ["train-w-0", "train-w-1"]
    assert phase(stage) == "Running"
    assert "retryCount" not in status(stage)
    stage.lose("train-w-0")
    assert status(stage)["retryCount"] == 1


def test_restart_task_leaves_the_other_tasks_alone() -> None:
    members = [task("ps", policies=[{"event": "PodFailed", "action": "RestartTask"}]), task("w", replicas=2)]
    stage = running(vcjob(tasks=members, policies=[{"event": "PodEvicted", "action": "TerminateJob"}]))
    stage.pods("Failed", "train-ps-0")
    stage.kubelet_ends()
    assert status(stage)["retryCount"] == 1
    assert stage.names(kinds.POD) == ["train-ps-0", "train-w-0", "train-w-1"]
    assert stage.get(kinds.POD, "train-ps-0").get("status") is None
    assert stage.names(kinds.POD_GROUP) == ["train-uid-train"]
    stage.pods("Running")
    assert phase(stage) == "Running"
    stage.assert_settled()


def test_a_pod_that_fails_while_it_is_ended_on_purpose_is_no_event() -> None:
    members = [task("w", replicas=2, policies=[{"event": "PodFailed", "action": "RestartTask"}])]
    stage = running(vcjob(tasks=members))
    stage.pods("Failed", "train-w-0")
    stage.pods("Failed", "train-w-1", exit_code=143)
    stage.kubelet_ends()
    assert status(stage)["retryCount"] == 1


def test_a_pod_that_is_preempted_is_one_event_when_it_is_gone() -> None:
    policies = [{"event": "PodFailed", "action": "TerminateJob"}, {"event": "PodEvicted", "action": "RestartJob"}]
    stage = running(vcjob(tasks=[task(replicas=2)], policies=policies))
    stage.delete(kinds.POD, "train-w-0")
    stage.pods("Failed", "train-w-0", exit_code=143)
    assert "retryCount" not in status(stage)
    stage.kubelet_ends()
    assert status(stage)["retryCount"] == 1


def test_restart_partition_takes_the_partition_of_the_failed_pod() -> None:
    split = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1}
    member = task(replicas=4, minAvailable=2, partitionPolicy=split, policies=[{"event": "PodFailed", "action": "RestartPartition"}])
    stage = running(vcjob(tasks=[member]))
    group = stage.get(kinds.POD_GROUP, "train-uid-train")
    assert group["spec"]["subGroupPolicy"] == [
        {
            "name": "w",
            "labelSelector": {"matchLabels": {key.TASK_SPEC: "w"}},
            "matchLabelKeys": [key.PARTITION_ID],
            "subGroupSize": 2,
            "minSubGroups": 1,
        }
    ]
    stage.pods("Failed", "train-w-2")
    gone = [pod["metadata"]["name"] for pod in stage.lister.all(kinds.POD) if pod["metadata"].get("deletionTimestamp")]
    assert gone == ["train-w-3"]
    assert labels_of(stage.get(kinds.POD, "train-w-2"))[key.PARTITION_ID] == "1"


def test_a_policy_with_a_timeout_waits_and_is_called_off_when_the_pod_starts() -> None:
    policy = {"event": "PodPending", "action": "AbortJob", "timeout": "5m"}
    stage = play(vcjob(tasks=[task(replicas=2)], policies=[policy]))
    stage.let_in()
    stage.wait(299)
    assert phase(stage) == "Pending"
    stage.wait(1)
    assert phase(stage) in ("Aborting", "Aborted")

    calm = play(vcjob(tasks=[task(replicas=2)], policies=[policy]))
    calm.let_in()
    calm.bind()
    calm.pods("Running")
    calm.wait(400)
    assert phase(calm) == "Running"


def test_a_pending_pod_without_a_timeout_is_no_reason_to_act() -> None:
    stage = play(vcjob(policies=[{"event": "*", "action": "AbortJob"}]))
    stage.let_in()
    assert phase(stage) == "Pending"


def test_a_completed_task_completes_the_job() -> None:
    members = [task("master", policies=[{"event": "TaskCompleted", "action": "CompleteJob"}]), task("w", replicas=2)]
    stage = running(vcjob(tasks=members))
    stage.pods("Succeeded", "train-master-0")
    assert phase(stage) == "Completing"
    stage.kubelet_ends()
    assert phase(stage) == "Completed"


def restarted(stage: Stage, pod: str, count: int) -> None:
    stage.change(kinds.POD, pod, {"status": {"phase": "Pending", "containerStatuses": [{"name": "main", "restartCount": count}]}})


def test_a_task_whose_pods_restart_too_often_has_failed() -> None:
    stage = play(vcjob(tasks=[task(replicas=2, maxRetry=3)], policies=[{"event": "TaskFailed", "action": "TerminateJob"}]))
    stage.let_in()
    restarted(stage, "train-w-0", 1)
    restarted(stage, "train-w-1", 1)
    assert phase(stage) == "Pending"
    restarted(stage, "train-w-0", 2)
    assert phase(stage) in ("Terminating", "Terminated")


def test_containers_that_crash_again_and_again_fail_their_task() -> None:
    stage = running(vcjob(tasks=[task(maxRetry=3)], policies=[{"event": "TaskFailed", "action": "TerminateJob"}]))
    for count in (2, 3):
        assert phase(stage) == "Running"
        stage.change(kinds.POD, "train-w-0", {"status": {"containerStatuses": [{"name": "main", "restartCount": count}]}})
    assert phase(stage) == "Terminating"


def test_an_evicted_pod_is_restarted_and_its_successor_left_alone() -> None:
    stage = running(vcjob(tasks=[task(replicas=2, policies=[{"event": "PodEvicted", "action": "RestartPod"}])]))
    stage.lose("train-w-0")
    assert status(stage)["retryCount"] == 1
    assert [bool(pod["metadata"].get("deletionTimestamp")) for pod in stage.lister.all(kinds.POD)] == [False, False]
    stage.bind()
    stage.pods("Running")
    assert phase(stage) == "Running"


def test_a_group_of_something_else_is_none_of_the_jobs_business() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "train", "uid": "x", "controller": True}
    meta = {"name": "podgroup-x", "namespace": "default", "ownerReferences": [owner]}
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": meta, "spec": {}}
    stage = running(vcjob(policies=[{"event": "Unknown", "action": "AbortJob"}]), group)
    stage.change(kinds.POD_GROUP, "podgroup-x", {"status": {"phase": "Unknown"}})
    assert phase(stage) == "Running"


def test_an_event_of_the_whole_job_restarts_no_task_of_it() -> None:
    stage = running(vcjob(tasks=[task(replicas=2)], policies=[{"event": "Unknown", "action": "RestartTask"}]))
    stage.change(kinds.POD_GROUP, "train-uid-train", {"status": {"phase": "Unknown"}})
    assert (phase(stage), status(stage).get("retryCount")) == ("Running", None)


def test_a_task_that_may_restart_for_ever_never_fails_by_it() -> None:
    stage = play(vcjob(tasks=[task(maxRetry=-1)], policies=[{"event": "TaskFailed", "action": "TerminateJob"}]))
    stage.let_in()
    restarted(stage, "train-w-0", 50)
    assert phase(stage) == "Pending"


def test_a_group_that_lost_members_is_an_event() -> None:
    at_once = running(vcjob(tasks=[task(replicas=2)], policies=[{"event": "Unknown", "action": "RestartJob"}]))
    at_once.change(kinds.POD_GROUP, "train-uid-train", {"status": {"phase": "Unknown"}})
    assert status(at_once)["retryCount"] == 1


def test_a_group_that_lost_members_while_no_controller_ran_is_an_event() -> None:
    stage = running(vcjob(tasks=[task(replicas=2)], policies=[{"event": "Unknown", "action": "RestartJob"}]))
    group = stage.get(kinds.POD_GROUP, "train-uid-train")
    stage.lister.put(merged(group, {"status": {"phase": "Unknown"}}))
    again = Stage(*(each for kind in stage.lister.kinds() for each in stage.lister.all(kind)), now=stage.now)
    assert status(again)["retryCount"] == 1
    stage.lister.put(merged(group, {"metadata": {"deletionTimestamp": "2027-01-15T08:00:00Z", "finalizers": ["example.org/f"]}}))
    again = Stage(*(each for kind in stage.lister.kinds() for each in stage.lister.all(kind)), now=stage.now)
    assert "retryCount" not in status(again), "that of an earlier attempt"


def test_a_delayed_action_is_called_off_when_its_cause_is_gone() -> None:
    policy = {"event": "Unknown", "action": "RestartJob", "timeout": "60s"}
    for recovers, restarts in ((True, None), (False, 1)):
        stage = running(vcjob(tasks=[task(replicas=2)], policies=[policy]))
        stage.change(kinds.POD_GROUP, "train-uid-train", {"status": {"phase": "Unknown"}})
        stage.wait(30)
        if recovers:
            stage.change(kinds.POD_GROUP, "train-uid-train", {"status": {"phase": "Running"}})
        stage.wait(30)
        assert status(stage).get("retryCount") == restarts


def test_an_evicted_pod_that_runs_again_in_time_restarts_nothing() -> None:
    policy = {"event": "PodEvicted", "action": "RestartJob", "timeout": "60s"}
    for comes_back, restarts in ((True, None), (False, 1)):
        stage = running(vcjob(tasks=[task(replicas=2)], policies=[policy]))
        stage.lose("train-w-0")
        assert len(stage.names(kinds.POD)) == 2
        if comes_back:
            stage.bind("train-w-0")
            stage.pods("Running", "train-w-0")
        stage.wait(60)
        assert status(stage).get("retryCount") == restarts


def test_pods_that_fail_or_are_lost_together_are_restarted_once() -> None:
    for event in ("PodFailed", "PodEvicted"):
        policies = [{"event": event, "action": "RestartTask", "timeout": "60s"}]
        stage = running(vcjob(tasks=[task(replicas=3, policies=policies), task("other", 3)], minAvailable=1))
        for name in ("train-w-0", "train-w-1"):
            if event == "PodFailed":
                stage.pods("Failed", name)
            else:
                stage.lose(name)
            stage.wait(1)
        stage.bind()
        for _ in range(4):
            stage.wait(30)
        assert status(stage)["retryCount"] == 1, event


def test_pods_that_wait_too_long_together_are_restarted_once() -> None:
    policies = [{"event": "PodPending", "action": "RestartTask", "timeout": "60s"}]
    stage = play(vcjob(tasks=[task(replicas=2, policies=policies), task("other", 2)], minAvailable=1))
    stage.let_in()
    stage.bind()
    stage.wait(60)
    assert status(stage)["retryCount"] == 1
    stage.wait(10)
    stage.kubelet_ends()
    assert (status(stage)["retryCount"], len(stage.names(kinds.POD))) == (1, 4)
    stage.wait(60)
    assert status(stage)["retryCount"] == 2, "the new pods have waited too long as well"
