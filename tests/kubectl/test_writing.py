"""kubectl's writing commands: create, apply both ways, patch, edit, label, scale, drain, delete."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.kubectl.conftest import Kubectl

pytestmark = pytest.mark.kubectl

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: a, image: one, ports: [{containerPort: 80}]}
      - {name: b, image: two}
"""
QUEUE = "---\n{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: %s}, spec: {weight: %d}}"
POD = "---\n{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {app: %s}}, spec: {containers: [{name: c, image: busybox}]}}"


def read(kubectl: Kubectl, *what: str) -> dict:  # type: ignore[type-arg]
    return json.loads(kubectl("get", *what, "-o", "json"))


def test_creating_by_command_sends_protobuf(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "made")
    kubectl("create", "configmap", "settings", "--from-literal=color=blue")
    kubectl("create", "secret", "generic", "secret", "--from-literal=key=value")
    kubectl("create", "deployment", "made", "--image=nginx", "--replicas=3", "--port=80")
    kubectl("create", "job", "once", "--image=busybox", "--", "sleep", "1")
    kubectl("create", "cronjob", "often", "--image=busybox", "--schedule=* * * * *")
    kubectl("create", "priorityclass", "high", "--value=1000", "--description=first")
    kubectl("create", "quota", "limited", "--hard=pods=100,cpu=10")
    kubectl("create", "serviceaccount", "robot")
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods")
    kubectl("create", "rolebinding", "readers", "--role=reader", "--serviceaccount=default:robot")
    kubectl("create", "clusterrole", "nodes", "--verb=get", "--resource=nodes")
    kubectl("create", "clusterrolebinding", "nodes", "--clusterrole=nodes", "--user=ann")
    kubectl("create", "poddisruptionbudget", "budget", "--selector=app=made", "--min-available=1")
    kubectl("create", "service", "clusterip", "made", "--tcp=80:8080")
    kubectl("create", "ingress", "made", "--rule=example.com/=made:80")
    assert read(kubectl, "configmap", "settings")["data"] == {"color": "blue"}
    assert read(kubectl, "secret", "secret")["data"] == {"key": "dmFsdWU="}
    made = read(kubectl, "deployment", "made")["spec"]
    assert (made["replicas"], made["template"]["spec"]["containers"][0]["ports"][0]["containerPort"]) == (3, 80)
    assert read(kubectl, "job", "once")["spec"]["template"]["spec"]["containers"][0]["command"] == ["sleep", "1"]
    assert read(kubectl, "priorityclass", "high")["value"] == 1000
    assert read(kubectl, "quota", "limited")["spec"]["hard"] == {"pods": "100", "cpu": "10"}
    assert read(kubectl, "service", "made")["spec"]["ports"][0]["targetPort"] == 8080
    assert read(kubectl, "poddisruptionbudget", "budget")["spec"]["minAvailable"] == 1
    kubectl("delete", "quota", "limited")


def test_run_and_expose_and_autoscale(kubectl: Kubectl) -> None:
    kubectl("run", "runner", "--image=busybox", "--labels=app=runner", "--port=80")
    kubectl("expose", "pod", "runner", "--port=80")
    kubectl("create", "deployment", "grows", "--image=nginx")
    kubectl("autoscale", "deployment", "grows", "--min=1", "--max=3")
    assert read(kubectl, "service", "runner")["spec"]["selector"] == {"app": "runner"}
    assert read(kubectl, "hpa", "grows")["spec"]["maxReplicas"] == 3


def test_a_second_create_says_that_it_exists(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "twice")
    assert 'Error from server (AlreadyExists): configmaps "twice" already exists' in kubectl.refused(
        "create", "configmap", "twice"
    ).replace("error: failed to create configmap:", "Error from server (AlreadyExists):")


def test_unknown_fields_are_refused_with_their_path(kubectl: Kubectl) -> None:
    text = POD.replace("image: busybox", "image: busybox, imag: x") % ("wrong", "x")
    assert 'unknown field "spec.containers[0].imag"' in kubectl.refused("create", "-f", "-", stdin=text)
    assert 'unknown field "spec.wight"' in kubectl.refused("apply", "-f", "-", stdin=(QUEUE % ("wrong", 1)).replace("weight", "wight"))
    warned = kubectl.run("create", "--validate=warn", "-f", "-", stdin=text)
    assert 'Warning: unknown field "spec.containers[0].imag"' in warned.stderr
    assert warned.returncode == 0


