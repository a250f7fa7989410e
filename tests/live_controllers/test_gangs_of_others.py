"""Gangs of other projects on a live cluster: with their definitions, without them, and with a role that may not read them."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from pumice.api.annotations import GROUP_NAME
from pumice.api.gang_dialects import ALSO_READ, JOB_SETS, READ
from pumice.api.json_objects import annotations_of
from pumice.api.kinds import Kind
from pumice.client.failures import ApiError
from pumice.client.transport import ListScope
from tests.live_controllers.scene import GROUPS, Scene, play, until, working

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


def definition(kind: Kind) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": kind.version, "served": True, "storage": True, "schema": schema}
    names = {"kind": kind.kind, "plural": kind.plural}
    spec = {"group": kind.group, "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": kind.resource}, "spec": spec}


def job_set(scene: Scene) -> dict[str, Any]:
    jobs = [{"name": "w", "replicas": 3, "template": {"spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}}}]
    made = {"apiVersion": JOB_SETS.api_version, "kind": "JobSet", "metadata": {"name": "train"}, "spec": {"replicatedJobs": jobs}}
    return scene.create(JOB_SETS.resource, made)


def pod_of(owner: dict[str, Any], name: str) -> dict[str, Any]:
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    labels = {"jobset.sigs.k8s.io/jobset-name": owner["metadata"]["name"], "jobset.sigs.k8s.io/replicatedjob-name": "w"}
    meta = {"name": name, "labels": labels, "ownerReferences": [{**reference, "controller": True}]}
    return {"metadata": meta, "spec": {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]}}


def group_of(scene: Scene, pod: str) -> str:
    return annotations_of(scene.find("pods", pod) or {"metadata": {}}).get(GROUP_NAME, "")


def test_a_jobset_is_a_gang_once_its_definition_is_there() -> None:
    async def story(scene: Scene) -> None:
        scene.create(DEFINITIONS, definition(JOB_SETS), "")
        async with working(scene.client):
            owner = job_set(scene)
            scene.create("pods", pod_of(owner, "train-w-0"))
            await until(lambda: group_of(scene, "train-w-0"))
            group = scene.find(GROUPS, group_of(scene, "train-w-0"))
            assert group is not None and group["spec"]["minMember"] == 3
            assert group["metadata"]["ownerReferences"][0]["kind"] == "JobSet"

    play(story, limit_s=60.0)


def test_an_mpi_job_is_read_in_the_version_that_there_is() -> None:
    (version,) = ALSO_READ
    roles = {"Launcher": {"replicas": 1}, "Worker": {"replicas": 2}}
    made = {"apiVersion": version.api_version, "kind": "MPIJob", "metadata": {"name": "pi"}, "spec": {"mpiReplicaSpecs": roles}}

    async def story(scene: Scene) -> None:
        scene.create(DEFINITIONS, definition(version), "")
        async with working(scene.client):
            scene.create("pods", pod_of(scene.create(version.resource, made), "pi-worker-0"))
            await until(lambda: group_of(scene, "pi-worker-0"))
            group = scene.find(GROUPS, group_of(scene, "pi-worker-0"))
            assert group is not None and group["spec"]["minMember"] == 3
            assert group["metadata"]["ownerReferences"][0]["apiVersion"] == "kubeflow.org/v2beta1"

    play(story, limit_s=60.0)


def test_nothing_is_told_of_kinds_that_the_server_does_not_have(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def story(scene: Scene) -> None:
        async with working(scene.client) as loop:
            await until(lambda: all(loop._following[kind.name].absent for kind in READ if kind.group != "scheduling.k8s.io"))
            scene.job("j")
            await until(lambda: scene.all(GROUPS))

    play(story, limit_s=60.0)
    told = " ".join(record.getMessage() for record in caplog.records)
    assert "the cluster was read" in told and not [kind.plural for kind in READ if kind.plural != "podgroups" and kind.plural in told]


def test_a_role_that_may_not_watch_jobsets_reads_them_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(scene: Scene) -> None:
        scene.create(DEFINITIONS, definition(JOB_SETS), "")
        pages = scene.client.pages

        def refused(scope: ListScope, **options: Any) -> Any:
            if scope.resource == JOB_SETS:
                raise ApiError(403, "Forbidden", "jobsets is forbidden")
            return pages(scope, **options)

        monkeypatch.setattr(scene.client, "pages", refused)
        async with working(scene.client):
            scene.create("pods", pod_of(job_set(scene), "train-w-0"))
            await until(lambda: group_of(scene, "train-w-0"))
            assert group_of(scene, "train-w-0").startswith("train-")

    play(story, limit_s=60.0)
