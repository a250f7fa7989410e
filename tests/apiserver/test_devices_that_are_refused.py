"""Slices of devices, and claims for them: what validation says of them, to the word of 1.37.2; and their defaults."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.cluster.apiserver import PatchRequest, StatusError, Store
from tests.apiserver.made import store

CASES = yaml.safe_load((Path(__file__).parent / "devices.yaml").read_text())
GATE = "DRANodeAllocatableResources"
FEATURES = ("DerivedAttributes", "OptionalNodeOperations", "PartitionableDevicesType", "ListTypeAttributes", "DeviceCompatibilityGroups")
GATES = {GATE, *(f"DRA{name}" for name in FEATURES)}
KINDS = {"Pod": "pods", "DeviceClass": "deviceclasses.resource.k8s.io", "DeviceTaintRule": "devicetaintrules.resource.k8s.io"}
SLICES, CLAIMS, TEMPLATES = (f"{plural}.resource.k8s.io" for plural in ("resourceslices", "resourceclaims", "resourceclaimtemplates"))
KINDS |= {"ResourceSlice": SLICES, "ResourceClaim": CLAIMS, "ResourceClaimTemplate": TEMPLATES}
#: of an expression, Kubernetes also says where the fault is, and what it expected there
WHERE = re.compile(r"ERROR: <input>:\d+:\d+: ([^\n]*?)(?: expecting \{.*?\})?(?:\n \|.*)*$")


def create(made: Store, kind: str, obj: dict[str, Any]) -> dict[str, Any]:
    return made.create(kind, obj, "" if kind in (SLICES, KINDS["DeviceClass"], KINDS["DeviceTaintRule"]) else "default")


def written(made: Store, obj: dict[str, Any]) -> None:
    """Create the object; then write its status, if it has one."""
    kind, status = KINDS[obj["kind"]], obj.get("status")
    create(made, kind, {key: part for key, part in obj.items() if key != "status"})
    if status is not None:
        made.patch(kind, "x", PatchRequest("merge", {"status": status}), "default", "status")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_validation_says_what_kubernetes_says(case: dict[str, Any]) -> None:
    made, obj = store(gates=GATES), case["object"]
    if not case["errors"]:
        written(made, obj)
        return
    with pytest.raises(StatusError) as refused:
        written(made, obj)
    said = sorted(f"{cause['field']}: {cause['message']}" for cause in refused.value.details["causes"])
    assert said == sorted(WHERE.sub(r"\1", text).replace("dyn", "any") for text in case["errors"])


SLICE = {"driver": "d.example.com", "nodeName": "n", "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1}}
CLAIM = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}


def test_a_claim_asks_for_one_device_by_default_and_stays_as_it_is() -> None:
    made = store()
    create(made, CLAIMS, {"metadata": {"name": "c"}, "spec": CLAIM})
    create(made, TEMPLATES, {"metadata": {"name": "t"}, "spec": {"spec": CLAIM}})
    wanted = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    assert made.get(CLAIMS, "c", "default")["spec"]["devices"]["requests"][0]["exactly"] == wanted
    assert made.get(TEMPLATES, "t", "default")["spec"]["spec"]["devices"]["requests"][0]["exactly"] == wanted
    for kind, name in ((CLAIMS, "c"), (TEMPLATES, "t")):
        emptied = {"devices": {"requests": []}}
        body = {"spec": emptied if kind == CLAIMS else {"spec": emptied}}
        with pytest.raises(StatusError, match="field is immutable"):
            made.patch(kind, name, PatchRequest("merge", body), "default")
        made.patch(kind, name, PatchRequest("merge", {"metadata": {"labels": {"a": "b"}}}), "default")


def test_a_slice_stays_with_its_driver_and_node() -> None:
    made = store()
    create(made, SLICES, {"metadata": {"name": "s"}, "spec": SLICE})
    for field in ("driver", "nodeName", "pool.name"):
        change: Any = "other"
        for part in reversed(field.split(".")):
            change = {part: change}
        with pytest.raises(StatusError, match=f'spec.{field}: Invalid value: "other": field is immutable'):
            made.patch(SLICES, "s", PatchRequest("merge", {"spec": change}))


def test_what_was_valid_once_is_not_looked_at_again() -> None:
    made, what = store(), {"cel": {"expression": "what"}}
    with pytest.raises(StatusError, match="compilation failed"):
        create(made, KINDS["DeviceClass"], {"metadata": {"name": "x"}, "spec": {"selectors": [what]}})
    create(made, KINDS["DeviceClass"], {"metadata": {"name": "x"}, "spec": {"config": [{"opaque": {"driver": "d", "parameters": {}}}]}})
    made.patch(KINDS["DeviceClass"], "x", PatchRequest("merge", {"metadata": {"labels": {"a": "b"}}}))
    with pytest.raises(StatusError, match="compilation failed"):
        made.patch(KINDS["DeviceClass"], "x", PatchRequest("merge", {"spec": {"selectors": [what]}}))
    with pytest.raises(StatusError, match=r"config\[0\].opaque.parameters: Required value"):
        made.patch(KINDS["DeviceClass"], "x", PatchRequest("merge", {"spec": {"config": [{"opaque": {"driver": "d"}}]}}))


def test_devices_that_are_given_to_a_claim_stay_its_own_until_all_are_given_back() -> None:
    made = store()
    create(made, CLAIMS, {"metadata": {"name": "c"}, "spec": CLAIM})

    def write(status: Any) -> None:
        made.patch(CLAIMS, "c", PatchRequest("merge", {"status": status}), "default", "status")

    def given(device: str) -> dict[str, Any]:
        return {"devices": {"results": [{"request": "r", "driver": "d", "pool": "n", "device": device}]}}

    write({"allocation": given("a")})
    with pytest.raises(StatusError, match=r"status.allocation: Invalid value: .*: field is immutable"):
        write({"allocation": given("b")})
    write({"allocation": None})
    write({"allocation": given("b")})


@pytest.mark.parametrize("gates", [frozenset[str](), frozenset({GATE})])
def test_what_devices_take_of_their_node_is_kept_with_the_gate_only(gates: frozenset[str]) -> None:
    made, taking = store(gates=gates), {"name": "a", "nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "1"}}}}
    spec = {
        "driver": "d.example.com",
        "nodeName": "n",
        "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        "devices": [taking],
    }
    create(made, SLICES, {"metadata": {"name": "s"}, "spec": spec})
    assert ("nodeAllocatableResources" in made.get(SLICES, "s")["spec"]["devices"][0]) is bool(gates)
    container = {"name": "c", "image": "x"}
    claims = [{"name": "c", "resourceClaimName": "c"}]
    made.create("pods", {"metadata": {"name": "p"}, "spec": {"containers": [container], "resourceClaims": claims}}, "default")
    charge = {"resourceClaimName": "c", "containers": ["c"], "mapping": [{"name": "cpu", "quantity": "1"}]}
    body = {"status": {"nodeAllocatableResourceClaimStatuses": [charge]}}
    written = made.patch("pods", "p", PatchRequest("strategic", body), "default", "status")
    assert written["status"].get("nodeAllocatableResourceClaimStatuses") == ([charge] if gates else None)


def test_claims_may_watch_devices_where_a_namespace_says_so() -> None:
    made, watching = store(), {"name": "r", "exactly": {"deviceClassName": "gpu", "adminAccess": True}}
    spec = {"devices": {"requests": [watching]}}
    with pytest.raises(StatusError, match="admin access to devices requires the"):
        create(made, TEMPLATES, {"metadata": {"name": "t"}, "spec": {"spec": spec}})
    label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    made.patch("namespaces", "default", PatchRequest("merge", label))
    create(made, TEMPLATES, {"metadata": {"name": "t"}, "spec": {"spec": spec}})
    for name in "cd":
        create(made, CLAIMS, {"metadata": {"name": name}, "spec": spec})

    def give(name: str, **more: Any) -> None:
        result = {"request": "r", "driver": "d", "pool": "n", "device": "a", "adminAccess": True}
        status = {"allocation": {"devices": {"results": [result]}}, **more}
        made.patch(CLAIMS, name, PatchRequest("merge", {"status": status}), "default", "status")

    give("c")
    made.patch("namespaces", "default", PatchRequest("merge", {"metadata": {"labels": None}}))
    give("c", reservedFor=[{"resource": "pods", "name": "p", "uid": "u"}])
    with pytest.raises(StatusError, match=r"status.allocation.devices.results\[0\].adminAccess: Forbidden: admin access"):
        give("d")
