"""Claims of devices: made from templates for the pods that ask, and given back when these end."""

from __future__ import annotations

from typing import Any

from pumice.api import kinds
from pumice.api.annotations import POD_CLAIM
from pumice.api.json_objects import Object
from pumice.controllers.kubernetes.resource_claim import ResourceClaims
from tests.controllers.collected import Collected
from tests.controllers.stage import Stage, plain_pod

REQUESTS = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}


def template(name: str = "one-gpu") -> Object:
    meta = {"name": name, "namespace": "default"}
    spec = {"metadata": {"labels": {"a": "b"}}, "spec": REQUESTS}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": meta, "spec": spec}


def asking(name: str = "p", **claim: str) -> Object:
    return plain_pod(name, resourceClaims=[{"name": "dev", **(claim or {"resourceClaimTemplateName": "one-gpu"})}])


def play(*objects: Object) -> Stage:
    return Stage(*objects, controllers=[ResourceClaims(), Collected()])


def claim(status: Any = None) -> Object:
    found = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c", "namespace": "default"}}
    return found | {"spec": REQUESTS, "status": status or {}}


def consumer(name: str) -> dict[str, str]:
    return {"resource": "pods", "name": name, "uid": f"uid-{name}"}


def test_a_pod_gets_a_claim_of_its_own_and_is_told_its_name() -> None:
    stage = play(template(), asking())
    [name] = stage.names(kinds.DEVICE_CLAIM)
    made = stage.get(kinds.DEVICE_CLAIM, name)
    assert name.startswith("p-dev-")
    assert made["spec"] == REQUESTS
    assert made["metadata"]["labels"] == {"a": "b"}
    assert made["metadata"]["annotations"] == {POD_CLAIM: "dev"}
    assert [owner["uid"] for owner in made["metadata"]["ownerReferences"]] == ["uid-p"]
    assert stage.get(kinds.POD, "p")["status"]["resourceClaimStatuses"] == [{"name": "dev", "resourceClaimName": name}]
    stage.assert_settled()


def test_a_pod_waits_for_a_template_that_comes_later() -> None:
    stage = play(asking())
    assert [event.reason for event in stage.lister.emitted] == ["FailedResourceClaimCreation"]
    stage.add(template())
    assert len(stage.names(kinds.DEVICE_CLAIM)) == 1


def test_a_made_claim_goes_with_its_pod_and_when_it_has_ended() -> None:
    stage = play(template(), asking("p"), asking("q"))
    assert len(stage.names(kinds.DEVICE_CLAIM)) == 2
    stage.lose("p")
    assert len(stage.names(kinds.DEVICE_CLAIM)) == 1
    stage.pods("Succeeded", "q")
    assert stage.names(kinds.DEVICE_CLAIM) == []


def test_a_shared_claim_is_free_when_the_last_of_its_pods_has_ended() -> None:
    pods = [asking(name, resourceClaimName="c") for name in ("p", "q")]
    stage = play(*pods, claim({"allocation": {"devices": {}}, "reservedFor": [consumer("p"), consumer("q")]}))
    stage.pods("Succeeded", "p")
    assert stage.get(kinds.DEVICE_CLAIM, "c")["status"] == {"allocation": {"devices": {}}, "reservedFor": [consumer("q")]}
    stage.lose("q")
    assert stage.get(kinds.DEVICE_CLAIM, "c").get("status") == {}


def test_a_reservation_for_a_pod_that_is_not_there_is_taken_back() -> None:
    stage = play(claim({"allocation": {}, "reservedFor": [consumer("gone")]}))
    assert stage.get(kinds.DEVICE_CLAIM, "c").get("status") == {}