def test_wrong_types_are_refused_as_the_server_does(kubectl: Kubectl) -> None:
    refused = kubectl.refused("create", "-f", "-", stdin=POD % ("typed", "y"))
    assert "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string" in refused


def test_schemas_of_custom_kinds_are_enforced(kubectl: Kubectl) -> None:
    assert "spec.weight in body should be less than or equal to 65535" in kubectl.refused(
        "apply", "-f", "-", stdin=QUEUE % ("heavy", 70000)
    )


def test_client_side_apply_of_built_in_kinds_merges_strategically(kubectl: Kubectl) -> None:
    assert "created" in kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    assert "unchanged" in kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    assert "configured" in kubectl("apply", "-f", "-", stdin=DEPLOYMENT.replace("image: two", "image: three"))
    containers = read(kubectl, "deployment", "web")["spec"]["template"]["spec"]["containers"]
    assert [(one["name"], one["image"]) for one in containers] == [("a", "one"), ("b", "three")]
    assert "configured" in kubectl("apply", "-f", "-", stdin=DEPLOYMENT.replace("      - {name: b, image: two}\n", ""))
    assert len(read(kubectl, "deployment", "web")["spec"]["template"]["spec"]["containers"]) == 1


def test_client_side_apply_of_custom_kinds_merges_plainly(kubectl: Kubectl) -> None:
    for weight, word in ((1, "created"), (1, "unchanged"), (2, "configured")):
        assert word in kubectl("apply", "-f", "-", stdin=QUEUE % ("applied", weight))
    assert read(kubectl, "queue", "applied")["spec"]["weight"] == 2


def test_server_side_apply_and_its_conflicts(kubectl: Kubectl) -> None:
    text = DEPLOYMENT.replace("name: web", "name: ssa", 1)
    kubectl("apply", "--server-side", "-f", "-", stdin=text)
    other = text.replace("replicas: 2", "replicas: 5")
    refused = kubectl.refused("apply", "--server-side", "--field-manager=other", "-f", "-", stdin=other)
    assert 'conflict with "kubectl" using apps/v1: .spec.replicas' in refused
    kubectl("apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-", stdin=other)
    assert read(kubectl, "deployment", "ssa")["spec"]["replicas"] == 5
    kubectl("apply", "--server-side", "-f", "-", stdin=text.replace("  replicas: 2\n", ""))
    assert read(kubectl, "deployment", "ssa")["spec"]["replicas"] == 5


def test_server_side_apply_drops_what_is_applied_no_more(kubectl: Kubectl) -> None:
    text = DEPLOYMENT.replace("name: web", "name: dropped", 1)
    kubectl("apply", "--server-side", "-f", "-", stdin=text)
    kubectl("apply", "--server-side", "-f", "-", stdin=text.replace("      - {name: b, image: two}\n", ""))
    assert [one["name"] for one in read(kubectl, "deployment", "dropped")["spec"]["template"]["spec"]["containers"]] == ["a"]


def test_changing_from_client_side_to_server_side_apply(kubectl: Kubectl) -> None:
    text = DEPLOYMENT.replace("name: web", "name: moved", 1)
    kubectl("apply", "-f", "-", stdin=text)
    done = kubectl.run("apply", "--server-side", "-f", "-", stdin=text.replace("replicas: 2", "replicas: 4"))
    assert (done.returncode, done.stderr) == (0, "")
    assert read(kubectl, "deployment", "moved")["spec"]["replicas"] == 4


def test_diff_and_dry_run_change_nothing(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=QUEUE % ("kept", 1))
    done = kubectl.run("diff", "-f", "-", stdin=QUEUE % ("kept", 9))
    assert done.returncode == 1
    assert "+  weight: 9" in done.stdout
    kubectl("apply", "--dry-run=server", "-f", "-", stdin=QUEUE % ("kept", 9))
    kubectl("delete", "queue", "kept", "--dry-run=server")
    assert read(kubectl, "queue", "kept")["spec"]["weight"] == 1


