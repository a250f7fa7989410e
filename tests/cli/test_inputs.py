"""Where the objects of `cycle`, `score` and `check` come from: files, dumps of some kinds, or a live cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.api.structs import KINDS
from pumice.cli.from_cluster import names
from pumice.cli.main import cli
from pumice.live.scheduler.watched_resources import EVERY
from tests.cli.terminal import Terminal

ROOT = Path(__file__).parents[2]
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": 4, "pods": 110}}}
CLAIM = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}}


def pod(name: str = "p", annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    spec.setdefault("containers", [{"name": "c", "image": "i", "resources": {"requests": {"cpu": 1}}}])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations or {}}, "spec": spec}


def group(name: str = "g", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": name}, "spec": {"minMember": 1} | spec}


WITH_CLAIM = pod(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}])
WITH_DEVICE = pod(resourceClaims=[{"name": "d", "resourceClaimName": "gpu"}])
IN_GROUP = pod(annotations={"scheduling.k8s.io/group-name": "g"}, schedulerName="volcano")
TOO_FAR = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}, "minMember": 5}
GANG = [pod(f"p{n}", {"scheduling.k8s.io/group-name": "g"}, schedulerName="volcano") for n in range(5)]
BOUND = {"metadata": {"name": "data", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": "pv"}}


def waiting(tmp_path: Path, form: str, *objects: dict[str, Any]) -> str:
    path = tmp_path / "objects.json"
    listed = {"apiVersion": "v1", "kind": "List", "items": [NODE, *objects]}
    path.write_text(json.dumps(listed) if form == "dump" else "\n---\n".join(map(json.dumps, [NODE, *objects])))
    conf = tmp_path / "conf"
    conf.write_text('actions: "allocate"\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: network-topology-aware}]}]\n')
    gangs = ["--conf", str(conf)] if objects[0]["kind"] == "PodGroup" else []
    result = CliRunner().invoke(cli, ["cycle", "-f", str(path), "-o", "json", *gangs], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return " ".join(each["message"] for each in json.loads(result.stdout)["pending"].values())


@pytest.mark.parametrize(
    ("objects", "kinds", "otherwise"),
    [
        ([WITH_CLAIM], "PersistentVolumeClaims", 'persistentvolumeclaim "data" not found'),
        ([WITH_CLAIM, CLAIM | BOUND], "PersistentVolumes", "bound to non-existent pv(s)"),
        ([WITH_CLAIM, CLAIM | {"spec": {"storageClassName": "fast"}}], "StorageClasses", "unbound immediate PersistentVolumeClaims"),
        ([WITH_DEVICE], "ResourceClaims", 'resourceclaim "gpu" not found'),
        ([IN_GROUP], "PodGroups", "PodGroup default/g does not exist"),
        ([group(queue="q"), IN_GROUP], "Queues", "queue q does not exist"),
        ([group(**TOO_FAR), *GANG], "HyperNodes", "has room for"),
    ],
)
def test_what_a_dump_lacks_is_not_taken_for_empty(tmp_path: Path, objects: list[dict[str, Any]], kinds: str, otherwise: str) -> None:
    told = waiting(tmp_path, "dump", *objects)
    assert f"the input has no {kinds}; say `pumice cycle --from-cluster` or add {kinds.lower()} to the dump" in told
    assert otherwise not in told
    assert "the input has no" not in waiting(tmp_path, "files", *objects), "who writes files by hand has written all there is"


def test_a_live_cluster_is_an_input(pumice: Terminal) -> None:
    conf = 'actions: "allocate"\ntiers: [{plugins: [{name: gang}]}]\nconfigurations: []\n'
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "volcano-scheduler-configmap"}}
    pumice.apply(NODE, settings | {"data": {"volcano-scheduler.conf": conf}}, WITH_CLAIM | {"metadata": {"name": "with-claim"}})
    result = json.loads(pumice("cycle", "--from-cluster", "-o", "json"))
    assert list(result["pending"]) == ["default/with-claim"]
    assert "the input has no" not in result["pending"]["default/with-claim"]["message"]
    assert "ConfigMap default/volcano-scheduler-configmap" in pumice.type("check", "--from-cluster").stderr


def test_an_instant_of_a_recording_wants_a_recording() -> None:
    result = CliRunner().invoke(cli, ["cycle", "-f", "absent.yaml", "--at", "2026-01-01T12:00:00Z"])
    assert result.exit_code == 2
    assert "--at is an instant of a --recording; of files and clusters it is --now" in result.output


def test_something_must_be_read() -> None:
    result = CliRunner().invoke(cli, ["cycle"])
    assert result.exit_code == 2
    assert "say what to read: files with -f, or a live cluster with --from-cluster" in result.output


def test_the_dump_of_the_readme_has_every_kind() -> None:
    read = {key for key in KINDS if key[0] != "scheduling.incubator.k8s.io"}
    assert {(each.group, each.kind) for each in EVERY} == read - {
        ("", "ConfigMap"),
        ("", "Event"),
        ("", "LimitRange"),
        ("node.k8s.io", "RuntimeClass"),
    }
    assert f"kubectl get -A -o json {names()}" in (ROOT / "README.md").read_text()
