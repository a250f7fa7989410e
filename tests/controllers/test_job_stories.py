"""Stories of Volcano jobs, with the scheduler, the kubelet and the user played by hand."""

from __future__ import annotations

from pumice.controllers import annotations as key
from pumice.controllers import kinds
from pumice.controllers.controller import GivesUp
from pumice.controllers.job.controller import Jobs
from pumice.controllers.job.request import Request
from pumice.controllers.objects import Object, annotations_of, labels_of
from tests.controllers.stage import Stage, fixed_key_pair, queue, task, vcjob


def play(job: Object, *others: Object) -> Stage:
    return Stage(queue(), job, *others)


def phase(stage: Stage, name: str = "train") -> str:
    return str(stage.get(kinds.JOB, name)["status"]["state"]["phase"])


def status(stage: Stage, name: str = "train") -> Object:
    found: Object = stage.get(kinds.JOB, name)["status"]
    return found


def running(job: Object, *others: Object) -> Stage:
    stage = play(job, *others)
    stage.let_in()
    stage.bind()
    stage.pods("Running")
    return stage


def test_no_pods_are_made_before_the_group_is_let_in() -> None:
    stage = play(vcjob(tasks=[task(replicas=3)]))
    assert stage.names(kinds.POD_GROUP) == ["train-uid-train"]
    assert stage.names(kinds.POD) == []
    stage.let_in()
    assert stage.names(kinds.POD) == ["train-w-0", "train-w-1", "train-w-2"]
    stage.assert_settled()


def test_a_job_runs_and_completes() -> None:
    stage = running(vcjob(tasks=[task(replicas=2)]))
    assert phase(stage) == "Running"
    assert status(stage)["running"] == 2
    stage.pods("Succeeded")
    assert phase(stage) == "Completed"
    assert status(stage)["taskStatusCount"] == {"w": {"phase": {"Succeeded": 2}}}
    assert [entry["status"] for entry in status(stage)["conditions"]] == ["Pending", "Running", "Completed"]
    assert stage.names(kinds.POD_GROUP) == []
    stage.assert_settled()


def test_a_pod_carries_its_place_in_the_job() -> None:
    stage = play(vcjob(tasks=[task(replicas=2)], priorityClassName="high"))
    stage.let_in()
    pod = stage.get(kinds.POD, "train-w-1")
    assert annotations_of(pod)[key.GROUP_NAME] == "train-uid-train"
    assert annotations_of(pod)[key.TEMPLATE_UID] == "train-w"
    assert annotations_of(pod)[key.JOB_VERSION] == "0"
    assert labels_of(pod)[key.TASK_INDEX] == "1"
    assert labels_of(pod)[key.JOB_NAMESPACE] == "default"
    assert pod["spec"]["priorityClassName"] == "high"
    assert pod["spec"]["schedulerName"] == "volcano"
    assert pod["metadata"]["ownerReferences"][0]["uid"] == "uid-train"


def test_everything_that_is_written_on_a_pod() -> None:
    inherited = {key.PREEMPTABLE: "true", key.COOLDOWN_TIME: "600s"}
    notes = {**inherited, key.REVOCABLE_ZONE: "*", key.JDB_MAX_UNAVAILABLE: "1"}
    member = task("w", 3, template={"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": {"schedulerName": "mine"}})
    job = vcjob(tasks=[member | {"topologyPolicy": "restricted", "partitionPolicy": {"totalPartitions": 3, "partitionSize": 1}}])
    job["metadata"] |= {"annotations": {**notes, "other": "x"}, "labels": {**inherited, "other": "x"}}
    job["status"] = {"state": {"phase": "Pending"}, "version": 4, "retryCount": 2}
    stage = play(job)
    stage.let_in()
    meta = stage.get(kinds.POD, "train-w-2")["metadata"]
    place = {key.JOB_NAME: "train", key.JOB_QUEUE: "default", key.TASK_SPEC: "w", key.TASK_INDEX: "2"}
    assert meta["labels"] == {"a": "b", **inherited, **place, key.JOB_NAMESPACE: "default", key.PARTITION_ID: "2"}
    group = {key.GROUP_NAME: "train-uid-train", key.TEMPLATE_UID: "train-w", key.NUMA_POLICY: "restricted"}
    assert meta["annotations"] == {"c": "d", **notes, **place, **group, key.JOB_VERSION: "4", key.JOB_RETRY_COUNT: "2"}
    assert stage.get(kinds.POD, "train-w-2")["spec"]["schedulerName"] == "mine"


