"""Gangs of other projects in files: what `pumice cycle -f` and the other commands make of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from pumice.api.errors import InputError
from pumice.api.gang_dialects import JOB_SETS
from pumice.cli.main import cli
from pumice.simulate.formats.kubernetes import workload
from tests.live_controllers.scene import scene
from tests.live_controllers.test_gangs_of_others import definition

CONTAINERS = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}]
SPEC = {"schedulerName": "volcano", "containers": CONTAINERS}
NATIVE = {
    "apiVersion": "scheduling.k8s.io/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "train"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
}


def node(name: str, cpu: int = 4, **labels: str) -> dict[str, Any]:
    status = {"allocatable": {"cpu": str(cpu), "memory": "8Gi", "pods": "9"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def pod(name: str, owner: dict[str, Any] | None = None, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    reference = {**owner, "uid": "u-1", "controller": True} if owner else None
    meta = {"name": name, "labels": labels or {}, "ownerReferences": [reference] if reference else []}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": SPEC | spec}


def job_set(name: str = "js", **more: Any) -> dict[str, Any]:
    template = {"spec": {"parallelism": 2, "template": {"metadata": {"labels": {"app": "x"}}, "spec": SPEC}}}
    spec = {"replicatedJobs": [{"name": "w", "replicas": 1, "template": template}]}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}, "spec": spec} | more


def run(tmp_path: Path, command: str, *objects: dict[str, Any], options: tuple[str, ...] = ()) -> str:
    path = tmp_path / "input.yaml"
    path.write_text(yaml.dump_all(objects))
    result = CliRunner().invoke(cli, [*command.split(), "-f", str(path), *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def outcome(tmp_path: Path, *objects: dict[str, Any], options: tuple[str, ...] = ()) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(tmp_path, "cycle -o json", *objects, options=options))
    return found


def members(count: int = 3) -> list[dict[str, Any]]:
    return [pod(f"p{number}", schedulingGroup={"podGroupName": "train"}) for number in range(count)]


def test_a_native_group_is_placed_whole_or_not_at_all(tmp_path: Path) -> None:
    assert len(outcome(tmp_path, node("a"), node("b"), NATIVE, *members())["binds"]) == 3
    waits = outcome(tmp_path, node("a"), NATIVE, *members())
    assert waits["binds"] == {} and "default/train" in waits["podGroups"]


CONF = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: nodeorder}, {name: network-topology-aware}]
"""


def test_a_topology_key_is_a_label_of_nodes_or_a_tier(tmp_path: Path) -> None:
    conf = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"volcano-scheduler.conf": CONF}}
    group = NATIVE | {"spec": NATIVE["spec"] | {"schedulingConstraints": {"topology": [{"key": "rack"}]}}}  # type: ignore[operator]
    nodes = [node("a", rack="1"), node("b", rack="2"), node("c", rack="2")]
    assert set(outcome(tmp_path, conf, *nodes, group, *members())["binds"].values()) == {"b", "c"}
    nodes[0]["status"]["allocatable"]["cpu"] = "6"
    assert set(outcome(tmp_path, conf, *nodes[:2], group, *members())["binds"].values()) == {"a"}
    tiers = {"tier": 1, "tierName": "rack", "members": [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in "ab"]}
    real = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": "h"}, "spec": tiers}
    nodes[0]["status"]["allocatable"]["cpu"] = "4"
    assert set(outcome(tmp_path, conf, *nodes, real, group, *members())["binds"].values()) == {"a", "b"}
    tiers["tierName"] = "switch"
    assert outcome(tmp_path, conf, *nodes, real, group, *members())["binds"] == {}
    told = run(tmp_path, "why job/train", conf, *nodes, real, group, *members())
    assert told.startswith("podgroup/train waits: no HyperNode is of the tier") or "no HyperNode is of the tier" in told.splitlines()[0]


@pytest.mark.parametrize(("needed", "cpu", "bound"), [(2, 6, 3), (2, 4, 0), (1, 4, 1), (1, 6, 3), (2, 2, 0)])
def test_of_a_tree_as_many_groups_start_together_as_it_says(tmp_path: Path, needed: int, cpu: int, bound: int) -> None:
    policy = {"schedulingPolicy": {"gang": {"minGroupCount": needed}}}
    root = {"apiVersion": "scheduling.k8s.io/v1alpha3", "kind": "CompositePodGroup", "metadata": {"name": "infer"}, "spec": policy}
    leaves, pods = [], []
    for name, size in (("prefill", 2), ("decode", 1)):
        spec = {"parentCompositePodGroupName": "infer", "schedulingPolicy": {"gang": {"minCount": size}}}
        leaves.append(NATIVE | {"metadata": {"name": name}, "spec": spec})
        pods += [pod(f"{name}-{number}", schedulingGroup={"podGroupName": name}) for number in range(size)]
    assert len(outcome(tmp_path, node("a", cpu), root, *leaves, *pods)["binds"]) == bound


