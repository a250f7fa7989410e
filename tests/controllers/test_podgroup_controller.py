"""Pods without a PodGroup get one, by their workload."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.controllers import annotations as key
from pumice.controllers import kinds
from pumice.controllers.objects import Object, annotations_of
from pumice.controllers.podgroup import PodGroups
from tests.controllers.stage import Stage, plain_pod


def workload(kind: str = "ReplicaSet", replicas: int = 2, annotations: dict[str, str] | None = None, **status: Any) -> Object:
    meta = {"name": "web", "namespace": "default", "uid": "uid-web", "annotations": annotations or {}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": {"replicas": replicas}, "status": status}


def play(*objects: Object) -> Stage:
    return Stage(*objects, controllers=[PodGroups()])


def group_named_by(stage: Stage, pod: str) -> str | None:
    return annotations_of(stage.get(kinds.POD, pod)).get(key.GROUP_NAME)


def test_a_plain_pod_gets_a_group_of_its_own() -> None:
    pod = plain_pod("p", priorityClassName="high", annotations={key.QUEUE_NAME: "gold", key.PREEMPTABLE: "true", "other": "x"})
    stage = play(pod)
    group = stage.get(kinds.POD_GROUP, "podgroup-uid-p")
    assert group_named_by(stage, "p") == "podgroup-uid-p"
    assert group["spec"] == {
        "minMember": 1,
        "minResources": {"count/pods": "1", "pods": "1", "cpu": "1", "requests.cpu": "1"},
        "queue": "gold",
        "priorityClassName": "high",
    }
    assert group["metadata"]["annotations"] == {key.PREEMPTABLE: "true"}
    assert group["metadata"]["ownerReferences"][0]["uid"] == "uid-p"
    assert group["status"] == {"phase": "Pending"}
    stage.assert_settled()


def test_pods_of_others_and_pods_with_a_group_are_left_alone() -> None:
    stage = play(plain_pod("p", schedulerName="default-scheduler"), plain_pod("q", annotations={key.GROUP_NAME: "mine"}))
    assert stage.names(kinds.POD_GROUP) == []
    assert group_named_by(stage, "q") == "mine"


def test_a_pod_that_an_owner_does_not_control_waits_for_no_others() -> None:
    pod = plain_pod("p", web := workload(annotations={key.GROUP_MIN_MEMBER: "3", "volcano.sh/x": "y"}))
    pod["metadata"]["ownerReferences"][0]["controller"] = False
    group = play(web, pod).get(kinds.POD_GROUP, "podgroup-uid-p")
    assert group["spec"]["minMember"] == 1 and annotations_of(group) == {"volcano.sh/x": "y"}


def test_the_pods_of_one_workload_share_a_group() -> None:
    web = workload()
    stage = play(web, plain_pod("p", web), plain_pod("q", web))
    assert stage.names(kinds.POD_GROUP) == ["podgroup-uid-web"]
    assert group_named_by(stage, "p") == group_named_by(stage, "q") == "podgroup-uid-web"
    assert stage.get(kinds.POD_GROUP, "podgroup-uid-web")["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"
    stage.assert_settled()


def test_a_workload_may_ask_to_start_as_a_gang() -> None:
    web = workload("StatefulSet", annotations={key.GROUP_MIN_MEMBER: "3", "volcano.sh/x": "y", "note": "z"})
    stage = play(web, plain_pod("p", web))
    group = stage.get(kinds.POD_GROUP, "podgroup-uid-web")
    assert group["spec"]["minMember"] == 3
    assert group["spec"]["minResources"]["cpu"] == "3"
    assert group["metadata"]["annotations"] == {"volcano.sh/x": "y"}


def test_annotations_come_from_the_first_owner_that_states_them_or_from_none() -> None:
    first, second = (
        workload(annotations={"volcano.sh/x": "first"}),
        workload("StatefulSet", annotations={"volcano.sh/x": "second", "volcano.sh/y": "z"}),
    )
    second["metadata"] |= {"name": "other", "uid": "uid-other"}
    pod = plain_pod("p", first)
    pod["metadata"]["ownerReferences"].append({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "other", "uid": "uid-other"})
    group = play(first, second, pod).get(kinds.POD_GROUP, "podgroup-uid-web")
    assert group["metadata"]["annotations"] == {"volcano.sh/x": "first", "volcano.sh/y": "z"}
    assert [owner["uid"] for owner in group["metadata"]["ownerReferences"]] == ["uid-web", "uid-other"], "all of the pod's"
    gang = workload(annotations={"volcano.sh/x": "y", key.GROUP_MIN_MEMBER: "3"})
    alone = Stage(gang, plain_pod("p", gang), controllers=[PodGroups(inherit_owner_annotations=False)])
    group = alone.get(kinds.POD_GROUP, "podgroup-uid-web")
    assert ("annotations" in group["metadata"], group["spec"]["minMember"]) == (False, 1)


def test_what_a_pod_says_of_its_disruption_is_said_of_its_group() -> None:
    notes = {key.COOLDOWN_TIME: "60s", key.REVOCABLE_ZONE: "z", key.JDB_MIN_AVAILABLE: "1", key.JDB_MAX_UNAVAILABLE: "2"}
    pod = plain_pod("p", annotations=notes)
    pod["metadata"]["labels"] = {key.PREEMPTABLE: "false", key.COOLDOWN_TIME: "60s", "app": "web"}
    meta = play(pod).get(kinds.POD_GROUP, "podgroup-uid-p")["metadata"]
    assert meta["annotations"] == {name: value for name, value in notes.items() if name != key.JDB_MAX_UNAVAILABLE}
    assert meta["labels"] == {key.PREEMPTABLE: "false", key.COOLDOWN_TIME: "60s"}
    only = plain_pod("p", annotations={key.JDB_MAX_UNAVAILABLE: "2"})
    assert play(only).get(kinds.POD_GROUP, "podgroup-uid-p")["metadata"]["annotations"] == {key.JDB_MAX_UNAVAILABLE: "2"}


def test_an_owner_that_controls_nothing_does_not_name_the_group() -> None:
    pod = plain_pod("p", workload())
    del pod["metadata"]["ownerReferences"][0]["controller"]
    stage = play(workload(), pod)
    assert stage.names(kinds.POD_GROUP) == ["podgroup-uid-p"]
    (owner,) = stage.get(kinds.POD_GROUP, "podgroup-uid-p")["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", "uid-p", True)


def test_a_minimum_that_is_no_number_counts_as_one() -> None:
    web = workload(annotations={key.GROUP_MIN_MEMBER: "-2"})
    assert play(web, plain_pod("p", web)).get(kinds.POD_GROUP, "podgroup-uid-web")["spec"]["minMember"] == 1


def test_a_changed_workload_changes_its_group_and_keeps_what_others_wrote() -> None:
    web = workload()
    stage = play(web, plain_pod("p", web))
    stage.change(kinds.POD_GROUP, "podgroup-uid-web", {"metadata": {"annotations": {"volcano.sh/job-allocated-hypernode": "s1"}}})
    stage.change(kinds.REPLICA_SET, "web", {"metadata": {"annotations": {key.GROUP_MIN_MEMBER: "2"}}})
    group = stage.get(kinds.POD_GROUP, "podgroup-uid-web")
    assert group["spec"]["minMember"] == 2
    assert group["metadata"]["annotations"] == {"volcano.sh/job-allocated-hypernode": "s1"}


@pytest.mark.parametrize(("kind", "name"), [(kinds.REPLICA_SET, "ReplicaSet"), (kinds.STATEFUL_SET, "StatefulSet")])
def test_a_workload_that_is_scaled_to_nothing_loses_its_group_and_gets_it_back(kind: str, name: str) -> None:
    web = workload(name)
    stage = play(web, plain_pod("p", web))
    stage.change(kind, "web", {"spec": {"replicas": 0}})
    assert stage.names(kinds.POD_GROUP) == []
    stage.change(kind, "web", {"spec": {"replicas": 2}})
    assert stage.names(kinds.POD_GROUP) == ["podgroup-uid-web"]


def test_a_statefulset_is_described_by_a_pod_of_its_newest_revision() -> None:
    web = workload("StatefulSet", updateRevision="r2")
    old, fresh = plain_pod("p0", web), plain_pod("p1", web, priorityClassName="high")
    old["metadata"]["labels"] = {"controller-revision-hash": "r1"}
    fresh["metadata"]["labels"] = {"controller-revision-hash": "r2"}
    stage = play(web, old, fresh)
    assert stage.get(kinds.POD_GROUP, "podgroup-uid-web")["spec"]["priorityClassName"] == "high"


def test_a_workload_without_a_pod_that_speaks_for_it_has_no_group() -> None:
    web = workload()
    leaving = plain_pod("p", web)
    leaving["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    others = plain_pod("q", web, schedulerName="default-scheduler"), plain_pod("r", web, annotations={key.GROUP_NAME: "mine"})
    assert play(web, leaving, *others).names(kinds.POD_GROUP) == []


def test_network_topology_is_read_from_the_pod() -> None:
    stage = play(plain_pod("p", annotations={key.TOPOLOGY_MODE: "Soft", key.TOPOLOGY_HIGHEST_TIER: "2"}))
    assert stage.get(kinds.POD_GROUP, "podgroup-uid-p")["spec"]["networkTopology"] == {"mode": "soft", "highestTierAllowed": 2}
    stage = play(plain_pod("p", annotations={key.TOPOLOGY_HIGHEST_TIER: "3"}))
    assert stage.get(kinds.POD_GROUP, "podgroup-uid-p")["spec"]["networkTopology"] == {"mode": "hard", "highestTierAllowed": 3}
    stage = play(plain_pod("p", annotations={key.TOPOLOGY_MODE: "anything", key.TOPOLOGY_HIGHEST_TIER: "many"}))
    assert stage.get(kinds.POD_GROUP, "podgroup-uid-p")["spec"]["networkTopology"] == {"mode": "hard"}


def test_the_charge_counts_init_steps_sidecars_overhead_and_extended_resources() -> None:
    containers = [{"name": "a", "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "2"}, "limits": {"cpu": "2", "memory": "1Gi"}}}]
    inits = [
        {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
        {"name": "i", "resources": {"requests": {"cpu": "3"}}},
    ]
    stage = play(plain_pod("p", containers=containers, initContainers=inits, overhead={"cpu": "100m"}))
    assert stage.get(kinds.POD_GROUP, "podgroup-uid-p")["spec"]["minResources"] == {
        "count/pods": "1",
        "pods": "1",
        "cpu": "3600m",
        "requests.cpu": "3600m",
        "limits.cpu": "2100m",
        "memory": "1Gi",
        "requests.memory": "1Gi",
        "limits.memory": "1Gi",
        "nvidia.com/gpu": "2",
        "requests.nvidia.com/gpu": "2",
    }
