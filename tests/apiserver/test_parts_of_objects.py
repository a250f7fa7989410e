"""Writes that change only their part of an object, or nothing at all because they are refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pumice.api.json_objects import merged
from pumice.cluster.apiserver import PatchRequest, StatusError, Store
from pumice.cluster.apiserver.archive import export_cluster
from tests.apiserver.made import pod, store

GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
EVERYTHING = {
    "metadata": {"labels": {"new": "label"}},
    "spec": {
        "containers": [{"name": "c", "image": "other", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}}}],
        "ephemeralContainers": [{"name": "debug", "image": "busybox"}],
        "activeDeadlineSeconds": 5,
    },
    "status": {"message": "told"},
}  #: a patch that touches what each subresource may and may not change


def _asking(cpu: str) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "busybox", "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": "3"}}}]}


def _differences(one: Any, other: Any, path: str = "") -> set[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        return {found for key in {*one, *other} for found in _differences(one.get(key), other.get(key), f"{path}.{key}")}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return {found for left, right in zip(one, other, strict=True) for found in _differences(left, right, path)}
    return set() if one == other else {path}


@pytest.mark.parametrize(
    ("subresource", "changes"),
    [
        ("resize", {".spec.containers.resources.requests.cpu", ".metadata.generation"}),
        ("ephemeralcontainers", {".spec.ephemeralContainers", ".metadata.generation"}),
        ("status", {".status.message", ".metadata.labels.new"}),
    ],
)
def test_a_subresource_of_a_pod_changes_only_its_part(subresource: str, changes: set[str]) -> None:
    made = store()
    before = made.create("pods", pod("p", {"old": "label"}, **_asking("1")), "default")
    after = made.patch("pods", "p", PatchRequest("strategic", EVERYTHING), "default", subresource)
    assert _differences(before, after) == changes | {".metadata.resourceVersion"}


def test_a_node_may_be_left_without_a_status() -> None:
    made = store()
    made.create("nodes", {"metadata": {"name": "n"}})
    assert "status" not in made.update("nodes", {"metadata": {"name": "n"}}, "status")


def test_finalize_changes_the_finalizers_of_a_namespace_only_and_a_plain_write_all_but_them() -> None:
    made = store()
    before = made.create("namespaces", {"metadata": {"name": "n"}})
    change = PatchRequest("merge", {"metadata": {"labels": {"a": "b"}}, "spec": {"finalizers": ["x.io/y"]}, "status": {"phase": "Odd"}})
    plain = made.patch("namespaces", "n", change)
    assert _differences(before, plain) == {".metadata.labels.a", ".metadata.resourceVersion"}
    made.patch("namespaces", "n", PatchRequest("merge", {"metadata": {"labels": {"a": None}}}))
    finalized = made.patch("namespaces", "n", change, subresource="finalize")
    assert _differences(before, finalized) == {".spec.finalizers", ".metadata.resourceVersion"}


@pytest.mark.parametrize(
    ("resources", "told"),
    [
        ({"requests": None, "limits": None}, "resource requests cannot be removed"),
        ({"limits": {"cpu": None}}, "resource limits cannot be removed"),
        ({"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}, "only cpu and memory resources are mutable"),
        ({"requests": {"cpu": "-1"}}, "must be greater than or equal to 0"),
        ({"requests": {"cpu": "9"}}, "must be less than or equal to cpu limit"),
        (
            {"requests": {"cpu": "3", "memory": "1Gi"}, "limits": {"cpu": "3", "memory": "1Gi"}},
            "Pod QOS Class may not change as a result of resizing",
        ),
    ],
)
def test_resizes_that_are_refused(resources: dict[str, Any], told: str) -> None:
    made = store()
    made.create("pods", pod("p", **_asking("1")), "default")
    with pytest.raises(StatusError, match=told):
        made.patch(
            "pods", "p", PatchRequest("strategic", {"spec": {"containers": [{"name": "c", "resources": resources}]}}), "default", "resize"
        )


def test_ephemeral_containers_are_added_and_never_changed_or_taken_away() -> None:
    made = store()
    made.create("pods", pod("p"), "default")

    def write(containers: list[Any]) -> list[str]:
        patch = PatchRequest("merge", {"spec": {"ephemeralContainers": containers}})
        written = made.patch("pods", "p", patch, "default", "ephemeralcontainers")
        return [container["name"] for container in written["spec"]["ephemeralContainers"]]

    one = {"name": "one", "image": "i"}
    assert write([one]) == ["one"]
    assert write([one, {"name": "two", "image": "i"}]) == ["one", "two"]
    for containers, told in (
        ([one], "may not be removed"),
        ([one | {"image": "j"}, {"name": "two", "image": "i"}], "may not be changed"),
        ([one, {"name": "two", "image": "i"}, {"name": "c", "image": "i"}], "Duplicate value"),
    ):
        with pytest.raises(StatusError, match=told):
            write(containers)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("pods", {"spec": {"schedulingGates": [{"name": "x.io/g"}]}}, "found new scheduling gates"),
    ("pods", {"spec": {"containers": [{"name": "c", "image": "busybox", "resources": {"limits": {"cpu": "1"}}}]}}, "pod updates may not"),
    ("pods", {"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}}, "pod updates may not"),
    ("pods", {"spec": {"terminationGracePeriodSeconds": 5}}, "pod updates may not"),
    ("pods", {"spec": {"nodeSelector": {"a": "b"}}}, "pod updates may not"),
    ("pods", {"spec": {"priority": 7}}, "pod updates may not"),
    ("pods", {"spec": {"activeDeadlineSeconds": 200}}, "less than or equal to previous value"),
    ("pods", {"spec": {"activeDeadlineSeconds": None}}, "must not update from a positive integer"),
    ("pods", {"spec": {"tolerations": []}}, "existing toleration can not be modified"),
    ("deployments.apps", {"spec": {"replicas": -1}}, "must be greater than or equal to 0"),
    ("deployments.apps", {"spec": {"selector": {"matchLabels": {"b": "c"}}}}, "field is immutable"),
    ("services", {"spec": {"type": "Odd"}}, "Unsupported value"),
    ("nodes", {"metadata": {"labels": {"-": "x"}}}, "metadata.labels"),
]


def _with_one_of_each() -> Store:
    made = store()
    tolerations = [{"key": "k", "operator": "Exists"}]
    made.create("pods", pod("x", activeDeadlineSeconds=100, tolerations=tolerations), "default")
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("t")["spec"]}
    made.create("deployments.apps", {"metadata": {"name": "x"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}})
    made.create("services", {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 80}]}}, "default")
    made.create("nodes", {"metadata": {"name": "x"}})
    return made


@pytest.mark.parametrize("form", ["merge", "put"])
@pytest.mark.parametrize(("resource", "change", "told"), REFUSED)
def test_a_refused_write_changes_nothing(form: str, resource: str, change: dict[str, Any], told: str) -> None:
    made = _with_one_of_each()
    namespace = "" if resource == "nodes" else "default"
    before = b"".join(export_cluster(made))
    with pytest.raises(StatusError, match=told):
        if form == "merge":
            made.patch(resource, "x", PatchRequest("merge", change), namespace)
        else:
            made.update(resource, merged(made.get(resource, "x", namespace), change))
    assert b"".join(export_cluster(made)) == before
    assert msgspec.json.decode(before)["version"] == made.storage.version


def test_a_gated_pod_is_marked_when_it_is_made_and_may_narrow_where_it_runs() -> None:
    made = store()
    gated = made.create("pods", pod("p", schedulingGates=[{"name": "x.io/g"}], nodeSelector={"a": "b"}), "default")
    assert [condition | GATED for condition in gated["status"]["conditions"]] == gated["status"]["conditions"]
    made.patch("pods", "p", PatchRequest("merge", {"spec": {"nodeSelector": {"c": "d"}}}), "default")
    with pytest.raises(StatusError, match="pod updates may not"):
        made.patch("pods", "p", PatchRequest("merge", {"spec": {"nodeSelector": {"a": "other"}}}), "default")


def test_a_version_of_zero_asks_for_no_version() -> None:
    made = store()
    made.create("configmaps", {"metadata": {"name": "m"}}, "default")
    for version, expected in (("0", True), ("", True), ("7777", False)):
        body = {"metadata": {"name": "m", "namespace": "default", "resourceVersion": version}, "data": {"a": version or "none"}}
        try:
            assert made.update("configmaps", body)["data"] == {"a": version or "none"}
        except StatusError as error:
            assert (error.code, expected) == (409, False)


def test_generations_start_at_one_and_a_binding_is_none() -> None:
    made = store()
    made.create("nodes", {"metadata": {"name": "n"}})
    assert made.create("pods", pod("p") | {"metadata": {"name": "p", "generation": 9}}, "default")["metadata"]["generation"] == 1
    bound = made.bind("default", "p", "n")
    assert (bound["metadata"]["generation"], bound["status"]["conditions"][0]["observedGeneration"]) == (1, 1)
    changed = made.patch("pods", "p", PatchRequest("merge", {"spec": {"activeDeadlineSeconds": 9}}), "default")
    assert changed["metadata"]["generation"] == 2
    assert made.delete("pods", "p", "default")[0]["metadata"]["generation"] == 3