@pytest.mark.parametrize(
    ("how", "patch"),
    [
        ("strategic", '{"spec":{"template":{"spec":{"containers":[{"name":"a","image":"patched"}]}}}}'),
        ("merge", '{"spec":{"template":{"spec":{"containers":[{"name":"a","image":"patched"}]}}}}'),
        ("json", '[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"patched"}]'),
    ],
)
def test_patch(kubectl: Kubectl, how: str, patch: str) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT.replace("name: web", f"name: patched-{how}", 1))
    kubectl("patch", "deployment", f"patched-{how}", "--type", how, "-p", patch)
    containers = read(kubectl, "deployment", f"patched-{how}")["spec"]["template"]["spec"]["containers"]
    assert containers[0]["image"] == "patched"
    assert len(containers) == (1 if how == "merge" else 2)


def test_patching_a_status_leaves_the_spec_alone(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=QUEUE % ("open", 3))
    kubectl("patch", "queue", "open", "--subresource=status", "--type=merge", "-p", '{"status":{"state":"Open"},"spec":{"weight":8}}')
    queue = read(kubectl, "queue", "open")
    assert (queue["status"]["state"], queue["spec"]["weight"], queue["metadata"]["generation"]) == ("Open", 3, 1)
    kubectl("patch", "queue", "open", "--type=merge", "-p", '{"status":{"state":"Closed"},"spec":{"weight":8}}')
    queue = read(kubectl, "queue", "open")
    assert (queue["status"]["state"], queue["spec"]["weight"], queue["metadata"]["generation"]) == ("Open", 8, 2)


def test_label_annotate_taint_and_cordon(kubectl: Kubectl) -> None:
    kubectl.running.call(lambda store: store.create("nodes", {"metadata": {"name": "marked"}}))
    kubectl("label", "node", "marked", "a=b")
    kubectl("annotate", "node", "marked", "c=d")
    kubectl("taint", "node", "marked", "gpu=yes:NoSchedule")
    kubectl("taint", "node", "marked", "other=yes:NoExecute")
    kubectl("taint", "node", "marked", "gpu-")
    kubectl("cordon", "marked")
    node = read(kubectl, "node", "marked")
    assert node["metadata"]["labels"] == {"a": "b"}
    assert node["metadata"]["annotations"] == {"c": "d"}
    taints = [(taint["key"], taint["effect"]) for taint in node["spec"]["taints"]]
    assert ("other", "NoExecute") in taints
    assert not any(key == "gpu" for key, _ in taints)
    assert node["spec"]["unschedulable"] is True
    assert "SchedulingDisabled" in kubectl("get", "node", "marked")
    kubectl("uncordon", "marked")
    assert "unschedulable" not in read(kubectl, "node", "marked")["spec"]
    kubectl("label", "node", "marked", "a-")
    assert not read(kubectl, "node", "marked")["metadata"].get("labels")


def test_edit_replaces_what_the_editor_changed(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT.replace("name: web", "name: edited", 1))
    kubectl.environment["KUBE_EDITOR"] = "sed -i s/two/edited-image/"
    kubectl("edit", "deployment", "edited")
    assert read(kubectl, "deployment", "edited")["spec"]["template"]["spec"]["containers"][1]["image"] == "edited-image"


def test_replace_needs_the_object_and_the_latest_version(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "replaced", "--from-literal=a=1")
    old = kubectl("get", "configmap", "replaced", "-o", "json")
    kubectl("replace", "-f", "-", stdin=old.replace('"1"', '"2"'))
    refused = kubectl.refused("replace", "-f", "-", stdin=old.replace('"1"', '"3"'))
    assert "the object has been modified; please apply your changes to the latest version and try again" in refused


def test_scale_goes_through_the_subresource(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "scaled", "--image=nginx")
    kubectl("scale", "deployment", "scaled", "--replicas=7")
    assert read(kubectl, "deployment", "scaled")["spec"]["replicas"] == 7
    kubectl("patch", "deployment", "scaled", "--subresource=scale", "--type=merge", "-p", '{"spec":{"replicas":2}}')
    assert read(kubectl, "deployment", "scaled")["spec"]["replicas"] == 2


