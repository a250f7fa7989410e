"""Kubernetes' own gangs in `pumice up`, as a user of kubectl sees them: apply, columns, waits, what may not be changed, protection."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.kubectl.conftest import TIMEOUT_S, Kubectl

pytestmark = pytest.mark.kubectl

GATES = ("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup", "WorkloadWithJob", "DRADerivedAttributes")
GROUP, GROUPS = "podgroups.scheduling.k8s.io/g", "podgroups.scheduling.k8s.io"
GANG = """
apiVersion: scheduling.k8s.io/v1beta1
kind: Workload
metadata: {name: w}
spec:
  podGroupTemplates:
  - {name: workers, schedulingPolicy: {gang: {minCount: 2}}}
---
apiVersion: scheduling.k8s.io/v1alpha3
kind: CompositePodGroup
metadata: {name: c}
spec: {workloadRef: {workloadName: w, templateName: top}, schedulingPolicy: {gang: {minGroupCount: 1}}}
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: g}
spec:
  parentCompositePodGroupName: c
  workloadRef: {workloadName: w, templateName: workers}
  schedulingPolicy: {gang: {minCount: 2}}
"""
MEMBER = """
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec: {schedulingGroup: {podGroupName: g}, containers: [{name: c, image: train, resources: {requests: {cpu: "1"}}}]}
"""
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: near}
spec:
  devices:
    requests:
    - name: gpus
      exactly:
        deviceClassName: gpu
        derivedAttributes: [{name: example.com/rail, expression: "1"}]
    constraints: [{requests: [gpus], matchAttribute: example.com/rail}]
"""


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """kubectl with a cluster of three nodes that has the gates."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed; these tests are about the real one")
    folder = tmp_path_factory.mktemp("gangs")
    made = Kubectl(folder, folder / "config")
    gates = ",".join(f"{gate}=true" for gate in GATES)
    command = [sys.executable, "-m", "pumice", "up", "--no-page", "--port", "0", "--nodes", "3x8cpu", "--feature-gates", gates]
    process = subprocess.Popen([*command, "--data", str(folder / "data")], stdout=subprocess.PIPE, text=True, env=made.environment)
    try:
        assert process.stdout is not None and process.stdout.readline().startswith("A cluster of ")
        yield made
    finally:
        process.terminate()
        process.communicate()


def words(table: str) -> list[list[str]]:
    return [line.split()[:-1] for line in table.splitlines()[1:]]  # the last column is the age


def test_a_gang_from_apply_to_delete(user: Kubectl) -> None:
    user("apply", "-f", "-", stdin=GANG)
    user("apply", "-f", "-", stdin=MEMBER.replace("NAME", "g-0"))
    assert words(user("get", "workloads")) == [["w"]]
    assert words(user("get", GROUPS)) == [["g", "Gang", "w", "Pending"]]
    assert words(user("get", "compositepodgroups")) == [["c", "Gang", "w"]]
    assert "unchanged" in user("apply", "-f", "-", stdin=GANG)
    user("apply", "-f", "-", stdin=MEMBER.replace("NAME", "g-1"))
    user("wait", "--for=condition=PodGroupInitiallyScheduled", GROUP, "--timeout=50s")
    user("wait", "--for=condition=Ready", "pod/g-0", "pod/g-1", "--timeout=50s")
    assert words(user("get", GROUPS)) == [["g", "Gang", "w", "Scheduled"]]
    described = user("describe", GROUP)
    assert (
        "Min Count:  2" in described and "scheduling.k8s.io/podgroup-protection" in described and "PodGroupInitiallyScheduled" in described
    )
    assert "minCount\t<integer> -required-" in user("explain", f"{GROUPS}.spec.schedulingPolicy.gang")
    assert "podGroupName\t<string>" in user("explain", "pod.spec.schedulingGroup")

    def changed(what: str, spec: str) -> str:
        return user.refused("patch", what, "--type=merge", "-p", f'{{"spec":{spec}}}')

    assert "spec.disruptionMode: Invalid value: null: field is immutable" in changed(GROUP, '{"disruptionMode":{"single":null,"all":{}}}')
    of_tree = changed("compositepodgroup/c", '{"schedulingPolicy":{"gang":{"minGroupCount":2}}}')
    assert "spec.schedulingPolicy: Invalid value: null: field is immutable" in of_tree
    user("patch", GROUP, "--type=merge", "-p", '{"spec":{"schedulingPolicy":{"gang":{"minCount":1}}}}')
    user("delete", GROUP, "--wait=false")
    assert "podgroup-protection" in user("get", GROUP, "-o", "jsonpath={.metadata.finalizers} {.metadata.deletionTimestamp}")
    user("delete", "pod", "g-0", "g-1", "--now")
    user("wait", "--for=delete", GROUP, "--timeout=50s")
    user("delete", "workload/w", "compositepodgroup/c")


def test_a_job_has_a_workload_and_a_group(user: Kubectl) -> None:
    user("create", "job", "made", "--image=train")
    ends = time.monotonic() + TIMEOUT_S
    while not (rows := words(user("get", GROUPS))):
        assert time.monotonic() < ends
    ((name, policy, workload, _),) = rows
    assert policy == "Basic" and name.startswith(f"{workload}-made-pgt-0-") and words(user("get", "workloads")) == [[workload]]


def test_fields_of_claims_stay_that_a_gate_gives(user: Kubectl) -> None:
    user("apply", "-f", "-", stdin=CLAIM)
    derived = user("get", "resourceclaim", "near", "-o", "jsonpath={.spec.devices.requests[0].exactly.derivedAttributes[0].name}")
    assert derived == "example.com/rail"
