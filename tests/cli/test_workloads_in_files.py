"""Workloads in files are read as the pods that their controllers would make; what is odd about a PodGroup is told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from pumice.api.errors import InputError
from pumice.cli.main import cli

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "one"},
    "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "9"}},
}
CONTAINER = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}


def template(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [CONTAINER], **spec}}


def workload(api_version: str, kind: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "w"}, "spec": spec}


SELECTOR = {"matchLabels": {"app": "a"}}
DEPLOYMENT = workload("apps/v1", "Deployment", replicas=2, selector=SELECTOR, template=template())
GANG = workload(
    "batch.volcano.sh/v1alpha1",
    "Job",
    schedulerName="volcano",
    minAvailable=2,
    tasks=[{"name": "t", "replicas": 2, "template": template(restartPolicy="Never")}],
)


def outcome(
    tmp_path: Path, *objects: dict[str, Any], as_json: bool = False, told: str = "", options: tuple[str, ...] = ()
) -> dict[str, Any]:
    """What a cycle over the objects decides. It tells in one line what is `told`, or nothing at all."""
    path = tmp_path / "input.yaml"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}) if as_json else yaml.dump_all(objects))
    result = CliRunner().invoke(cli, ["cycle", "-f", str(path), "-o", "json", *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert result.stderr == (f"warning: {path}, document 2: {told}; its pods are left out\n" if told else "")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(
    ("subject", "pods"),
    [
        (GANG, 2),
        (DEPLOYMENT, 2),
        (workload("apps/v1", "Deployment", replicas=2, selector=SELECTOR, template=template(schedulerName="volcano")), 2),
        (
            workload(
                "apps/v1",
                "StatefulSet",
                replicas=2,
                selector=SELECTOR,
                serviceName="s",
                podManagementPolicy="Parallel",
                template=template(),
            ),
            2,
        ),
        (workload("apps/v1", "DaemonSet", selector=SELECTOR, template=template()), 1),
        (workload("batch/v1", "Job", parallelism=3, completions=3, template=template(restartPolicy="Never")), 3),
    ],
    ids=["gang", "deployment", "volcano's deployment", "stateful set", "daemon set", "job"],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_a_workload_stands_for_the_pods_that_its_controllers_make(
    tmp_path: Path, subject: dict[str, Any], pods: int, as_json: bool
) -> None:
    assert list(outcome(tmp_path, NODE, subject, as_json=as_json)["binds"].values()) == ["one"] * pods


def test_gangs_and_plain_pods_of_one_input_are_both_placed(tmp_path: Path) -> None:
    assert len(outcome(tmp_path, NODE, GANG, DEPLOYMENT | {"metadata": {"name": "plain"}})["binds"]) == 4


def test_a_job_that_is_not_let_in_is_told_why(tmp_path: Path) -> None:
    big = json.loads(json.dumps(GANG))
    big["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "8"
    told = outcome(tmp_path, NODE, big)
    assert not told["binds"] and all("16 cpu asked for" in pod["message"] for pod in told["pending"].values()) and len(told["pending"]) == 2


SERVED = [{"metadata": {"name": "w", "uid": "1-2-3"}}, {"status": {"replicas": 0}}]


@pytest.mark.parametrize("marked", SERVED, ids=["a uid", "a status"])
@pytest.mark.parametrize("subject", [DEPLOYMENT, GANG], ids=lambda subject: subject["kind"])
def test_what_a_server_has_looked_after_is_not_made_again_unless_asked_for(
    tmp_path: Path, subject: dict[str, Any], marked: dict[str, Any]
) -> None:
    assert outcome(tmp_path, NODE, subject | marked)["binds"] == {}
    assert len(outcome(tmp_path, NODE, subject | marked, options=("--expand",))["binds"]) == 2


def test_a_status_that_says_nothing_is_no_sign_of_a_server(tmp_path: Path) -> None:
    assert len(outcome(tmp_path, NODE, DEPLOYMENT | {"status": {}})["binds"]) == 2


def test_only_the_missing_pods_of_a_served_workload_are_made_when_asked_for(tmp_path: Path) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "w", "uid": "1-2-3", "controller": True}
    meta = {"name": "old", "uid": "4", "labels": {"app": "a"}, "ownerReferences": [owner]}
    running = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": template(nodeName="one")["spec"],
        "status": {"phase": "Running"},
    }
    served = workload("apps/v1", "ReplicaSet", replicas=3, selector=SELECTOR, template=template()) | SERVED[0]
    assert len(outcome(tmp_path, NODE, served, running, options=("--expand",))["binds"]) == 2


def test_a_workload_that_admission_refuses_is_named_with_its_place_and_left_out(tmp_path: Path) -> None:
    refused = {**GANG, "spec": {**GANG["spec"], "tasks": []}}
    why = "Job w: spec.tasks: No task specified in job spec; describe the pods of at least one"
    assert len(outcome(tmp_path, NODE, refused, DEPLOYMENT, told=why)["binds"]) == 2


def test_check_counts_what_is_made_of_workloads(tmp_path: Path) -> None:
    path = tmp_path / "input.yaml"
    path.write_text(yaml.dump_all([NODE, GANG]))
    result = CliRunner().invoke(cli, ["check", "-f", str(path)], catch_exceptions=False)
    assert result.stdout == "fine: 1 Node, 2 Pod, 1 PodGroup\n"


@pytest.mark.parametrize(("mode", "warned"), [("hard", True), ("soft", False)])
def test_a_hard_topology_that_no_plugin_heeds_is_warned_of_by_check_alone(tmp_path: Path, mode: str, warned: bool) -> None:
    path = tmp_path / "input.yaml"
    group = workload("scheduling.volcano.sh/v1beta1", "PodGroup", minMember=1, networkTopology={"mode": mode, "highestTierAllowed": 1})
    path.write_text(yaml.dump_all([NODE, group]))
    why = "its hard network topology has no effect: add the plugin network-topology-aware to the scheduler's configuration"
    for asked in (["check", "-f", str(path)], ["check", "-f", str(path), "--against", str(path)]):
        result = CliRunner().invoke(cli, asked, catch_exceptions=False)
        assert result.exit_code == 0 and result.stderr == (f"warning: PodGroup default/w: {why}\n" if warned else "")
    assert CliRunner().invoke(cli, ["cycle", "-f", str(path)], catch_exceptions=False).stderr == ""


ANY_OF_TWO = GANG | {"spec": GANG["spec"] | {"minAvailable": 1}}


@pytest.mark.parametrize(
    ("hard", "there", "pods", "told"),
    [
        ({"requests.cpu": "10"}, 0, 2, ""),
        ({"pods": "2"}, 1, 1, "1 Pods of {} default/w are not made: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"),
        ({"requests.cpu": "1"}, 0, 1, "exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=1, limited: requests.cpu=1"),
        ({"limits.cpu": "9"}, 0, 0, "2 Pods of {} default/w are not made: failed quota: q: must specify limits.cpu"),
    ],
    ids=["room", "one is there", "cpu", "unsaid"],
)
@pytest.mark.parametrize("subject", [ANY_OF_TWO, DEPLOYMENT], ids=lambda subject: subject["kind"])
def test_a_quota_bounds_what_is_made_of_workloads(
    tmp_path: Path, subject: dict[str, Any], hard: dict[str, str], there: int, pods: int, told: str
) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": hard}}
    elsewhere = quota | {"metadata": {"name": "q", "namespace": "other"}, "spec": {"hard": {"pods": "0"}}}
    old = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "old"}, "spec": template(nodeName="one")["spec"]}
    path = tmp_path / "input.yaml"
    path.write_text(yaml.dump_all([NODE, quota, elsewhere, subject | {"metadata": {"name": "w"}}, *[old] * there]))
    result = CliRunner().invoke(cli, ["cycle", "-f", str(path), "-o", "json"], catch_exceptions=False)
    found = json.loads(result.stdout)
    owner = "Job" if subject is ANY_OF_TWO else "ReplicaSet"
    assert told.replace("{}", owner) in re.sub(r"default/w-[0-9a-z]+", "default/w", result.stderr)
    assert len(found["binds"]) == pods, found


def test_more_pods_than_a_cluster_may_hold_are_refused_at_once(tmp_path: Path) -> None:
    why = "Deployment w: asks for 1000000000 pods; write at most 150000, as many as Kubernetes supports in a cluster"
    outcome(tmp_path, NODE, workload("apps/v1", "Deployment", replicas=10**9, selector=SELECTOR, template=template()), told=why)


def test_a_job_that_a_server_has_completed_makes_the_pods_that_it_asks_for(tmp_path: Path) -> None:
    mine = {"batch.kubernetes.io/controller-uid": "u"}
    labelled = template(restartPolicy="Never") | {"metadata": {"labels": mine}}
    job = workload("batch/v1", "Job", parallelism=2, completions=3, selector={"matchLabels": mine}, template=labelled)
    assert len(outcome(tmp_path, NODE, job)["binds"]) == 2


MISSED = 'spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template `labels`'
LABELS = {"a": "b"}


@pytest.mark.parametrize(
    ("subject", "why"),
    [
        (workload("apps/v1", "ReplicaSet", selector={"matchLabels": LABELS}, template=template()), MISSED),
        (workload("v1", "ReplicationController", selector=LABELS, template=template()), MISSED),
        (workload("apps/v1", "Deployment", selector={"matchLabels": LABELS}, template=template()), MISSED),
        (workload("apps/v1", "StatefulSet", selector={"matchLabels": LABELS}, template=template()), MISSED),
        (workload("apps/v1", "DaemonSet", selector={"matchLabels": LABELS}, template=template()), MISSED),
        (
            workload("batch/v1", "Job", manualSelector=True, selector={"matchLabels": LABELS}, template=template(restartPolicy="Never")),
            MISSED,
        ),
        (
            workload("v1", "ReplicationController", selector=LABELS),
            MISSED.replace('"app":"a"', "") + "; spec.template.spec.containers: Required value",
        ),
        (
            workload("apps/v1", "Deployment", selector={"matchLabels": {}}, template=template()),
            "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
        ),
        (
            workload("apps/v1", "Deployment", selector=SELECTOR, template=template(), replicas="two"),
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_what_an_api_server_would_refuse_is_named_and_left_out(tmp_path: Path, subject: dict[str, Any], why: str) -> None:
    """The pods of a workload that does not select them would be strays, and more would be made for ever."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": template()["spec"]}
    assert outcome(tmp_path, NODE, subject, pod, told=f"{subject['kind']} w: {why}")["binds"] == {"default/p": "one"}
    checked = CliRunner().invoke(cli, ["check", "-f", str(tmp_path / "input.yaml")])
    assert isinstance(checked.exception, InputError) and str(checked.exception).endswith(why)
