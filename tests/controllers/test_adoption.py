"""Workloads take in what fits their selector and nobody controls, and let go what fits no more."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api import kinds
from pumice.api.json_objects import Object, controlled_by, controller_of, name_of, owners_of, uid_of
from pumice.api.kinds import kind_of
from tests.controllers.playing import alive, node, play, start, template, workload
from tests.controllers.stage import Stage

KINDS = ("ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job")
OTHER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "notes", "uid": "uid-notes"}


def owner_of(kind: str, **more: Any) -> Object:
    made = workload(kind, replicas=1, updateStrategy={"type": "OnDelete"}, **more)
    if kind == "ReplicationController":
        made |= {"apiVersion": "v1", "spec": {**made["spec"], "selector": {"app": "web"}}}
    return made


def pod(name: str = "web-0", app: str = "web", **metadata: Any) -> Object:
    """It is called as a StatefulSet's first and stands where a DaemonSet has one."""
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": {"app": app}, **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**template()["spec"], "nodeName": "n1"}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", ["pod", "owner"])
def test_a_pod_that_fits_and_that_nobody_controls_is_taken_in(kind: str, first: str) -> None:
    found, owner = pod(ownerReferences=[OTHER]), owner_of(kind)
    if first == "pod":
        stage = play(found, owner)
    else:
        stage = play(owner_of(kind, suspend=True) if kind == "Job" else {**owner, "spec": {**owner["spec"], "replicas": 0}})
        stage.add(found)
    assert owners_of(stage.get(kinds.POD, "web-0")) == [OTHER, controlled_by(owner)]
    if first == "pod":
        assert stage.names(kinds.POD) == ["web-0"], "it is the one that was wanted"
        stage.assert_settled()


@pytest.mark.parametrize("kind", KINDS)
def test_a_pod_that_fits_no_more_is_let_go_and_replaced(kind: str) -> None:
    stage = play(pod(ownerReferences=[OTHER]), owner_of(kind))
    stage.change(kinds.POD, "web-0", {"metadata": {"labels": {"app": "debugged"}}})
    assert owners_of(stage.get(kinds.POD, "web-0")) == [OTHER]
    assert len(alive(stage)) == (1 if kind == "StatefulSet" else 2), "a StatefulSet waits for the name"
    stage.change(kinds.POD, "web-0", {"metadata": {"labels": {"app": "web"}}})
    assert (controller_of(stage.get(kinds.POD, "web-0")) or {}).get("kind") == kind


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "not_for_us",
    [
        pod(app="other"),
        pod(deletionTimestamp="2027-01-15T08:00:00Z"),
        pod(namespace="elsewhere"),
        pod(ownerReferences=[{**OTHER, "controller": True}]),
        pod(ownerReferences=[{**controlled_by(owner_of("ReplicaSet")), "uid": "uid-of-an-earlier-one"}]),
    ],
)
def test_nobody_is_taken_from_others_or_while_going(kind: str, not_for_us: Object) -> None:
    notes = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "notes", "namespace": "default", "uid": "uid-notes"}}
    stage = Stage(node("n1"), notes, not_for_us, owner_of(kind), controllers=play().loop.controllers[:-1])
    where = not_for_us["metadata"]["namespace"]
    assert owners_of(stage.get(kinds.POD, "web-0", where)) == owners_of(not_for_us)


@pytest.mark.parametrize("kind", KINDS)
def test_an_owner_that_is_going_neither_takes_in_nor_lets_go(kind: str) -> None:
    owner = owner_of(kind)
    stage = play(pod(), owner)
    stage.change(kind_of(owner), "web", {"metadata": {"finalizers": ["x.io/hold"]}})
    stage.delete(kind_of(owner), "web")
    stage.add(pod("web-1"))
    stage.loop.observe(stage.lister.put({**stage.get(kinds.POD, "web-1"), "status": {"phase": "Running"}}))
    stage.settle()
    assert controller_of(stage.get(kinds.POD, "web-1")) is None


@pytest.mark.parametrize("kind", KINDS)
def test_who_selects_nothing_takes_nobody(kind: str) -> None:
    stage = play(pod(), workload(kind, selector={}, replicas=0))
    assert controller_of(stage.get(kinds.POD, "web-0")) is None


def test_a_deployment_made_anew_goes_on_with_the_pods_of_the_old_one() -> None:
    stage = play(workload("Deployment", replicas=2))
    start(stage)
    pods, (set_,) = stage.names(kinds.POD), stage.names(kinds.REPLICA_SET)
    stage.change(kinds.REPLICA_SET, set_, {"metadata": {"ownerReferences": None}})
    assert uid_of(stage.get(kinds.DEPLOYMENT, "web")) == (controller_of(stage.get(kinds.REPLICA_SET, set_)) or {})["uid"]
    stage.change(kinds.DEPLOYMENT, "web", {"metadata": {"uid": "uid-anew"}})
    stage.change(kinds.REPLICA_SET, set_, {"metadata": {"ownerReferences": None}})
    assert (stage.names(kinds.POD), stage.names(kinds.REPLICA_SET)) == (pods, [set_])
    assert (controller_of(stage.get(kinds.REPLICA_SET, set_)) or {})["uid"] == "uid-anew"


def test_a_replicaset_that_fits_no_more_is_let_go_with_its_pods() -> None:
    stage = play(workload("Deployment", replicas=1))
    (set_,) = stage.names(kinds.REPLICA_SET)
    stage.change(kinds.REPLICA_SET, set_, {"metadata": {"labels": {"app": "debugged"}}})
    assert owners_of(stage.get(kinds.REPLICA_SET, set_)) == []
    assert [name_of(each) for each in alive(stage)] == stage.names(kinds.POD)


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_revisions_that_an_earlier_owner_has_left_behind_are_taken_over(kind: str) -> None:
    before = play(owner_of(kind))
    (name,) = before.names(kinds.CONTROLLER_REVISION)
    left = before.get(kinds.CONTROLLER_REVISION, name)
    strays = [
        {**left, "revision": number, "metadata": {**left["metadata"], "name": each, "ownerReferences": None}}
        for number, each in ((3, name), (7, "web-older"))
    ]
    owner = owner_of(kind)
    owner["metadata"]["uid"] = "uid-of-the-next"
    stage = play(*strays, owner)
    assert sorted(stage.names(kinds.CONTROLLER_REVISION)) == sorted([name, "web-older"]), "none is made that is there"
    owners = [controller_of(stage.get(kinds.CONTROLLER_REVISION, each)) for each in (name, "web-older")]
    assert [(each or {}).get("uid") for each in owners] == ["uid-of-the-next"] * 2
    assert stage.get(kinds.CONTROLLER_REVISION, name)["revision"] == 8, "the one in use has the highest number"
    stage.assert_settled()
