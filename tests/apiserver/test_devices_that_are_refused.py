"""Slices of devices, and claims for them: what validation says of them, to the word of 1.37.2; and their defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.cluster.apiserver import PatchRequest, StatusError, Store
from tests.apiserver.made import store

CASES = yaml.safe_load((Path(__file__).parent / "devices.yaml").read_text())
GATE = "DRANodeAllocatableResources"
SLICES, CLAIMS, TEMPLATES = (f"{plural}.resource.k8s.io" for plural in ("resourceslices", "resourceclaims", "resourceclaimtemplates"))


def create(made: Store, kind: str, obj: dict[str, Any]) -> dict[str, Any]:
    return made.create(kind, obj, "" if kind == SLICES else "default")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_validation_says_what_kubernetes_says(case: dict[str, Any]) -> None:
    kind = SLICES if case["object"]["kind"] == "ResourceSlice" else CLAIMS
    made, obj = store(gates={GATE}), case["object"]
    if not case["errors"]:
        create(made, kind, obj)
        return
    with pytest.raises(StatusError) as refused:
        create(made, kind, obj)
    assert sorted(f"{cause['field']}: {cause['message']}" for cause in refused.value.details["causes"]) == sorted(case["errors"])


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
    for field in ("driver", "nodeName"):
        with pytest.raises(StatusError, match=f'spec.{field}: Invalid value: "other": field is immutable'):
            made.patch(SLICES, "s", PatchRequest("merge", {"spec": {field: "other"}}))


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
    made.create("pods", {"metadata": {"name": "p"}, "spec": {"containers": [container]}}, "default")
    charge = {"resourceClaimName": "c", "containers": ["c"], "mapping": [{"name": "cpu", "quantity": "1"}]}
    body = {"status": {"nodeAllocatableResourceClaimStatuses": [charge]}}
    written = made.patch("pods", "p", PatchRequest("strategic", body), "default", "status")
    assert written["status"].get("nodeAllocatableResourceClaimStatuses") == ([charge] if gates else None)
