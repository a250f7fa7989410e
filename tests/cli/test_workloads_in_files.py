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


def outcome(tmp_path: Path, *objects: dict[str, Any], as_json: bool = False) -> dict[str, Any]:
    path = tmp_path / "input.yaml"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}) if as_json else yaml.dump_all(objects))
    result = CliRunner().invoke(cli, ["cycle", "-f", str(path), "-o", "json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
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


def test_what_a_server_has_looked_after_is_not_made_again(tmp_path: Path) -> None:
    served = DEPLOYMENT | {"metadata": {"name": "w", "uid": "1-2-3"}}
    assert outcome(tmp_path, NODE, served)["binds"] == {}


def test_a_workload_that_admission_refuses_is_an_error_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        outcome(tmp_path, NODE, {**GANG, "spec": {**GANG["spec"], "tasks": []}})
    assert str(refused.value).startswith(f"{tmp_path / 'input.yaml'}, document 2: Job w: ")


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
    with pytest.raises(InputError, match=r"asks for 1000000000 pods; write at most 150000, as many as Kubernetes supports in a cluster"):
        outcome(tmp_path, NODE, workload("apps/v1", "Deployment", replicas=10**9, selector=SELECTOR, template=template()))


def test_a_job_that_a_server_has_completed_makes_the_pods_that_it_asks_for(tmp_path: Path) -> None:
    mine = {"batch.kubernetes.io/controller-uid": "u"}
    labelled = template(restartPolicy="Never") | {"metadata": {"labels": mine}}
    job = workload("batch/v1", "Job", parallelism=2, completions=3, selector={"matchLabels": mine}, template=labelled)
    assert len(outcome(tmp_path, NODE, job)["binds"]) == 2


def test_a_job_that_does_not_select_its_own_pods_is_refused(tmp_path: Path) -> None:
    job = workload("batch/v1", "Job", manualSelector=True, selector={"matchLabels": {"a": "b"}}, template=template(restartPolicy="Never"))
    with pytest.raises(InputError, match="its selector does not match the labels of its template; leave out selector and manualSelector"):
        outcome(tmp_path, NODE, job)
