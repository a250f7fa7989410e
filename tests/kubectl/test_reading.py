"""kubectl's reading commands: discovery, get in all its forms, describe, explain, events, top, logs."""

from __future__ import annotations

import json

import pytest

from tests.kubectl.conftest import Kubectl

pytestmark = pytest.mark.kubectl

NODE = {
    "metadata": {"name": "n1", "labels": {"zone": "a"}},
    "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]},
}


def pod(name: str, app: str = "web", node: str = "") -> dict[str, object]:
    spec: dict[str, object] = {"containers": [{"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "500m"}}}]}
    return {"metadata": {"name": name, "labels": {"app": app}}, "spec": spec | ({"nodeName": node} if node else {})}


@pytest.fixture(scope="module", autouse=True)
def cluster(kubectl: Kubectl) -> None:
    def fill(store) -> None:  # type: ignore[no-untyped-def]
        store.create("nodes", NODE)
        store.create("pods", pod("a", node="n1"), "default")
        store.create("pods", pod("b", "db"), "default")
        uid = store.get("pods", "a", "default")["metadata"]["uid"]
        event = {"metadata": {"name": "a.1"}, "reason": "Scheduled", "message": "Successfully assigned", "type": "Normal", "count": 1}
        event |= {"involvedObject": {"kind": "Pod", "name": "a", "namespace": "default", "uid": uid}, "source": {"component": "volcano"}}
        store.create("events", event | {"lastTimestamp": "2026-01-01T00:00:00Z", "firstTimestamp": "2026-01-01T00:00:00Z"}, "default")
        usage = {"timestamp": "2026-01-01T00:00:00Z", "window": "10s"}
        store.create("nodes.metrics.k8s.io", usage | {"metadata": {"name": "n1"}, "usage": {"cpu": "1", "memory": "1Gi"}})
        containers = [{"name": "c", "usage": {"cpu": "250m", "memory": "64Mi"}}]
        store.create("pods.metrics.k8s.io", usage | {"metadata": {"name": "a"}, "containers": containers}, "default")

    kubectl.running.call(fill)


def test_get_pods_prints_the_classic_columns(kubectl: Kubectl) -> None:
    lines = kubectl("get", "pods").splitlines()
    assert lines[0].split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert lines[1].split()[:4] == ["a", "0/1", "Pending", "0"]


def test_wide_output_shows_the_node(kubectl: Kubectl) -> None:
    lines = kubectl("get", "pods", "-A", "-o", "wide", "-l", "app=web", "--field-selector", "spec.nodeName=n1").splitlines()
    assert lines[0].split()[:9] == ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED"]
    assert len(lines) == 2
    assert lines[1].split()[7] == "n1"


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("app=web", "a"),
        ("app!=web", "b"),
        ("app in (web,db)", "a b"),
        ("app notin (web)", "b"),
        ("app", "a b"),
        ("!app", ""),
        ("app==db", "b"),
    ],
)
def test_label_selectors_choose(kubectl: Kubectl, selector: str, names: str) -> None:
    assert kubectl("get", "pods", "-l", selector, "-o", "jsonpath={.items[*].metadata.name}") == names


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("metadata.name=a", "a"),
        ("spec.nodeName=n1", "a"),
        ("spec.nodeName!=n1", "b"),
        ("status.phase=Pending,spec.schedulerName=default-scheduler", "a b"),
    ],
)
def test_field_selectors_choose(kubectl: Kubectl, selector: str, names: str) -> None:
    assert kubectl("get", "pods", "--field-selector", selector, "-o", "jsonpath={.items[*].metadata.name}") == names


def test_an_unknown_field_label_is_refused(kubectl: Kubectl) -> None:
    assert "field label not supported: spec.hostname" in kubectl.refused("get", "pods", "--field-selector", "spec.hostname=x")


def test_output_as_yaml_json_name_and_jsonpath(kubectl: Kubectl) -> None:
    assert "nodeName: n1" in kubectl("get", "pod", "a", "-o", "yaml")
    assert json.loads(kubectl("get", "pod", "a", "-o", "json"))["kind"] == "Pod"
    assert kubectl("get", "pods", "-o", "name").split() == ["pod/a", "pod/b"]
    assert kubectl("get", "pod", "a", "-o", "jsonpath={.spec.nodeName}") == "n1"
    assert kubectl("get", "pods", "-o", "custom-columns=N:.metadata.name", "--no-headers").split() == ["a", "b"]


def test_sorting_asks_for_whole_objects(kubectl: Kubectl) -> None:
    assert kubectl("get", "pods", "--sort-by=.metadata.labels.app", "--no-headers").split("\n")[0].startswith("b")


def test_labels_as_columns(kubectl: Kubectl) -> None:
    lines = kubectl("get", "pods", "-L", "app", "--show-labels").splitlines()
    assert lines[0].split()[-2:] == ["APP", "LABELS"]
    assert lines[1].split()[-2:] == ["web", "app=web"]


def test_a_subresource_can_be_read(kubectl: Kubectl) -> None:
    assert "a" in kubectl("get", "pod", "a", "--subresource=status")