def test_a_group_of_an_older_version_is_kept() -> None:
    job = vcjob(tasks=[task(replicas=2)], priorityClassName="high")
    owner = {"apiVersion": job["apiVersion"], "kind": "Job", "name": "train", "uid": "uid-train", "controller": True}
    meta = {"name": "train", "namespace": "default", "ownerReferences": [owner]}
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": meta, "spec": {"minMember": 1}}
    stage = play(job, group)
    assert stage.names(kinds.POD_GROUP) == ["train"]
    assert (stage.get(kinds.POD_GROUP, "train")["spec"]["minMember"], stage.get(kinds.POD_GROUP, "train")["spec"]["priorityClassName"]) == (
        2,
        "high",
    )
    stage.let_in()
    assert annotations_of(stage.get(kinds.POD, "train-w-0"))[key.GROUP_NAME] == "train"
    stage.change(kinds.JOB, "train", {"spec": {"priorityClassName": None}})
    assert "priorityClassName" not in stage.get(kinds.POD_GROUP, "train")["spec"]
    stage.assert_settled()


def test_what_is_done_to_a_job_is_told_in_volcanos_words() -> None:
    stage = running(vcjob())
    stage.command("AbortJob", stage.get(kinds.JOB, "train"))
    told = [(event.type, event.reason, event.message) for event in stage.world.emitted]
    text = "Start to execute command AbortJob, and clean it up to make sure executed not more than once."
    assert told == [("Normal", "CommandIssued", text), ("Normal", "ExecuteAction", "Start to execute action AbortJob")]


def test_a_failed_pod_restarts_the_job_as_often_as_allowed_and_then_fails_it() -> None:
    stage = running(vcjob(tasks=[task(replicas=2)], maxRetry=3, policies=[{"event": "PodFailed", "action": "RestartJob"}]))
    attempts = 1
    while phase(stage) == "Running":
        stage.pods("Failed", "train-w-0", exit_code=1)
        stage.kubelet_ends()
        if phase(stage) == "Pending":
            assert stage.names(kinds.POD) == []
            attempts += 1
            stage.let_in()
            stage.bind()
            stage.pods("Running")
    assert attempts == 3
    assert phase(stage) == "Failed"
    assert status(stage)["retryCount"] == 3
    assert stage.get(kinds.POD, "train-w-0")["status"]["phase"] == "Failed"
    stage.assert_settled()


def test_two_failures_of_one_attempt_restart_a_job_once() -> None:
    stage = running(vcjob(tasks=[task(replicas=3)], policies=[{"event": "PodFailed", "action": "RestartJob"}]))
    stage.pods("Failed", "train-w-0", "train-w-1")
    assert status(stage)["retryCount"] == 1


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


def test_a_user_suspends_and_resumes_a_job() -> None:
    stage = running(vcjob(tasks=[task(replicas=2)]))
    stage.command("AbortJob", stage.get(kinds.JOB, "train"))
    assert stage.names(kinds.COMMAND) == []
    stage.kubelet_ends()
    assert phase(stage) == "Aborted"
    assert stage.names(kinds.POD_GROUP) == []
    stage.assert_settled()
    stage.command("ResumeJob", stage.get(kinds.JOB, "train"))
    assert phase(stage) == "Pending"
    stage.let_in()
    assert len(stage.names(kinds.POD)) == 2
    assert annotations_of(stage.get(kinds.POD, "train-w-0"))[key.JOB_VERSION] != "0"


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
    gone = [pod["metadata"]["name"] for pod in stage.world.all(kinds.POD) if pod["metadata"].get("deletionTimestamp")]
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


def test_a_task_waits_for_the_tasks_it_depends_on() -> None:
    members = [task("ps"), task("w", replicas=2, dependsOn={"name": ["ps"]})]
    stage = play(vcjob(tasks=members, minAvailable=1))
    stage.let_in()
    assert stage.names(kinds.POD) == ["train-ps-0"]
    stage.bind()
    stage.pods("Running")
    assert stage.names(kinds.POD) == ["train-ps-0", "train-w-0", "train-w-1"]


