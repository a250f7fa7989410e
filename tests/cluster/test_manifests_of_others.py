"""The example manifests that projects ship with their modules: each is a gang as large as the rules of KAI's pod-grouper make it.

They are said here again, in few words, so that the table in `api/gang_dialects.py` is held against something. One is another: KAI starts a
RayCluster with the least of its workers, ours does only if the cluster scales itself, since nobody would make the others room later.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from binaries import module_folder

from pumice.api import Object
from pumice.api.gang_dialects import BY_NAME
from pumice.controllers.volcano.foreign_gangs import ForeignGang

pytestmark = pytest.mark.nightly

MODULES = {
    "sigs.k8s.io/jobset@v0.8.0": ("site/static/examples",),  # later ones ship none
    "sigs.k8s.io/lws@v0.8.0": ("docs", "config", "site"),
    "github.com/ray-project/kuberay/ray-operator@v1.6.0": ("config/samples",),
    "github.com/kubeflow/training-operator@v1.9.3": ("examples",),
    "github.com/kubeflow/mpi-operator@v0.8.0": ("examples",),
    "github.com/kubeflow/spark-operator/v2@v2.3.0": ("examples",),
}


def _pods_of_job(template: Object) -> int:
    spec = template.get("spec") or {}
    return min(spec.get("parallelism", 1), spec.get("completions", spec.get("parallelism", 1)))


def _job_set(spec: Object) -> int:
    return sum(each.get("replicas", 1) * _pods_of_job(each["template"]) for each in spec["replicatedJobs"])


def _kubeflow(spec: Object) -> int:
    stated = ((spec.get("runPolicy") or {}).get("schedulingPolicy") or {}).get("minAvailable")
    least = stated or (spec.get("elasticPolicy") or {}).get("minReplicas")
    (roles,) = (value for name, value in spec.items() if name.endswith("ReplicaSpecs"))
    return least or sum(role.get("replicas", 1) for role in roles.values())


def _ray_cluster(spec: Object) -> int:
    count = "minReplicas" if spec.get("enableInTreeAutoscaling") else "replicas"
    groups = (group for group in spec.get("workerGroupSpecs") or () if not group.get("suspend"))
    return 1 + sum(group.get(count, 1) * group.get("numOfHosts", 1) for group in groups)


RULES: dict[str, Callable[[Object], int]] = {
    "JobSet": _job_set,
    "LeaderWorkerSet": lambda spec: spec["leaderWorkerTemplate"].get("size", 1),
    "RayCluster": _ray_cluster,
    "SparkApplication": lambda spec: 1,
    **dict.fromkeys(("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "JAXJob", "PaddleJob"), _kubeflow),
}


def shipped() -> Iterator[Object]:
    for module, folders in MODULES.items():
        root = module_folder(module)
        for path in sorted(path for folder in folders for path in (root / folder).rglob("*.y*ml")):
            try:
                yield from (
                    each
                    for each in yaml.safe_load_all(path.read_text())
                    if isinstance(each, dict) and each.get("kind") in RULES and each.get("spec")
                )
            except yaml.YAMLError:
                continue  # it is a template


def test_each_is_a_gang_of_the_size_that_others_make_it() -> None:
    if not shutil.which("go"):
        pytest.skip("there is no `go` here to load the modules with")
    seen: Counter[str] = Counter()
    wrong: list[tuple[str, str, Any, Any]] = []
    for owner in shipped():
        if "exclusive-topology" in str(owner):
            continue  # its pods come one after another, of which KAI does not know
        kind, group = owner["kind"], owner["apiVersion"].partition("/")[0]
        seen[kind] += 1
        found, wanted = ForeignGang(BY_NAME[f"{kind}.{group}"], owner).minimum, RULES[kind](owner["spec"])
        if found != wanted:
            wrong.append((kind, owner["metadata"].get("name", ""), found, wanted))
    assert not wrong and seen.keys() == RULES.keys()
