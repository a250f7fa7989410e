"""The same gangs get the same places, in whatever dialect they are written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from pumice.cli.inputs import Inputs, load
from pumice.inputs.cluster_from_files import run_cycles

NOW = 1_800_000_000.0
QUEUE = "scheduling.volcano.sh/queue-name"


Dialect = Callable[["Wanted"], list[dict[str, Any]]]


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


def of_owner(owned: list[dict[str, Any]], api_version: str, kind: str, gang: Wanted) -> list[dict[str, Any]]:
    """The object of one gang, which an object of another kind has made, which alone knows the queue."""
    above = {"apiVersion": api_version, "kind": kind, "name": gang.name, "uid": f"uid-{gang.name}", "controller": True}
    owned[0]["metadata"] = {"name": gang.name, "ownerReferences": [above]}
    return [obj(api_version, kind, gang.meta | {"uid": above["uid"]}, {}), *owned]


def train_job(gang: Wanted) -> list[dict[str, Any]]:
    return of_owner(job_set(gang), "trainer.kubeflow.org/v1alpha1", "TrainJob", gang)


def ray_job(gang: Wanted) -> list[dict[str, Any]]:
    return of_owner(ray_cluster(gang), "ray.io/v1", "RayJob", gang)


def training_job(kind: str, replica_specs: str, first: str = "") -> Dialect:
    """Of Kubeflow. `first`: the role of one pod; the others are workers."""

    def written(gang: Wanted) -> list[dict[str, Any]]:
        roles: dict[str, Any] = {first: {"template": gang.template}} if first else {}
        roles["Worker"] = {"replicas": gang.pods - len(roles), "template": gang.template}
        return [obj("kubeflow.org/v1", kind, gang.meta, {replica_specs: roles})]

    written.__name__ = kind
    return written


def spark_application(gang: Wanted) -> list[dict[str, Any]]:
    """Its driver, which makes the executors once it runs."""
    driver = {"labels": {"sparkoperator.k8s.io/app-name": gang.name, "spark-role": "driver"}}
    return [obj("sparkoperator.k8s.io/v1beta2", "SparkApplication", gang.meta, {}), *gang.members(metadata=driver)]


DIALECTS: tuple[Dialect, ...] = (
    *(volcano_job, native, coscheduling, job_set, train_job, leader_worker_set, ray_cluster, ray_job),
    training_job("PyTorchJob", "pytorchReplicaSpecs", "Master"),
    training_job("TFJob", "tfReplicaSpecs", "Chief"),
    training_job("MPIJob", "mpiReplicaSpecs", "Launcher"),
    training_job("XGBoostJob", "xgbReplicaSpecs", "Master"),
    training_job("JAXJob", "jaxReplicaSpecs"),
    training_job("PaddleJob", "paddleReplicaSpecs", "Master"),
)


def places(folder: Path, dialect: Dialect, gangs: list[Wanted], nodes: list[int]) -> dict[str, list[str]]:
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


@settings(max_examples=5, deadline=None)
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


def test_a_driver_that_makes_its_executors_gets_the_place_of_a_single_pod(tmp_path: Path) -> None:
    gangs = [Wanted("g0", 1, 1, "a"), Wanted("g1", 1, 2, "b"), Wanted("g2", 1, 4, "b")]
    expected = places(tmp_path, volcano_group, gangs, [4, 3])
    assert sorted(map(len, expected.values())) == [0, 1, 1]
    assert places(tmp_path, spark_application, gangs, [4, 3]) == expected