def test_binding_by_hand(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=POD % ("bound", "bound"))
    body = '{"apiVersion":"v1","kind":"Binding","metadata":{"name":"bound"},"target":{"kind":"Node","name":"somewhere"}}'
    path = "/api/v1/namespaces/default/pods/bound/binding"
    kubectl("create", "--raw", path, "-f", "-", stdin=body)
    assert read(kubectl, "pod", "bound")["spec"]["nodeName"] == "somewhere"
    assert "already assigned" in kubectl.refused("create", "--raw", path, "-f", "-", stdin=body)


def test_delete_waits_until_the_kubelet_let_go(kubectl: Kubectl, kubelet: None) -> None:
    kubectl("create", "-f", "-", stdin=(POD % ("goes", "goes")).replace("spec: {", "spec: {nodeName: n1, "))
    assert 'pod "goes" deleted' in kubectl("delete", "pod", "goes")
    assert "NotFound" in kubectl.refused("get", "pod", "goes")


def test_delete_by_label_and_by_force(kubectl: Kubectl) -> None:
    for name in ("x1", "x2"):
        kubectl("create", "-f", "-", stdin=(POD % (name, "many")).replace("spec: {", "spec: {nodeName: n1, "))
    deleted = kubectl("delete", "pods", "-l", "app=many", "--force", "--grace-period=0")
    assert "x1" in deleted
    assert "x2" in deleted
    assert "No resources found" in kubectl.run("get", "pods", "-l", "app=many").stderr


def test_drain_evicts_and_honours_budgets(kubectl: Kubectl, kubelet: None, until: Callable[[Callable[[], bool]], None]) -> None:
    kubectl.running.call(lambda store: store.create("nodes", {"metadata": {"name": "leaving"}}))
    kubectl("create", "-f", "-", stdin=(POD % ("guest", "guest")).replace("spec: {", "spec: {nodeName: leaving, "))
    kubectl("create", "poddisruptionbudget", "guests", "--selector=app=guest", "--min-available=1")

    def allow(count: int):  # type: ignore[no-untyped-def]
        def write(store) -> None:  # type: ignore[no-untyped-def]
            budget = store.get("poddisruptionbudgets.policy", "guests", "default")
            status = {"observedGeneration": 1, "disruptionsAllowed": count, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
            store.update("poddisruptionbudgets.policy", budget | {"status": status}, "status")
            pod = store.get("pods", "guest", "default")
            running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            store.update("pods", pod | {"status": running}, "status")

        return write

    kubectl.running.call(allow(0))
    refused = kubectl.refused("drain", "leaving", "--force", "--timeout=2s")
    assert "Cannot evict pod as it would violate the pod's disruption budget." in refused
    kubectl.running.call(allow(1))
    assert "node/leaving drained" in kubectl("drain", "leaving", "--force", "--timeout=10s")


def test_namespaces_are_emptied_before_they_go(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "full")
    kubectl("create", "configmap", "inside", "-n", "full")
    assert 'namespace "full" deleted' in kubectl("delete", "namespace", "full")
    assert "NotFound" in kubectl.refused("get", "configmap", "inside", "-n", "full")
    assert 'namespaces "nowhere" not found' in kubectl.refused("create", "configmap", "x", "-n", "nowhere")


def test_owned_objects_follow_their_owner(kubectl: Kubectl, until: Callable[[Callable[[], bool]], None]) -> None:
    for cascade, survives in (("background", False), ("foreground", False), ("orphan", True)):
        kubectl("create", "configmap", f"owner-{cascade}")
        owner = read(kubectl, "configmap", f"owner-{cascade}")["metadata"]
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["name"], "uid": owner["uid"], "blockOwnerDeletion": True}
        dependent = {"metadata": {"name": f"owned-{cascade}", "ownerReferences": [reference]}}
        kubectl.running.call(lambda store, dependent=dependent: store.create("configmaps", dependent, "default"))
        kubectl("delete", "configmap", f"owner-{cascade}", f"--cascade={cascade}")

        def as_wished(name: str = f"owned-{cascade}", survives: bool = survives) -> bool:
            done = kubectl.run("get", "configmap", name, "-o", "jsonpath={.metadata.ownerReferences}")
            return (done.returncode == 0 and not done.stdout.strip("[]")) if survives else done.returncode == 1

        until(as_wished)