def test_with_any_one_ready_dependency_is_enough() -> None:
    members = [task("a"), task("b"), task("w", dependsOn={"name": ["a", "b"], "iteration": "any"})]
    stage = play(vcjob(tasks=members, minAvailable=1))
    stage.let_in()
    assert "train-w-0" not in stage.names(kinds.POD)
    stage.bind("train-b-0")
    stage.pods("Succeeded", "train-b-0")
    assert "train-w-0" in stage.names(kinds.POD)


def test_a_dependency_is_ready_once_its_minimum_has_ready_containers_and_at_once_without_one() -> None:
    several = [task("ps", 2, minAvailable=1), {**task("x"), "minAvailable": None}]
    stage = play(vcjob(tasks=[*several, task("w", dependsOn={"name": ["ps"]}), task("y", dependsOn={"name": ["x"]})], minAvailable=1))
    stage.let_in()
    assert stage.names(kinds.POD) == ["train-ps-0", "train-ps-1", "train-x-0", "train-y-0"]
    stage.bind()
    half = [{"name": "main", "ready": True}, {"name": "side", "ready": False}]
    stage.change(kinds.POD, "train-ps-0", {"status": {"phase": "Running", "containerStatuses": half}})
    assert "train-w-0" not in stage.names(kinds.POD)
    stage.pods("Running", "train-ps-1")
    assert "train-w-0" in stage.names(kinds.POD)


def test_enough_successes_complete_a_job_and_end_its_other_pods() -> None:
    stage = running(vcjob(tasks=[task(replicas=3)], minSuccess=1))
    stage.pods("Succeeded", "train-w-0")
    assert phase(stage) == "Completed"
    stage.kubelet_ends()
    assert stage.names(kinds.POD) == ["train-w-0"]
    stage.assert_settled()


def test_a_completed_task_completes_the_job() -> None:
    members = [task("master", policies=[{"event": "TaskCompleted", "action": "CompleteJob"}]), task("w", replicas=2)]
    stage = running(vcjob(tasks=members))
    stage.pods("Succeeded", "train-master-0")
    assert phase(stage) == "Completing"
    stage.kubelet_ends()
    assert phase(stage) == "Completed"


def test_a_job_says_which_queue_it_misses_and_starts_when_the_queue_comes() -> None:
    stage = Stage(vcjob(queue="gold"))
    assert status(stage)["state"]["message"] == 'queue "gold" does not exist; create it or name another'
    stage.assert_settled()
    stage.add(queue("gold"))
    assert stage.names(kinds.POD_GROUP) == ["train-uid-train"]
    assert "message" not in status(stage)["state"]


def test_described_volumes_are_claimed_and_mounted_and_named_ones_must_exist() -> None:
    described = {"mountPath": "/data", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}
    stage = play(vcjob(volumes=[described, {"mountPath": "/in", "volumeClaimName": "input"}]))
    assert "default/input" in status(stage)["state"]["message"]
    assert stage.names(kinds.POD_GROUP) == []
    stage.add({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "input", "namespace": "default"}})
    assert "message" not in status(stage)["state"]
    stage.let_in()
    claim = next(name for name in stage.names(kinds.CLAIM) if name != "input")
    assert claim.startswith("train-pvc-")
    named = [{**described, "volumeClaimName": claim}, {"mountPath": "/in", "volumeClaimName": "input"}]
    assert stage.get(kinds.JOB, "train")["spec"]["volumes"] == named
    assert mounted(stage, "train-w-0") == {"/data": claim, "/in": "input"}
    assert status(stage)["controlledResources"] == {f"volume-pvc-{claim}": claim, "volume-pvc-input": "input"}
    stage.assert_settled()


def mounted(stage: Stage, pod: str) -> dict[str, str]:
    """Claims by the path where the pod's first container finds them."""
    spec = stage.get(kinds.POD, pod)["spec"]
    claims = {volume["name"]: volume["persistentVolumeClaim"]["claimName"] for volume in spec["volumes"]}
    assert len(claims) == len(spec["volumes"])
    return {mount["mountPath"]: claims[mount["name"]] for mount in spec["containers"][0]["volumeMounts"]}


