"""Admission of pods: what they are given, what is refused, what may change, what a namespace may use."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.cluster.apiserver import PatchRequest, StatusError
from tests.apiserver.made import pod, store


@pytest.mark.parametrize(
    ("stated", "requests"),
    [
        ({"limits": {"cpu": "2"}}, {"cpu": "1"}),  # what the container asks for
        ({"limits": {"cpu": "2", "memory": "1Gi"}}, {"cpu": "1", "memory": "1Gi"}),
        ({"limits": {"cpu": "2"}, "requests": {"cpu": "500m"}}, {"cpu": "500m"}),
        ({"requests": {"memory": "1Gi"}}, {"memory": "1Gi"}),
    ],
)
def test_limits_of_the_whole_pod_become_requests_too(stated: dict[str, Any], requests: dict[str, str]) -> None:
    made, asked = store(), pod("p", resources=stated)
    asked["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    assert made.create("pods", asked, "default")["spec"]["resources"]["requests"] == requests


def test_limits_become_requests_and_name_the_quality_of_service() -> None:
    made = store()

    def made_with(resources: dict[str, Any]) -> dict[str, Any]:
        return made.create(
            "pods",
            {"metadata": {"generateName": "p"}, "spec": {"containers": [{"name": "c", "image": "x", "resources": resources}]}},
            "default",
        )

    guaranteed = made_with({"limits": {"cpu": "1", "memory": "1Gi"}})
    assert guaranteed["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert guaranteed["status"]["qosClass"] == "Guaranteed"
    assert made_with({"requests": {"cpu": "1"}})["status"]["qosClass"] == "Burstable"
    assert made_with({})["status"]["qosClass"] == "BestEffort"


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"restartPolicy": "Sometimes"}, 'spec.restartPolicy: Unsupported value: "Sometimes"'),
        ({"containers": []}, "spec.containers: Required value"),
        ({"containers": [{"name": "c"}]}, r"spec.containers\[0\].image: Required value"),
        ({"containers": [{"name": "c", "image": "x"}] * 2}, 'Duplicate value: "c"'),
        (
            {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}]},
            "must be less than or equal to cpu limit",
        ),
        (
            {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]},
            "Limit must be set for non overcommitable resources",
        ),
        ({"containers": [{"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "500m"}}}]}, "must be an integer"),
        ({"tolerations": [{"operator": "Equal"}]}, "operator must be Exists when `key` is empty"),
        (
            {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]},
            "must be greater than zero",
        ),
    ],
)
def test_pods_that_cannot_be_run_are_refused(spec: dict[str, Any], sentence: str) -> None:
    with pytest.raises(StatusError, match=sentence):
        store().create("pods", pod("p", **spec), "default")


@pytest.mark.parametrize(
    ("container", "sentence"),
    [
        ({"imagePullPolicy": "Now"}, r'imagePullPolicy: Unsupported value: "Now": supported values: "Always", "IfNotPresent", "Never"'),
        ({"terminationMessagePolicy": "x"}, r'terminationMessagePolicy: Unsupported value: "x": supported values: "File"'),
        ({"ports": [{"containerPort": 80, "protocol": "ICMP"}]}, r'ports\[0\]\.protocol: Unsupported value: "ICMP"'),
        ({"ports": [{"containerPort": 80, "hostPort": 70000}]}, r"ports\[0\]\.hostPort: Invalid value: 70000: must be between 1 and 65535"),
        ({"env": [{"value": "a"}]}, r"env\[0\]\.name: Required value"),
        ({"volumeMounts": [{"name": "b", "mountPath": "/a"}]}, r'volumeMounts\[0\]\.name: Not found: "b"'),
        ({"volumeMounts": [{"name": "a"}]}, r"volumeMounts\[0\]\.mountPath: Required value"),
        ({"volumeMounts": [{"name": "a", "mountPath": "/a"}] * 2}, r'volumeMounts\[1\]\.mountPath: Invalid value: "/a": must be unique'),
    ],
)
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_containers_that_cannot_be_run_are_refused(field: str, container: dict[str, Any], sentence: str) -> None:
    each = {"name": "d", "image": "x", **container}
    spec = {"containers": [{"name": "c", "image": "x"}], "volumes": [{"name": "a"}], field: [each]}
    with pytest.raises(StatusError, match=rf"spec\.{field}\[0\]\.{sentence}"):
        store().create("pods", pod("p", **spec), "default")


def test_volumes_have_names_of_their_own() -> None:
    with pytest.raises(StatusError, match=r'spec\.volumes\[1\]\.name: Duplicate value: "a"'):
        store().create("pods", pod("p", volumes=[{"name": "a"}] * 2), "default")


def test_a_running_pod_changes_only_what_may_change() -> None:
    made = store()
    made.create("pods", pod("p"), "default")
    made.patch("pods", "p", PatchRequest("strategic", {"spec": {"containers": [{"name": "c", "image": "new"}]}}), "default")
    with pytest.raises(StatusError, match="pod updates may not change fields other than"):
        made.patch("pods", "p", PatchRequest("merge", {"spec": {"schedulerName": "other"}}), "default")
    with pytest.raises(StatusError, match="pod updates may not change fields other than"):
        made.patch("pods", "p", PatchRequest("merge", {"spec": {"nodeName": "n"}}), "default")


def test_priority_is_taken_from_the_class() -> None:
    made = store()
    made.create("priorityclasses.scheduling.k8s.io", {"metadata": {"name": "high"}, "value": 7, "preemptionPolicy": "Never"})
    classed = made.create("pods", pod("a", priorityClassName="high"), "default")["spec"]
    assert (classed["priority"], classed["preemptionPolicy"]) == (7, "Never")
    assert made.create("pods", pod("b"), "default")["spec"]["priority"] == 0
    made.create("priorityclasses.scheduling.k8s.io", {"metadata": {"name": "usual"}, "value": 3, "globalDefault": True})
    assert made.create("pods", pod("c"), "default")["spec"]["priorityClassName"] == "usual"
    with pytest.raises(StatusError, match="no PriorityClass with name none was found"):
        made.create("pods", pod("d", priorityClassName="none"), "default")


def test_a_quota_limits_what_a_namespace_uses() -> None:
    made = store()
    made.create(
        "resourcequotas",
        {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "2", "requests.cpu": "1", "count/configmaps": "1"}}},
        "default",
    )

    def ask(name: str, cpu: str | None) -> None:
        resources = {"requests": {"cpu": cpu}} if cpu else {}
        made.create("pods", pod(name, containers=[{"name": "c", "image": "x", "resources": resources}]), "default")

    ask("a", "600m")
    with pytest.raises(
        StatusError, match=r"exceeded quota: q, requested: requests\.cpu=600m, used: requests\.cpu=600m, limited: requests\.cpu=1"
    ):
        ask("b", "600m")
    with pytest.raises(StatusError, match=r"must specify requests\.cpu"):
        ask("b", None)
    ask("b", "400m")
    made.create("configmaps", {"metadata": {"name": "one"}}, "default")
    with pytest.raises(StatusError, match="exceeded quota"):
        made.create("configmaps", {"metadata": {"name": "two"}}, "default")


def test_limit_ranges_give_to_those_who_do_not_ask() -> None:
    made = store()
    limit = {"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}
    made.create("limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [limit]}}, "default")
    resources = made.create("pods", pod("p"), "default")["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"completionMode": "Indexed", "parallelism": 1}, "spec.completions: Required value: when completion mode is Indexed"),
        ({"backoffLimitPerIndex": 1}, "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"),
        ({"successPolicy": {"rules": []}}, "requires indexed completion mode"),
        (
            {"completionMode": "Indexed", "completions": 1, "maxFailedIndexes": 1},
            "spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified",
        ),
        ({"podFailurePolicy": {"rules": []}, "restart": "OnFailure"}, 'only "Never" is supported when podFailurePolicy is specified'),
        ({"maxFailedIndexes": -1}, "spec.maxFailedIndexes: Invalid value: -1: must be greater than or equal to 0"),
    ],
)
def test_jobs_whose_fields_do_not_fit_together_are_refused(spec: dict[str, Any], sentence: str) -> None:
    restart = spec.get("restart", "Never")
    whole = {"template": {"spec": {**pod("p")["spec"], "restartPolicy": restart}}, **spec}
    whole.pop("restart", None)
    with pytest.raises(StatusError) as refused:
        store().create("jobs.batch", {"metadata": {"name": "j"}, "spec": whole}, "default")
    assert sentence in refused.value.message


def test_a_job_selects_its_own_pods_and_no_others() -> None:
    template = {"metadata": {"labels": {"a": "c"}}, "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    spec = {"manualSelector": True, "template": template}
    with pytest.raises(StatusError, match="`selector` does not match template `labels`"):
        store().create("jobs.batch", {"metadata": {"name": "j"}, "spec": {**spec, "selector": {"matchLabels": {"a": "b"}}}}, "default")
    with pytest.raises(StatusError, match=r"spec\.selector: Required value"):
        store().create("jobs.batch", {"metadata": {"name": "j"}, "spec": spec}, "default")
    made = store()
    job = made.create("jobs.batch", {"metadata": {"name": "j"}, "spec": {**spec, "selector": {"matchLabels": {"a": "c"}}}}, "default")
    with pytest.raises(StatusError, match=r"spec\.selector: Invalid value: field is immutable"):
        made.update("jobs.batch", job | {"spec": {**job["spec"], "selector": {"matchLabels": {}}}})
