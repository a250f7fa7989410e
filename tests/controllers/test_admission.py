"""What admission refuses and how it says so, and what it fills in."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api import annotations as key
from pumice.api.json_objects import Object, copied, merged
from pumice.controllers.admission import CREATE, DELETE, UPDATE, Settings, mutate, validate
from pumice.controllers.admission.semantic_equality import meaning
from pumice.controllers.in_memory import Memory
from tests.controllers.stage import plain_pod, queue, table, task, vcjob

GROUPS = {
    "PodGroup": "scheduling.volcano.sh/v1beta1",
    "Pod": "v1",
    "HyperNode": "topology.volcano.sh/v1alpha1",
    "JobFlow": "flow.volcano.sh/v1alpha1",
    "CronJob": "batch.volcano.sh/v1alpha1",
}


def cpu(capability: str, deserved: str, guarantee: str) -> Object:
    return {"capability": {"cpu": capability}, "deserved": {"cpu": deserved}, "guarantee": {"resource": {"cpu": guarantee}}}


def cluster() -> Memory:
    queues = [queue("root"), queue("default"), queue("team", **cpu("10", "8", "4"))]
    del queues[0]["spec"]["parent"]
    queues += [queue("team-a", parent="team", **cpu("4", "3", "2")), queue("team-b", parent="team", **cpu("4", "3", "1"))]
    queues += [queue(f"d{depth}", parent=f"d{depth - 1}" if depth > 1 else "root") for depth in range(1, 6)]
    busy, shut, fresh, hier = queue("busy"), queue("shut", parent="none"), queue("fresh", parent="none"), queue("hier")
    busy["status"]["allocated"] = {"cpu": "3", "pods": "3"}
    queues[2]["status"]["allocated"] = {"pods": "2"}
    shut["status"]["state"] = "Closed"
    del fresh["status"]
    hier["metadata"]["annotations"] = {key.HIERARCHY: "root/sci/dev", key.HIERARCHY_WEIGHTS: "1/2/3"}
    return Memory([*queues, busy, shut, fresh, hier])


def job_of(row: dict[str, Any]) -> Object:
    first = merged(task("w", 2, row.get("cpu", "1")), row.get("task", {}))
    more = [{**task(each["name"]), **each} for each in row.get("more_tasks", ())]
    job = vcjob(row.get("name", "train"), tasks=[first, *more], minAvailable=2)
    return merged(job, {"spec": row.get("spec", {})})  # type: ignore[no-any-return]


def texts(problems: list[Any]) -> list[str]:
    return [str(problem) for problem in problems]


@pytest.mark.parametrize("row", table("admission_job.yaml"), ids=lambda row: row["case"])
def test_new_jobs(row: dict[str, Any]) -> None:
    assert texts(validate(CREATE, job_of(row), None, cluster())) == row.get("problems", [])


@pytest.mark.parametrize("row", table("admission_job_update.yaml"), ids=lambda row: row["case"])
def test_changed_jobs(row: dict[str, Any]) -> None:
    assert texts(validate(UPDATE, job_of(row), job_of({}), cluster())) == row.get("problems", [])


@pytest.mark.parametrize(
    ("written", "rewritten", "same"),
    [
        ({"timeout": "10m"}, {"timeout": "10m0s"}, True),
        ({"timeout": "10m"}, {"timeout": "20m"}, False),
        ({"resources": {"limits": {"memory": "1Gi"}}}, {"resources": {"limits": {"memory": "1024Mi"}, "requests": {}}}, True),
        ({"env": [{"name": "A", "value": "1"}]}, {"env": [{"name": "A", "value": "1000m"}]}, False),
        ({"requests": {"cpu": "one"}}, {"requests": {"cpu": "one"}}, True),
    ],
)
def test_what_means_the_same_is_no_change(written: Object, rewritten: Object, same: bool) -> None:
    assert (meaning(written) == meaning(rewritten)) is same


@pytest.mark.parametrize("row", table("admission_queue.yaml"), ids=lambda row: row["case"])
def test_queues(row: dict[str, Any]) -> None:
    lister = cluster()
    old = lister.get("Queue.scheduling.volcano.sh", "", row["name"])
    settings = Settings(**row.get("settings", {}))
    if row.get("delete"):
        assert texts(validate(DELETE, None, old, lister, settings)) == row.get("problems", [])
        return
    new = merged(old or queue(row["name"]), {"spec": row.get("spec", {})})
    if "annotations" in row:
        path, weights = row["annotations"]
        new["metadata"]["annotations"] = {key.HIERARCHY: path, key.HIERARCHY_WEIGHTS: weights}
    if "state" in row:
        new["status"] = {"state": row["state"]}
    operation = UPDATE if old else CREATE
    assert texts(validate(operation, new, old, lister, settings)) == row.get("problems", [])


@pytest.mark.parametrize("row", table("admission_others.yaml"), ids=lambda row: row["case"])
def test_other_kinds(row: dict[str, Any]) -> None:
    spec = row.get("spec", {})
    if row["kind"] == "Pod":
        spec = {"schedulerName": "volcano", **spec}
    if row["kind"] == "CronJob":
        spec = merged({"jobTemplate": {"spec": vcjob()["spec"]}}, spec)
    meta = {"name": row.get("name", "x"), "namespace": "default", "annotations": row.get("annotations", {})}
    new = {"apiVersion": GROUPS[row["kind"]], "kind": row["kind"], "metadata": meta, "spec": spec}
    assert texts(validate(CREATE, new, None, cluster())) == row.get("problems", [])


def test_a_file_may_be_applied_again() -> None:
    """Lists are applied whole, so the tasks come without the defaults that were written into them."""
    pod = {"containers": [{"name": "a", "image": "x"}], "hostNetwork": True}
    bare = {**vcjob(), "spec": {"tasks": [{"replicas": 2, "template": {"spec": pod}}], "plugins": {"mpi": ["--master=m"]}}}
    stored = mutate(CREATE, bare, cluster())
    assert stored != bare and validate(UPDATE, bare, stored, cluster()) == []
    other = merged(bare, {"spec": {"queue": "team-a"}})
    assert "spec.queue: job updates may not change fields" in str(validate(UPDATE, other, stored, cluster())[0])


def test_the_claims_of_a_job_may_be_named_later_but_not_chosen_anew() -> None:
    claim = {"accessModes": ["ReadWriteOnce"]}
    old = vcjob(volumes=[{"mountPath": "/made", "volumeClaim": claim}, {"mountPath": "/own", "volumeClaimName": "own"}])
    named = merged(old, {"spec": {"volumes": [{**old["spec"]["volumes"][0], "volumeClaimName": "train-pvc-x"}, old["spec"]["volumes"][1]]}})
    assert validate(UPDATE, named, old, cluster()) == validate(UPDATE, old, named, cluster()) == []
    other = merged(old, {"spec": {"volumes": [old["spec"]["volumes"][0], {"mountPath": "/own", "volumeClaimName": "other"}]}})
    assert "spec.volumes: job updates may not change fields" in str(validate(UPDATE, other, old, cluster())[0])


def test_a_job_is_stored_with_its_defaults() -> None:
    pod = {"containers": [{"name": "a", "image": "x"}], "hostNetwork": True}
    split = {"totalPartitions": 3, "partitionSize": 2, "minPartitions": 2}
    bare = {
        **vcjob(),
        "spec": {"tasks": [{"replicas": 2, "template": {"spec": pod}}, {"name": "b", "replicas": 6, "partitionPolicy": split}]},
    }
    bare["spec"]["plugins"] = {"mpi": None}
    before = copied(bare)
    spec = mutate(CREATE, bare, cluster())["spec"]
    assert bare == before
    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"], spec["minAvailable"]) == ("default", "volcano", 3, 6)
    assert [(each["name"], each["minAvailable"], each["maxRetry"]) for each in spec["tasks"]] == [("default0", 2, 3), ("b", 4, 3)]
    assert spec["tasks"][0]["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert spec["plugins"] == {"mpi": [], "svc": [], "ssh": []}
    assert mutate(UPDATE, bare, cluster()) is bare


def test_what_a_job_states_stays() -> None:
    stated = vcjob(tasks=[task("w", 3, minAvailable=1, maxRetry=7)], minAvailable=1, maxRetry=5, queue="team-a", schedulerName="mine")
    assert mutate(CREATE, stated, cluster())["spec"] == stated["spec"]


def test_a_cron_job_is_stored_with_its_defaults() -> None:
    meta = {"name": "c", "namespace": "default"}
    bare = {"apiVersion": GROUPS["CronJob"], "kind": "CronJob", "metadata": meta, "spec": {"schedule": "@daily", "suspend": None}}
    assert mutate(CREATE, bare, cluster())["spec"] == {
        "schedule": "@daily",
        "suspend": False,
        "concurrencyPolicy": "Allow",
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    }


def test_kinds_without_rules_pass() -> None:
    pod = plain_pod()
    assert validate(UPDATE, pod, pod, cluster()) == validate(CREATE, {**pod, "kind": "Other"}, None, cluster()) == []


def test_what_has_become_wrong_may_lose_its_finalizers() -> None:
    lost = queue("lost", parent="nowhere")
    lost["metadata"]["finalizers"] = ["foregroundDeletion"]
    assert validate(UPDATE, merged(lost, {"metadata": {"finalizers": None}}), lost, cluster()) == []
    assert validate(UPDATE, merged(lost, {"spec": {"weight": 2}}), lost, cluster()) != []


def test_a_cron_job_whose_queue_was_closed_may_be_suspended() -> None:
    meta = {"name": "c", "namespace": "default"}
    spec = {"schedule": "@daily", "jobTemplate": {"spec": vcjob(queue="shut")["spec"]}}
    old = {"apiVersion": GROUPS["CronJob"], "kind": "CronJob", "metadata": meta, "spec": spec}
    assert validate(UPDATE, merged(old, {"spec": {"suspend": True}}), old, cluster()) == []
    other = merged(old, {"spec": {"jobTemplate": {"spec": {"maxRetry": 5}}}})
    assert [problem.field for problem in validate(UPDATE, other, old, cluster())] == ["spec.jobTemplate.spec.queue"]


def test_a_queue_that_is_closing_may_be_changed() -> None:
    lister, old = cluster(), queue("default")
    old["status"]["state"] = "Closing"
    assert validate(UPDATE, merged(old, {"spec": {"weight": 5}}), old, lister) == []
    opened = merged(old, {"status": {"state": "Open"}})
    assert texts(validate(UPDATE, old, opened, lister)) == ['status.state: queue state must be in [Open Closed]; "Closing" found']


def test_a_queue_is_stored_with_its_defaults() -> None:
    bare = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}}
    assert mutate(CREATE, bare, cluster())["spec"] == {"reclaimable": True, "weight": 1}
    kept = mutate(CREATE, {**bare, "spec": {"reclaimable": False, "weight": 5}}, cluster())
    assert kept["spec"] == {"reclaimable": False, "weight": 5}
    bare["metadata"] = {"name": "q", "annotations": {key.HIERARCHY: "sci/dev", key.HIERARCHY_WEIGHTS: "2/3"}}
    assert mutate(CREATE, bare, cluster())["metadata"]["annotations"] == {key.HIERARCHY: "root/sci/dev", key.HIERARCHY_WEIGHTS: "1/2/3"}


@pytest.mark.parametrize(
    ("named", "stated", "stored"), [(None, None, "default"), ("gold", None, "gold"), ("gold", "default", "gold"), ("gold", "x", "x")]
)
def test_a_pod_group_without_a_queue_takes_that_of_its_namespace(named: str | None, stated: str | None, stored: str) -> None:
    notes = {key.QUEUE_NAME: named} if named else {}
    lister = Memory([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "annotations": notes}}])
    meta = {"name": "g", "namespace": "default"}
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": meta, "spec": {"queue": stated}}
    assert mutate(CREATE, group, lister)["spec"]["queue"] == stored


def test_a_pod_joins_the_first_resource_group_that_matches() -> None:
    groups = [
        {"resourceGroup": "gold", "object": {"key": "namespace", "value": ["default"]}, "labels": {"pool": "gold"}, "schedulerName": "s"},
        {"resourceGroup": "tin", "labels": {"pool": "tin"}},
    ]
    lister, settings = Memory(), Settings(resource_groups=groups)
    gold = mutate(CREATE, plain_pod(), lister, settings)["spec"]
    assert (gold["nodeSelector"], gold["schedulerName"]) == ({"pool": "gold"}, "s")
    other = plain_pod(annotations={"volcano.sh/resource-group": "tin"})
    other["metadata"]["namespace"] = "elsewhere"
    assert mutate(CREATE, other, lister, settings)["spec"]["nodeSelector"] == {"pool": "tin"}
    assert mutate(CREATE, other, lister)["spec"] == other["spec"]
    by_note = {
        "resourceGroup": "x",
        "object": {"key": "annotation", "value": ["team: red"]},
        "tolerations": [{"key": "red"}],
        "affinity": {"a": 1},
    }
    joined = mutate(CREATE, plain_pod(annotations={"team": "red"}), lister, Settings(resource_groups=[by_note]))["spec"]
    assert (joined["tolerations"], joined["affinity"]) == ([{"key": "red"}], {"a": 1})


def test_a_pod_that_asks_for_it_waits_behind_its_queues_gate() -> None:
    pod = plain_pod(annotations={key.QUEUE_GATE: "true"})
    assert mutate(CREATE, pod, Memory(), Settings(queue_gates=True))["spec"]["schedulingGates"] == [{"name": key.QUEUE_GATE}]
    assert "schedulingGates" not in mutate(CREATE, pod, Memory())["spec"]
    gate = [{"name": key.QUEUE_GATE}]
    has = plain_pod(annotations={key.QUEUE_GATE: "true"}, schedulingGates=[{"name": "other"}, *gate])
    assert mutate(CREATE, has, Memory(), Settings(queue_gates=True))["spec"]["schedulingGates"] == [{"name": "other"}, *gate]
    asks, not_ours = {key.QUEUE_GATE: "true"}, {"schedulerName": "x"}
    for left in (plain_pod(), plain_pod(annotations={key.QUEUE_GATE: "false"}), plain_pod(annotations=asks, **not_ours)):
        assert "schedulingGates" not in mutate(CREATE, left, Memory(), Settings(queue_gates=True))["spec"]