def test_kube_schedulers_profiles_keep_their_native_groups(tmp_path: Path) -> None:
    conf = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "volcano"}],
    }
    gates = ("--kubernetes-version", "1.37", "--feature-gates", "GenericWorkload=true")
    found = outcome(tmp_path, conf, node("a"), node("b"), NATIVE, *members(), options=gates)
    assert found["podGroups"]["default/train"]["phase"] == "Scheduled"


@pytest.mark.parametrize("count", [2, 3])
def test_an_owner_without_pods_stands_for_its_pods(tmp_path: Path, count: int) -> None:
    binds = outcome(tmp_path, node("a"), *(job_set(f"js{number}") for number in range(count)))["binds"]
    assert binds == {"default/js0-w-0": "a", "default/js0-w-1": "a"}, "one gang fills the node"


def test_an_owner_with_pods_has_made_what_it_wanted(tmp_path: Path) -> None:
    labels = {"jobset.sigs.k8s.io/jobset-name": "js"}
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "js-w-0"}
    above = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "js", "uid": "u-2", "controller": True}
    found = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "js-w-0", "uid": "u-1", "ownerReferences": [above]}, "spec": {}}
    assert outcome(tmp_path, node("a"), job_set(), pod("a", labels=labels))["binds"] == {}, "it has one pod of two"
    both = [pod("a", labels=labels), pod("b", owner=job)]
    assert outcome(tmp_path, node("a"), job_set(), found, *both)["binds"].keys() == {"default/a", "default/b"}


def test_an_owner_that_a_server_has_looked_after_gets_no_pods(tmp_path: Path) -> None:
    served = job_set(metadata={"name": "js", "uid": "u-1"})
    assert outcome(tmp_path, node("a"), served)["binds"] == {}


def test_each_replica_of_a_leader_worker_set_is_a_gang(tmp_path: Path) -> None:
    template = {"size": 2, "workerTemplate": {"spec": SPEC}}
    spec = {"replicas": 2, "leaderWorkerTemplate": template}
    subject = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": "lws"}, "spec": spec}
    assert outcome(tmp_path, node("a"), subject)["binds"] == {"default/lws-0-leader-0": "a", "default/lws-0-worker-0": "a"}


def test_why_names_the_owner(tmp_path: Path) -> None:
    told = run(tmp_path, "why job/js", node("a", 3), node("b", 1), job_set())
    assert told.startswith("job/js waits: its 2 pods start together")


def test_a_simulation_takes_gangs_of_others(tmp_path: Path) -> None:
    subject = job_set()
    subject["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["metadata"]["annotations"] = {"pumice.io/run-time": "1h"}
    path = tmp_path / "input.yaml"
    path.write_text(yaml.dump_all([node("a"), subject]))
    (work,) = workload(str(path), None).jobs
    assert (work.name, work.pods) == ("js-jobset", 2)


@pytest.mark.parametrize(
    ("subject", "told"),
    [
        (job_set(metadata={"name": "js", "labels": ["x"]}), "its metadata cannot be read"),
        (job_set(spec=["x"]), "its spec is no object"),
        (
            job_set(spec={"replicatedJobs": [{"name": "w", "template": {"spec": {"template": {"spec": {"containers": 3}}}}}]}),
            "its role w has",
        ),
        (job_set(spec={"replicatedJobs": [{"name": "w", "replicas": 10**7}]}), "asks for 10000000 pods"),
    ],
)
def test_an_owner_that_cannot_be_read_is_an_error_that_says_where(tmp_path: Path, subject: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=f"input.yaml, document 2.*JobSet js: {told}"):
        outcome(tmp_path, node("a"), subject)


def test_of_a_cluster_without_our_controllers_the_objects_are_read(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"

    async def story() -> str:
        async with scene() as stage:
            stage.server.kubeconfig(kubeconfig, "test")
            stage.create("customresourcedefinitions.apiextensions.k8s.io", definition(JOB_SETS), "")
            stage.create("nodes", node("a", 3), "")
            owner = stage.create(JOB_SETS.resource, job_set())
            for name in ("x", "y"):
                named = {"apiVersion": owner["apiVersion"], "kind": "JobSet", "name": "js", "uid": owner["metadata"]["uid"]}
                made = pod(name)
                made["metadata"]["ownerReferences"] = [{**named, "controller": True}]
                stage.create("pods", made)
            command = ["cycle", "--from-cluster", "--kubeconfig", str(kubeconfig), "-o", "json"]
            result = await asyncio.to_thread(CliRunner().invoke, cli, command, catch_exceptions=False)
            assert "not read" not in result.stderr, result.stderr
            return result.stdout

    found = json.loads(asyncio.run(story()))
    assert found["binds"] == {} and len(found["pending"]) == 2, "there is room for one of two"
    assert any(name.startswith("default/js-") for name in found["podGroups"])