def test_a_claim_may_appear_at_two_places_and_have_a_name_that_no_volume_may_have() -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data.of.red", "namespace": "default"}}
    volumes = [{"mountPath": path, "volumeClaimName": "data.of.red"} for path in ("/in", "/out")]
    stage = play(vcjob(volumes=volumes), claim)
    stage.let_in()
    assert mounted(stage, "train-w-0") == {"/in": "data.of.red", "/out": "data.of.red"}
    assert all("." not in volume["name"] for volume in stage.get(kinds.POD, "train-w-0")["spec"]["volumes"])


def test_a_request_that_cannot_be_carried_out_ends_the_job() -> None:
    jobs = Jobs(fixed_key_pair)
    stage = running(vcjob())
    assert isinstance(jobs, GivesUp) and jobs.max_failures == 15
    stage.loop.queue.add(jobs, jobs.gave_up(Request("default", "train")))
    stage.settle()
    stage.kubelet_ends()
    assert phase(stage) == "Terminated"


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


def test_a_job_that_is_not_placed_says_why_until_it_is() -> None:
    stage = play(vcjob())
    why = "1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable"
    condition = {"type": "Unschedulable", "status": "True", "message": why}
    stage.change(kinds.POD_GROUP, "train-uid-train", {"status": {"phase": "Inqueue", "conditions": [condition]}})
    told = f"PodGroup default:train unschedule,reason: {why}"
    assert (status(stage)["state"]["reason"], status(stage)["state"]["message"]) == ("PodGroupPending", told)
    assert [event.message for event in stage.world.emitted if event.reason == "PodGroupPending"] == [told]
    stage.assert_settled()
    stage.change(kinds.POD_GROUP, "train-uid-train", {"status": {"phase": "Running"}})
    assert "message" not in status(stage)["state"]
    stage.assert_settled()


def test_an_evicted_pod_is_restarted_and_its_successor_left_alone() -> None:
    stage = running(vcjob(tasks=[task(replicas=2, policies=[{"event": "PodEvicted", "action": "RestartPod"}])]))
    stage.lose("train-w-0")
    assert status(stage)["retryCount"] == 1
    assert [bool(pod["metadata"].get("deletionTimestamp")) for pod in stage.world.all(kinds.POD)] == [False, False]
    stage.bind()
    stage.pods("Running")
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


def test_jobs_for_queues_of_other_clusters_are_marked_for_forwarding() -> None:
    stage = Stage(queue(extendClusters=[{"name": "other"}]), vcjob())
    assert annotations_of(stage.get(kinds.JOB, "train"))[key.JOB_FORWARDING] == "true"
    stage.let_in()
    assert labels_of(stage.get(kinds.POD, "train-w-0"))[key.JOB_FORWARDING] == "true"


def test_a_group_that_is_deleted_by_somebody_is_made_again() -> None:
    stage = running(vcjob(tasks=[task(replicas=2)]))
    stage.delete(kinds.POD_GROUP, "train-uid-train")
    assert stage.names(kinds.POD_GROUP) == ["train-uid-train"]


def test_numa_policy_and_budgets_reach_the_pods() -> None:
    job = vcjob(tasks=[task(topologyPolicy="best-effort")])
    job["metadata"] |= {"annotations": {key.JDB_MIN_AVAILABLE: "1"}, "labels": {key.PREEMPTABLE: "true"}}
    stage = play(job)
    stage.let_in()
    pod = stage.get(kinds.POD, "train-w-0")
    assert annotations_of(pod)[key.NUMA_POLICY] == "best-effort"
    assert annotations_of(pod)[key.JDB_MIN_AVAILABLE] == "1"
    assert labels_of(pod)[key.PREEMPTABLE] == "true"
    group = stage.get(kinds.POD_GROUP, "train-uid-train")
    assert annotations_of(group)[key.JDB_MIN_AVAILABLE] == "1" and labels_of(group)[key.PREEMPTABLE] == "true"


def test_a_task_that_is_scaled_up_gets_its_pods_and_a_larger_group() -> None:
    stage = running(vcjob(tasks=[task(replicas=2)]))
    stage.change(kinds.JOB, "train", {"spec": {"minAvailable": 3, "tasks": [task(replicas=3)]}})
    assert stage.names(kinds.POD) == ["train-w-0", "train-w-1", "train-w-2"]
    group = stage.get(kinds.POD_GROUP, "train-uid-train")["spec"]
    assert (group["minMember"], group["minTaskMember"], group["minResources"]["cpu"]) == (3, {"w": 3}, "3")
