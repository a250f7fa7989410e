"""What kubectl can do besides, each in the words that its users know."""

from __future__ import annotations

import re

import pytest

from tests.kubectl.conftest import Kubectl

pytestmark = pytest.mark.kubectl

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, labels: {app: NAME}}
spec:
  replicas: 2
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: c, image: "one"}]}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: %s}}
spec: {containers: [{name: c, image: busybox}]}
"""


def deployment(name: str) -> str:
    return DEPLOYMENT.replace("NAME", name)


def test_services_of_all_types(kubectl: Kubectl) -> None:
    kubectl("create", "service", "nodeport", "np", "--tcp=80:8080")
    kubectl("create", "service", "loadbalancer", "lb", "--tcp=80")
    kubectl("create", "service", "externalname", "en", "--external-name=example.com")
    kubectl("create", "service", "clusterip", "ci", "--clusterip=None")
    rows = {line.split()[0]: line.split()[1:5] for line in kubectl("get", "services", "--no-headers").splitlines()}
    assert rows["kubernetes"] == ["ClusterIP", "10.96.0.1", "<none>", "443/TCP"]
    assert rows["np"][0] == "NodePort" and re.fullmatch(r"80:3\d{4}/TCP", rows["np"][3])
    assert rows["lb"][0] == "LoadBalancer" and rows["lb"][2] == "<pending>"
    assert rows["en"] == ["ExternalName", "<none>", "example.com", "<none>"]
    assert rows["ci"][:2] == ["ClusterIP", "None"]


def test_secrets_of_all_types(kubectl: Kubectl) -> None:
    registry = ("--docker-server=example.com", "--docker-username=ann", "--docker-password=x")
    kubectl("create", "secret", "docker-registry", "registry", *registry)
    assert kubectl("get", "secret", "registry").splitlines()[1].split()[:3] == ["registry", "kubernetes.io/dockerconfigjson", "1"]
    assert "ann" not in kubectl("describe", "secret", "registry")


def test_dry_runs_of_the_client_print_what_would_be_sent(kubectl: Kubectl) -> None:
    printed = kubectl("create", "cronjob", "tick", "--image=busybox", "--schedule=* * * * *", "--dry-run=client", "-o", "yaml")
    assert "cronjob.batch/tick created" in kubectl("create", "-f", "-", stdin=printed)
    assert "created (server dry run)" in kubectl("create", "-f", "-", "--dry-run=server", stdin=printed.replace("name: tick", "name: tock"))
    assert "NotFound" in kubectl.refused("get", "cronjob", "tock")


@pytest.mark.parametrize("how", ["", "--server-side"])
def test_differences_of_built_in_kinds(kubectl: Kubectl, how: str) -> None:
    name = f"differs{how}"
    kubectl("apply", "-f", "-", stdin=deployment(name))
    changed = deployment(name).replace('"one"', '"two"')
    done = kubectl.run("diff", *([how, "--force-conflicts"] if how else []), "-f", "-", stdin=changed)
    assert done.returncode == 1, done.stderr
    assert [line.strip() for line in done.stdout.splitlines() if "image:" in line] == ["-      - image: one", "+      - image: two"]
    same = kubectl.run("diff", "-f", "-", stdin=deployment(name))
    assert (same.returncode, same.stdout) == (0, "")


def test_what_was_applied_last_can_be_looked_at_and_pruned(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=deployment("first"))
    assert "image: one" in kubectl("apply", "view-last-applied", "deployment/first")
    pruning = ("--prune", "-l", "app in (first,second)", "--prune-allowlist=apps/v1/Deployment", "-n", "default")
    pruned = kubectl("apply", "-f", "-", *pruning, stdin=deployment("second"))
    assert "deployment.apps/second created" in pruned
    assert "deployment.apps/first pruned" in pruned


def test_replacing_by_force_deletes_first(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=deployment("forced"))
    before = kubectl("get", "deployment", "forced", "-o", "jsonpath={.metadata.uid}")
    replaced = kubectl("replace", "--force", "-f", "-", stdin=deployment("forced"))
    assert replaced.splitlines() == ['deployment.apps "forced" deleted', "deployment.apps/forced replaced"]
    assert kubectl("get", "deployment", "forced", "-o", "jsonpath={.metadata.uid}") != before


def test_many_objects_at_once(kubectl: Kubectl) -> None:
    for name in ("m1", "m2"):
        kubectl("create", "-f", "-", stdin=POD % (name, "many"))
    assert kubectl("label", "pods", "-l", "app=many", "tier=low").count("labeled") == 2
    assert "already has a value" in kubectl.refused("label", "pods", "-l", "app=many", "tier=high")
    kubectl("label", "pods", "-l", "app=many", "tier=high", "--overwrite")
    assert kubectl("get", "pods", "-l", "tier=high", "-o", "name").split() == ["pod/m1", "pod/m2"]
    assert kubectl("annotate", "pods", "-l", "app=many", "note=x").count("annotated") == 2
    assert kubectl("delete", "pods", "-l", "app=many", "--now").count("deleted") == 2
    assert kubectl("delete", "pod", "m1", "--ignore-not-found") == ""


def test_setting_parts_of_a_template(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=deployment("parts"))
    kubectl("set", "image", "deployment/parts", "c=two")
    kubectl("set", "env", "deployment/parts", "A=1")
    kubectl("set", "resources", "deployment/parts", "--limits=cpu=1", "--requests=cpu=500m")
    kubectl("set", "serviceaccount", "deployment/parts", "robot")
    container = ".spec.template.spec.containers[0]"
    fields = (
        ".spec.template.spec.serviceAccountName",
        f"{container}.image",
        f"{container}.env[0].value",
        f"{container}.resources.requests.cpu",
    )
    shown = " ".join(f"{{{field}}}" for field in fields)
    assert kubectl("get", "deployment", "parts", "-o", f"jsonpath={shown}") == "robot two 1 500m"


def test_output_by_templates_and_with_managers(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=deployment("shown"))
    assert kubectl("get", "deployment", "shown", "-o", "go-template={{.spec.replicas}}") == "2"
    kubectl("apply", "--server-side", "-f", "-", stdin=deployment("shown"))
    assert "manager: kubectl" in kubectl("get", "deployment", "shown", "-o", "yaml", "--show-managed-fields")
    assert "managedFields" not in kubectl("get", "deployment", "shown", "-o", "yaml")
    assert kubectl("get", "deployment", "shown", "--show-kind", "--no-headers").startswith("deployment.apps/shown")


def test_roles_are_reconciled(kubectl: Kubectl) -> None:
    role = kubectl("get", "clusterrole", "view", "-o", "yaml").replace("name: view", "name: viewer")
    role = re.sub(r"(?m)^  (resourceVersion|uid|creationTimestamp): .*\n", "", role)
    assert "clusterrole.rbac.authorization.k8s.io/viewer reconciled" in kubectl("auth", "reconcile", "-f", "-", stdin=role)


def test_acting_as_somebody_else(kubectl: Kubectl) -> None:
    refused = kubectl.refused("get", "pods", "--as=bob")
    assert 'pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "default"' in refused
    kubectl("get", "pods", "--as=bob", "--as-group=system:masters")


def test_an_ephemeral_container_is_added(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=POD % ("looked-into", "x"))
    kubectl("debug", "looked-into", "--image=busybox", "--profile=general", "-c", "tools")
    assert kubectl("get", "pod", "looked-into", "-o", "jsonpath={.spec.ephemeralContainers[*].name}") == "tools"


def test_what_there_is_not_is_said_in_one_line(kubectl: Kubectl) -> None:
    assert "doesn't have a resource type" in kubectl.refused("get", "nonsense")
    assert "the server could not find the requested resource" in kubectl.refused("get", "--raw", "/nonsense")
    assert 'pods "a" not found' in kubectl.refused("logs", "a")


LIST = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: listed-map}, data: {a: "1"}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: listed-web}
  spec:
    selector: {matchLabels: {a: b}}
    template:
      metadata: {labels: {a: b}}
      spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}
- apiVersion: batch.volcano.sh/v1alpha1
  kind: Job
  metadata: {name: listed-job}
  spec: {minAvailable: 1, tasks: [{name: w, replicas: 1, template: {spec: {containers: [{name: c, image: i}]}}}]}
"""


def test_a_list_of_objects_is_applied_and_checked_item_by_item(kubectl: Kubectl) -> None:
    for word in ("created", "unchanged"):
        told = kubectl("apply", "-f", "-", stdin=LIST).split("\n")
        assert len([line for line in told if line.endswith(word)]) >= 2, told
    wrong = LIST.replace("minAvailable: 1", "minAvailabel: 1").replace("listed", "wrong")
    assert 'unknown field "minAvailabel"' in kubectl.refused("apply", "-f", "-", stdin=wrong)
    kubectl("delete", "-f", "-", "--wait=false", stdin=LIST)