def test_several_objects_at_once_and_one_that_is_missing(kubectl: Kubectl) -> None:
    assert len(kubectl("get", "pod/a", "node/n1", "--no-headers").split("\n")) >= 2
    assert 'Error from server (NotFound): pods "zzz" not found' in kubectl.refused("get", "pod", "zzz")


def test_get_all_lists_what_the_category_has(kubectl: Kubectl) -> None:
    assert "pod/a" in kubectl("get", "all")


def test_nodes_show_state_and_roles(kubectl: Kubectl) -> None:
    lines = kubectl("get", "nodes").splitlines()
    assert lines[0].split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert lines[1].split()[:3] == ["n1", "Ready", "<none>"]


def test_describe_shows_events_and_allocations(kubectl: Kubectl) -> None:
    assert "Successfully assigned" in kubectl("describe", "pod", "a")
    described = kubectl("describe", "node", "n1")
    assert "cpu                500m (12%)" in described
    assert "Non-terminated Pods:          (1 in total)" in described


def test_describe_finds_by_prefix(kubectl: Kubectl) -> None:
    kubectl.running.call(lambda store: store.create("queues.scheduling.volcano.sh", {"metadata": {"name": "research"}, "spec": {}}))
    assert "Name:         research" in kubectl("describe", "queue", "res")


def test_explain_knows_built_in_and_custom_kinds(kubectl: Kubectl) -> None:
    assert "imagePullPolicy" in kubectl("explain", "pod.spec.containers")
    assert "-required-" in kubectl("explain", "pod.spec.containers")
    assert "minMember" in kubectl("explain", "podgroup.spec")
    assert "replicas" in kubectl("explain", "deployment.spec", "--recursive")


def test_discovery_commands(kubectl: Kubectl) -> None:
    resources = kubectl("api-resources")
    assert "vcjob,vj" in resources
    assert "podgroups" in kubectl("api-resources", "--api-group=scheduling.volcano.sh")
    assert "batch.volcano.sh/v1alpha1" in kubectl("api-versions").split()
    assert "Server Version: v1.36" in kubectl("version")
    assert "is running at" in kubectl("cluster-info")


def test_events_and_top(kubectl: Kubectl) -> None:
    assert "Successfully assigned" in kubectl("events")
    assert kubectl("get", "events").splitlines()[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert "pod/a" in kubectl("get", "events.v1.events.k8s.io")
    assert kubectl("top", "node").splitlines()[1].split() == ["n1", "1000m", "25%", "1024Mi", "12%"]
    assert kubectl("top", "pod").splitlines()[1].split() == ["a", "250m", "64Mi"]


def test_logs_are_empty_until_somebody_runs_pods(kubectl: Kubectl) -> None:
    assert kubectl("logs", "a") == ""
    assert kubectl("logs", "a", "-c", "c", "--tail=5") == ""
    assert "container x is not valid for pod a" in kubectl.refused("logs", "a", "-c", "x")
    assert 'previous terminated container "c" in pod "a" not found' in kubectl.refused("logs", "a", "--previous")


@pytest.mark.parametrize("command", [["exec", "runs", "--", "ls"], ["attach", "runs"], ["port-forward", "runs", "8080:80"]])
def test_what_needs_a_container_says_that_there_is_none(kubectl: Kubectl, command: list[str]) -> None:
    def run(store) -> None:  # type: ignore[no-untyped-def]
        if store.find("pods", "kube-system", "runs") is None:
            made = store.create("pods", pod("runs", node="n1"), "kube-system")
            store.update("pods", made | {"status": {"phase": "Running"}}, "status")

    kubectl.running.call(run)
    assert 'container not found ("c")' in kubectl.refused("-n", "kube-system", *command)


def test_commands_on_jobs_of_volcano(kubectl: Kubectl) -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "busybox"}]}}
    job = {"metadata": {"name": "train"}, "spec": {"minAvailable": 2, "tasks": [{"name": "w", "replicas": 2, "template": template}]}}
    kubectl.running.call(lambda store: store.create("jobs.batch.volcano.sh", job, "default"))
    assert kubectl("get", "vcjob").splitlines()[0].split() == ["NAME", "STATUS", "MINAVAILABLE", "RUNNINGS", "AGE"]
    assert kubectl("get", "vj", "-o", "name").strip() == "job.batch.volcano.sh/train"
    assert "Min Available:  2" in kubectl("describe", "vcjob", "tra")
    assert 'jobs.batch.volcano.sh "none" not found' in kubectl.refused("describe", "vcjob", "none")


def test_raw_paths_are_passed_through(kubectl: Kubectl) -> None:
    assert kubectl("get", "--raw", "/readyz") == "ok"
    assert json.loads(kubectl("get", "--raw", "/api/v1/namespaces/default/pods?limit=1"))["metadata"]["continue"]


def test_lists_are_paged(kubectl: Kubectl) -> None:
    assert kubectl("get", "pods", "--chunk-size=1", "-o", "name").split() == ["pod/a", "pod/b"]
