"""The objects that a job is made of: pods, their group, volumes."""

from __future__ import annotations

from pumice.api import annotations as key, kinds
from pumice.api.json_objects import annotations_of, labels_of
from tests.controllers.job_stage import play, running, status
from tests.controllers.stage import Stage, queue, task, vcjob


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


def test_described_volumes_are_claimed_and_mounted_and_named_ones_must_exist() -> None:
    described = {"mountPath": "/data", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}
    stage = play(vcjob(volumes=[described, {"mountPath": "/in", "volumeClaimName": "input"}], plugins={"env": []}))
    assert status(stage)["state"]["reason"] == "PVCError" and "default/input" in status(stage)["state"]["message"]
    assert [event.reason for event in stage.lister.emitted] == ["PVCError"]
    assert stage.names(kinds.POD_GROUP) == []
    stage.add({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "input", "namespace": "default"}})
    assert "message" not in status(stage)["state"]
    stage.let_in()
    claim = next(name for name in stage.names(kinds.CLAIM) if name != "input")
    assert claim.startswith("train-pvc-")
    named = [{**described, "volumeClaimName": claim}, {"mountPath": "/in", "volumeClaimName": "input"}]
    assert stage.get(kinds.JOB, "train")["spec"]["volumes"] == named
    assert mounted(stage, "train-w-0") == {"/data": claim, "/in": "input"}
    assert status(stage)["controlledResources"] == {f"volume-pvc-{claim}": claim, "volume-pvc-input": "input", "plugin-env": "env"}
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


def test_jobs_for_queues_of_other_clusters_are_marked_for_forwarding() -> None:
    stage = Stage(queue(extendClusters=[{"name": "other"}]), vcjob())
    assert annotations_of(stage.get(kinds.JOB, "train"))[key.JOB_FORWARDING] == "true"
    stage.let_in()
    assert labels_of(stage.get(kinds.POD, "train-w-0"))[key.JOB_FORWARDING] == "true"


def test_a_group_that_is_deleted_by_somebody_is_made_again() -> None:
    stage = running(vcjob(tasks=[task(replicas=2)]))
    stage.delete(kinds.POD_GROUP, "train-uid-train")
    assert stage.names(kinds.POD_GROUP) == ["train-uid-train"]


def test_no_pods_are_made_for_a_group_that_is_on_its_way_out() -> None:
    stage = running(vcjob(tasks=[task(replicas=2)]))
    stage.change(kinds.POD_GROUP, "train-uid-train", {"metadata": {"deletionTimestamp": "2027-01-15T08:00:00Z"}})
    stage.lose("train-w-0")
    assert stage.names(kinds.POD) == ["train-w-1"]


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


def test_a_job_says_which_queue_it_misses_and_starts_when_the_queue_comes() -> None:
    stage = Stage(vcjob(queue="gold"))
    assert status(stage)["state"]["message"] == 'queue "gold" does not exist; create it or name another'
    stage.assert_settled()
    stage.add(queue("gold"))
    assert stage.names(kinds.POD_GROUP) == ["train-uid-train"]
    assert "message" not in status(stage)["state"]
