"""Pods without a PodGroup get one, by their workload."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api import annotations as key, kinds
from pumice.api.json_objects import Object, annotations_of
from pumice.controllers.volcano.podgroup import GroupSubject, PodGroups
from pumice.controllers.writes import Create, Patch
from tests.controllers.stage import Stage, plain_pod, pod_spec


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


def test_a_statefulset_that_is_updated_updates_its_group_when_a_pod_of_the_new_revision_comes() -> None:
    web = workload("StatefulSet", replicas=1, updateRevision="r1")
    old = plain_pod("p", web)
    old["metadata"]["labels"] = {"controller-revision-hash": "r1"}
    stage = play(web, old)
    stage.change(kinds.STATEFUL_SET, "web", {"spec": {"template": {}}, "status": {"updateRevision": "r2"}})
    stage.lose("p")
    fresh = plain_pod("p", web, priorityClassName="high", **pod_spec("2"))
    fresh["metadata"] |= {"uid": "uid-fresh", "labels": {"controller-revision-hash": "r2"}}
    stage.add(fresh)
    spec = stage.get(kinds.POD_GROUP, "podgroup-uid-web")["spec"]
    assert (spec["minResources"]["cpu"], spec["priorityClassName"]) == ("2", "high")
    assert group_named_by(stage, "p") == "podgroup-uid-web"


@pytest.mark.parametrize(
    "owner", [None, workload(), workload("StatefulSet"), workload("PyTorchJob")], ids=lambda owner: owner and owner["kind"]
)
def test_a_group_that_is_lost_is_made_again(owner: Object | None) -> None:
    stage = play(*([owner] if owner else []), plain_pod("p", owner), plain_pod("others", owner, schedulerName="default-scheduler"))
    (name,) = stage.names(kinds.POD_GROUP)
    stage.delete(kinds.POD_GROUP, name)
    assert stage.names(kinds.POD_GROUP) == [name] and group_named_by(stage, "p") == name
    stage.assert_settled()


def test_a_group_that_somebody_made_or_that_goes_with_its_pods_is_not_made_again() -> None:
    meta = {"name": "mine", "namespace": "default", "uid": "uid-mine"}
    mine = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": meta, "spec": {"minMember": 1}}
    stage = play(mine, plain_pod("p", annotations={key.GROUP_NAME: "mine"}), plain_pod("q"))
    stage.delete(kinds.POD_GROUP, "mine")
    stage.lose("q")
    stage.delete(kinds.POD_GROUP, "podgroup-uid-q")
    assert stage.names(kinds.POD_GROUP) == []


def test_a_pod_that_comes_while_its_group_goes_gets_a_new_one() -> None:
    """Scaled to nothing and back at once: the end of the group is told after the pod's beginning."""
    web = workload()
    group = play(web, plain_pod("p", web)).get(kinds.POD_GROUP, "podgroup-uid-web")
    going = {**group, "metadata": {**group["metadata"], "deletionTimestamp": "2027-01-15T08:00:00Z"}}
    stage = Stage(controllers=[])
    for each in (web, going, plain_pod("fresh", web)):
        stage.lister.put(each)
    writes = PodGroups().reconcile(GroupSubject(kinds.POD, "default", "fresh"), stage.lister, stage.now).writes
    assert [type(write) for write in writes] == [Create, Patch]


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
