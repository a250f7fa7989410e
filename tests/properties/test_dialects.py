"""The same gangs get the same places, in whatever dialect they are written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from pumice.cli.inputs import Inputs, load
from pumice.inputs.offline import run_cycles

NOW = 1_800_000_000.0
QUEUE = "scheduling.volcano.sh/queue-name"


class Wanted(NamedTuple):
    name: str
    pods: int
    cpu: int
    queue: str

    @property
    def spec(self) -> dict[str, Any]:
        amounts = {"requests": {"cpu": str(self.cpu)}}
        return {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i", "resources": amounts}]}

    @property
    def template(self) -> dict[str, Any]:
        return {"metadata": {}, "spec": self.spec}

    @property
    def meta(self) -> dict[str, Any]:
        return {"name": self.name, "annotations": {QUEUE: self.queue}}

    def members(self, **more: Any) -> list[dict[str, Any]]:
        metadata, spec = more.get("metadata", {}), self.spec | more.get("spec", {})
        return [obj("v1", "Pod", {"name": f"{self.name}-{number}", **metadata}, spec) for number in range(self.pods)]


def obj(api_version: str, kind: str, metadata: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def volcano_group(gang: Wanted) -> list[dict[str, Any]]:
    spec = {"minMember": gang.pods, "queue": gang.queue, "minResources": {"cpu": str(gang.cpu * gang.pods), "pods": str(gang.pods)}}
    pods = gang.members(metadata={"annotations": {"scheduling.k8s.io/group-name": gang.name}})
    return [obj("scheduling.volcano.sh/v1beta1", "PodGroup", {"name": gang.name}, spec), *pods]


def volcano_job(gang: Wanted) -> list[dict[str, Any]]:
    task = {"name": "w", "replicas": gang.pods, "template": gang.template}
    spec = {"schedulerName": "volcano", "queue": gang.queue, "minAvailable": gang.pods, "tasks": [task]}
    return [obj("batch.volcano.sh/v1alpha1", "Job", {"name": gang.name}, spec)]


def native(gang: Wanted) -> list[dict[str, Any]]:
    spec = {"schedulingPolicy": {"gang": {"minCount": gang.pods}}}
    pods = gang.members(spec={"schedulingGroup": {"podGroupName": gang.name}})
    return [obj("scheduling.k8s.io/v1beta1", "PodGroup", gang.meta, spec), *pods]


def coscheduling(gang: Wanted) -> list[dict[str, Any]]:
    pods = gang.members(metadata={"labels": {"scheduling.x-k8s.io/pod-group": gang.name}})
    return [obj("scheduling.x-k8s.io/v1alpha1", "PodGroup", gang.meta, {"minMember": gang.pods}), *pods]


def job_set(gang: Wanted) -> list[dict[str, Any]]:
    job = {"spec": {"parallelism": gang.pods, "completions": gang.pods, "template": gang.template}}
    return [obj("jobset.x-k8s.io/v1alpha2", "JobSet", gang.meta, {"replicatedJobs": [{"name": "w", "replicas": 1, "template": job}]})]


def leader_worker_set(gang: Wanted) -> list[dict[str, Any]]:
    template = {"size": gang.pods, "workerTemplate": gang.template}
    return [obj("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", gang.meta, {"replicas": 1, "leaderWorkerTemplate": template})]


def ray_cluster(gang: Wanted) -> list[dict[str, Any]]:
    workers = {"groupName": "w", "replicas": gang.pods - 1, "template": gang.template}
    spec = {"headGroupSpec": {"template": gang.template}, "workerGroupSpecs": [workers]}
    return [obj("ray.io/v1", "RayCluster", gang.meta, spec)]


def pytorch_job(gang: Wanted) -> list[dict[str, Any]]:
    roles = {"Master": {"template": gang.template}, "Worker": {"replicas": gang.pods - 1, "template": gang.template}}
    return [obj("kubeflow.org/v1", "PyTorchJob", gang.meta, {"pytorchReplicaSpecs": roles})]


DIALECTS = (volcano_job, native, coscheduling, job_set, leader_worker_set, ray_cluster, pytorch_job)


def places(folder: Path, dialect: Callable[[Wanted], list[dict[str, Any]]], gangs: list[Wanted], nodes: list[int]) -> dict[str, list[str]]:
    """The nodes of each gang's pods."""
    queues = [obj("scheduling.volcano.sh/v1beta1", "Queue", {"name": name}, {"weight": weight}) for name, weight in (("a", 1), ("b", 3))]
    made = [
        obj("v1", "Node", {"name": f"n{number}"}, {}) | {"status": {"allocatable": {"cpu": str(cpu), "memory": "8Gi", "pods": "99"}}}
        for number, cpu in enumerate(nodes)
    ]
    items = [*made, *queues, *(each for gang in gangs for each in dialect(gang))]
    file = folder / "input.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    cluster, policy = load(Inputs((str(file),), None, None, False, None, False, "", ""), NOW)
    (outcome,) = run_cycles(cluster, policy, NOW, 1)
    found: dict[str, list[str]] = {gang.name: [] for gang in gangs}
    for pod, node in outcome["binds"].items():
        found[pod.removeprefix("default/").partition("-")[0]].append(node)
    return {name: sorted(where) for name, where in found.items()}


GANGS = st.lists(st.tuples(st.integers(2, 5), st.integers(1, 3), st.sampled_from("ab")), min_size=1, max_size=4)


@settings(max_examples=8, deadline=None)
@given(GANGS, st.lists(st.integers(1, 8), min_size=1, max_size=5))
def test_the_same_gangs_get_the_same_places_in_every_dialect(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[int, int, str]], nodes: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("dialects")
    gangs = [Wanted(f"g{number}", *each) for number, each in enumerate(drawn)]
    expected = places(folder, volcano_group, gangs, nodes)
    for dialect in DIALECTS:
        assert places(folder, dialect, gangs, nodes) == expected, dialect.__name__
    for gang in gangs:
        assert len(expected[gang.name]) in (0, gang.pods)


def test_some_gangs_are_placed_and_some_wait(tmp_path: Path) -> None:
    gangs = [Wanted("g0", 3, 1, "b"), Wanted("g1", 4, 2, "b")]
    for dialect in (volcano_group, *DIALECTS):
        assert places(tmp_path, dialect, gangs, [4, 4]) == {"g0": ["n0", "n0", "n1"], "g1": []}, dialect.__name__
