"""Claims get volumes: those that are there, or those that a class makes."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api import kinds
from pumice.api.annotations import BIND_COMPLETED, CLAIM_PROTECTION, DEFAULT_STORAGE_CLASS, SELECTED_NODE, VOLUME_PROTECTION
from pumice.api.json_objects import Object, annotations_of, spec_of, status_of
from pumice.controllers.kubernetes.persistent_volumes import NO_PROVISIONER
from pumice.controllers.registry import kubernetes_controllers
from tests.controllers.collected import Collected
from tests.controllers.stage import Stage, plain_pod

EXISTS = {"key": "disk", "operator": "Exists"}


def claim(name: str = "data", size: str = "5Gi", notes: dict[str, str] | None = None, **spec: Any) -> Object:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": notes or {}}
    fields = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": fields, "status": {"phase": "Pending"}}


def volume(name: str, size: str, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    fields = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, "persistentVolumeReclaimPolicy": "Retain", **spec}
    meta = {"name": name, "uid": f"uid-{name}", "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": fields, "status": {"phase": "Pending"}}


def class_(name: str = "fast", mode: str = "Immediate", default: bool = False, provisioner: str = "x", **more: Any) -> Object:
    meta = {"name": name, "uid": f"uid-{name}", "annotations": {DEFAULT_STORAGE_CLASS: "true"} if default else {}}
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": meta}
    return {**head, "provisioner": provisioner, "volumeBindingMode": mode, **more}


def play(*objects: Object) -> Stage:
    return Stage(*objects, controllers=[*kubernetes_controllers(), Collected()])


def got(stage: Stage, name: str = "data") -> str:
    """The volume that a claim has, once both say so."""
    found = stage.get(kinds.CLAIM, name)
    if status_of(found).get("phase") != "Bound":
        return ""
    volume_name = str(spec_of(found)["volumeName"])
    bound = stage.get(kinds.VOLUME, volume_name)
    assert spec_of(bound)["claimRef"]["uid"] == found["metadata"]["uid"]
    assert status_of(bound)["phase"] == "Bound"
    assert status_of(found)["capacity"] == spec_of(bound)["capacity"]
    assert annotations_of(found)[BIND_COMPLETED] == "yes"
    stage.assert_settled()
    return volume_name


@pytest.mark.parametrize(
    ("volumes", "wish", "chosen"),
    [
        ([volume("large", "10Gi"), volume("small", "5Gi")], {}, "small"),
        ([volume("tiny", "1Gi")], {}, ""),
        ([volume("other", "5Gi", storageClassName="slow")], {}, ""),
        ([volume("slow", "5Gi", storageClassName="slow")], {"storageClassName": "slow"}, "slow"),
        ([volume("many", "5Gi", accessModes=["ReadWriteOnce", "ReadWriteMany"])], {"accessModes": ["ReadWriteMany"]}, "many"),
        ([volume("one", "5Gi")], {"accessModes": ["ReadWriteMany"]}, ""),
        ([volume("block", "5Gi", volumeMode="Block")], {}, ""),
        ([volume("a", "5Gi"), volume("b", "6Gi", {"disk": "ssd"})], {"selector": {"matchLabels": {"disk": "ssd"}}}, "b"),
        ([volume("a", "5Gi"), volume("b", "6Gi", {"disk": "ssd"})], {"selector": {"matchExpressions": [EXISTS]}}, "b"),
        ([volume("a", "5Gi"), volume("b", "6Gi", claimRef={"namespace": "default", "name": "data"})], {}, "b"),
        ([volume("a", "5Gi", claimRef={"namespace": "default", "name": "another"})], {}, ""),
        ([volume("a", "5Gi", claimRef={"namespace": "default", "name": "data", "uid": "older"})], {}, ""),
        ([volume("a", "5Gi"), volume("b", "1Gi")], {"volumeName": "b"}, "b"),
    ],
)
def test_a_claim_gets_the_smallest_volume_that_suits_it(volumes: list[Object], wish: dict[str, Any], chosen: str) -> None:
    assert got(play(*volumes, claim(**wish))) == chosen


def test_a_volume_that_comes_later_is_taken_too() -> None:
    stage = play(claim())
    assert got(stage) == ""
    stage.add(volume("late", "5Gi"))
    assert got(stage) == "late"


def test_a_class_makes_a_volume_where_none_is_there() -> None:
    stage = play(class_(reclaimPolicy="Delete"), claim(storageClassName="fast"))
    made = got(stage)
    assert made == "pvc-uid-data"
    assert spec_of(stage.get(kinds.VOLUME, made))["storageClassName"] == "fast"
    assert [event.reason for event in stage.lister.emitted] == ["ProvisioningSucceeded"]


def test_a_claim_that_names_no_class_gets_the_default_one() -> None:
    stage = play(class_("slow"), class_("standard", default=True), claim(), claim("none", storageClassName=""))
    assert got(stage) == "pvc-uid-data"
    assert spec_of(stage.get(kinds.CLAIM, "data"))["storageClassName"] == "standard"
    assert got(stage, "none") == "", "an empty name is the wish for a volume without a class"


def test_a_class_that_waits_makes_a_volume_once_a_node_is_chosen() -> None:
    stage = play(class_(mode="WaitForFirstConsumer"), volume("there", "5Gi", storageClassName="fast"), claim(storageClassName="fast"))
    assert got(stage) == "", "which volume is the scheduler's choice"
    stage.change(kinds.CLAIM, "data", {"metadata": {"annotations": {SELECTED_NODE: "n1"}}})
    assert got(stage) == "pvc-uid-data"


def test_a_volume_that_the_scheduler_chose_is_bound() -> None:
    stage = play(class_(mode="WaitForFirstConsumer", provisioner=NO_PROVISIONER), volume("v", "5Gi", storageClassName="fast"))
    stage.add(claim(storageClassName="fast"))
    reference = {"namespace": "default", "name": "data", "uid": "uid-data"}
    stage.change(kinds.VOLUME, "v", {"spec": {"claimRef": reference}})
    assert got(stage) == "v"


def test_a_class_without_a_provisioner_makes_nothing() -> None:
    assert got(play(class_(provisioner=NO_PROVISIONER), claim(storageClassName="fast"))) == ""


@pytest.mark.parametrize(("policy", "phase"), [("Retain", "Released"), ("Delete", None)])
def test_when_a_claim_is_gone_its_volume_is_kept_or_deleted(policy: str, phase: str | None) -> None:
    stage = play(volume("v", "5Gi", persistentVolumeReclaimPolicy=policy), claim())
    assert got(stage) == "v"
    stage.delete(kinds.CLAIM, "data")
    if phase is None:
        assert stage.names(kinds.VOLUME) == []
    else:
        assert status_of(stage.get(kinds.VOLUME, "v"))["phase"] == phase
        stage.add(claim("next"))
        assert got(stage, "next") == ""


def protected(subject: Object, finalizer: str) -> Object:
    subject["metadata"]["finalizers"] = [finalizer, "example.com/other"]
    return subject


def play_alone(*objects: Object) -> Stage:
    """Without a garbage collector, which here takes off every finalizer."""
    return Stage(*objects, controllers=kubernetes_controllers())


def kept_by(stage: Stage, kind: str, name: str) -> list[str]:
    return list(stage.get(kind, name)["metadata"].get("finalizers") or [])


def test_a_claim_stays_until_no_pod_on_a_node_uses_it() -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    stage = play_alone(protected(claim(), CLAIM_PROTECTION), plain_pod("waits", volumes=volumes), plain_pod("works", volumes=volumes))
    stage.bind("works")
    stage.delete(kinds.CLAIM, "data")
    assert kept_by(stage, kinds.CLAIM, "data") == [CLAIM_PROTECTION, "example.com/other"]
    stage.lose("works")
    assert kept_by(stage, kinds.CLAIM, "data") == ["example.com/other"], "a pod without a node uses nothing yet"
    stage.assert_settled()


def test_a_claim_made_for_a_pod_does_not_wait_for_one_that_is_over() -> None:
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]
    own = protected(claim("works-scratch"), CLAIM_PROTECTION)
    own["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": "works", "uid": "uid-works", "controller": True}]
    stage = play_alone(
        own, protected(claim("another-scratch"), CLAIM_PROTECTION), *(plain_pod(n, volumes=volumes) for n in ("works", "another"))
    )
    stage.bind("works", "another")
    stage.delete(kinds.CLAIM, "works-scratch")
    stage.delete(kinds.CLAIM, "another-scratch")
    assert kept_by(stage, kinds.CLAIM, "works-scratch") == [CLAIM_PROTECTION, "example.com/other"]
    assert kept_by(stage, kinds.CLAIM, "another-scratch") == ["example.com/other"], "it was not made for the pod"
    over = {"deletionTimestamp": "2027-01-15T08:00:00Z", "deletionGracePeriodSeconds": 0, "finalizers": ["example.com/other"]}
    stage.change(kinds.POD, "works", {"metadata": over})
    assert kept_by(stage, kinds.CLAIM, "works-scratch") == ["example.com/other"]


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
def test_a_volume_stays_until_its_claim_is_gone(policy: str) -> None:
    stage = play_alone(protected(volume("v", "5Gi", persistentVolumeReclaimPolicy=policy), VOLUME_PROTECTION), claim())
    stage.delete(kinds.VOLUME, "v")
    assert got(stage) == "v"
    assert kept_by(stage, kinds.VOLUME, "v") == [VOLUME_PROTECTION, "example.com/other"]
    stage.delete(kinds.CLAIM, "data")
    assert kept_by(stage, kinds.VOLUME, "v") == ["example.com/other"]
    assert status_of(stage.get(kinds.VOLUME, "v"))["phase"] == "Released"
    stage.assert_settled()


def test_a_claim_whose_volume_is_gone_is_lost() -> None:
    stage = play(volume("v", "5Gi"), claim())
    assert got(stage) == "v"
    stage.delete(kinds.VOLUME, "v")
    assert status_of(stage.get(kinds.CLAIM, "data"))["phase"] == "Lost"
