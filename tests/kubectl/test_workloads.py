"""Stories with workloads, told by the real kubectl to a whole cluster: controllers, kubelets and scheduler behind the API."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.kubectl.conftest import Kubectl

pytestmark = pytest.mark.kubectl

Until = Callable[[Callable[[], bool]], None]
PATIENCE = "--timeout=60s"
WORKLOADS = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: "db:1", env: [{name: A, value: "1"}]}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c, image: "agent:1", env: [{name: A, value: "1"}]}]}
"""
STORES = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store}
spec:
  replicas: 2
  serviceName: store
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec: {containers: [{name: c, image: "store:1", volumeMounts: [{name: data, mountPath: /data}]}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: waits}
provisioner: example.com/any
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: late}
spec: {storageClassName: waits, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: late}
spec:
  containers: [{name: c, image: busybox, volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: late}}]
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: %s}
spec:
  completions: 3
  parallelism: 2
  %s
  template:
    metadata: {annotations: {pumice.io/run-seconds: "30", pumice.io/exit-code: "%d"}}
    spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """A cluster whose clock runs sixty times as fast as ours."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed; these tests are about the real one")
    folder = tmp_path_factory.mktemp("cluster")
    environment = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"} | {"HOME": str(folder)}
    program = "from pumice.cli.program import main; main()"
    command = [sys.executable, "-c", program, "up", "--port", "0", "--nodes", "3x8cpu", "--speed", "60"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert "A cluster of 3 nodes" in process.stdout.readline() + process.stdout.readline()
        while "ends it" not in process.stdout.readline():
            assert process.poll() is None
        yield Kubectl(folder, folder / ".pumice" / "kubeconfig")
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def say(cluster: Kubectl, *arguments: str, stdin: str = "") -> str:
    """What kubectl prints within a minute, if all goes well."""
    done = cluster.run(*arguments, stdin=stdin, timeout_s=90)
    assert done.returncode == 0, f"kubectl {' '.join(arguments)}\n{done.stdout}{done.stderr}"
    return done.stdout


def images(cluster: Kubectl, app: str) -> set[str]:
    """Of the pods that are to stay."""
    pods = json.loads(cluster("get", "pods", "-l", f"app={app}", "-o", "json"))["items"]
    return {pod["spec"]["containers"][0]["image"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}


def test_a_deployment_is_rolled_out_looked_at_and_rolled_back(cluster: Kubectl) -> None:
    say(cluster, "create", "deployment", "web", "--image=web:1", "--replicas=3")
    assert 'deployment "web" successfully rolled out' in say(cluster, "rollout", "status", "deploy/web", PATIENCE)
    assert cluster("get", "deploy", "web").splitlines()[1].split()[:4] == ["web", "3/3", "3", "3"]
    say(cluster, "set", "image", "deploy/web", "web=web:2")
    say(cluster, "rollout", "status", "deploy/web", PATIENCE)
    assert images(cluster, "web") == {"web:2"}
    assert re.findall(r"^(\d+) ", cluster("rollout", "history", "deploy/web"), re.M) == ["1", "2"]
    assert "web:1" in cluster("rollout", "history", "deploy/web", "--revision=1")
    say(cluster, "rollout", "undo", "deploy/web")
    say(cluster, "rollout", "status", "deploy/web", PATIENCE)
    assert images(cluster, "web") == {"web:1"}
    assert re.findall(r"^(\d+) ", cluster("rollout", "history", "deploy/web"), re.M) == ["2", "3"]
    described = cluster("describe", "deployment", "web")
    assert re.search(r"Normal +ScalingReplicaSet .* deployment-controller +Scaled up replica set web-\w+ from 0 to 3", described)
    assert "3 desired | 3 updated | 3 total | 3 available | 0 unavailable" in described


def test_a_deployment_is_paused_scaled_and_restarted(cluster: Kubectl) -> None:
    say(cluster, "create", "deployment", "held", "--image=held:1", "--replicas=1")
    say(cluster, "rollout", "status", "deploy/held", PATIENCE)
    say(cluster, "rollout", "pause", "deploy/held")
    say(cluster, "set", "image", "deploy/held", "held=held:2")
    say(cluster, "scale", "deploy/held", "--replicas=2")
    say(cluster, "wait", "deploy/held", "--for=jsonpath={.status.readyReplicas}=2", PATIENCE)
    assert images(cluster, "held") == {"held:1"}
    say(cluster, "rollout", "resume", "deploy/held")
    say(cluster, "rollout", "restart", "deploy/held")
    say(cluster, "rollout", "status", "deploy/held", PATIENCE)
    assert images(cluster, "held") == {"held:2"}
    say(cluster, "delete", "deployment", "held")
    assert "No resources found" in cluster.run("get", "rs", "-l", "app=held").stderr


def test_stateful_and_daemon_sets_are_rolled_out_and_back(cluster: Kubectl) -> None:
    say(cluster, "apply", "-f", "-", stdin=WORKLOADS)
    for kind, name, ready in (("sts", "db", "2/2"), ("ds", "agent", "3")):
        resource = f"{kind}/{name}"
        say(cluster, "rollout", "status", resource, PATIENCE)
        assert cluster("get", resource, "--no-headers").split()[1] == ready
        say(cluster, "patch", resource, "-p", '{"spec":{"template":{"spec":{"containers":[{"name":"more","image":"more:1"}]}}}}')
        say(cluster, "set", "env", resource, "-c", "c", "A-", "B=2")
        say(cluster, "rollout", "status", resource, PATIENCE)
        assert "more" in cluster("get", "pods", "-l", f"app={name}", "-o", "jsonpath={.items[*].spec.containers[*].name}")
        history = re.findall(r"^(\d+) ", cluster("rollout", "history", resource), re.M)
        assert history[0] == "1" and len(history) >= 2
        assert f"{name}:1" in cluster("rollout", "history", resource, "--revision=1")
        say(cluster, "rollout", "undo", resource, "--to-revision=1")
        say(cluster, "rollout", "status", resource, PATIENCE)
        template = json.loads(cluster("get", resource, "-o", "json"))["spec"]["template"]["spec"]
        assert [(each["name"], each["env"]) for each in template["containers"]] == [("c", [{"name": "A", "value": "1"}])]
        assert re.findall(r"^(\d+) ", cluster("rollout", "history", resource), re.M)[0] != "1", "what came back is the newest"
        assert "SuccessfulCreate" in cluster("describe", resource)
    say(cluster, "scale", "sts/db", "--replicas=1")
    say(cluster, "wait", "pod/db-1", "--for=delete", PATIENCE)
    assert cluster("get", "pods", "-l", "app=db", "-o", "name").split() == ["pod/db-0"]


def test_jobs_complete_fail_wait_and_are_forgotten(cluster: Kubectl) -> None:
    say(cluster, "apply", "-f", "-", stdin=JOB % ("works", "ttlSecondsAfterFinished: 600", 0))
    say(cluster, "apply", "-f", "-", stdin=JOB % ("fails", "backoffLimit: 0", 3))
    say(cluster, "apply", "-f", "-", stdin=JOB % ("waits", "suspend: true", 0))
    say(cluster, "wait", "job/works", "--for=condition=complete", PATIENCE)
    say(cluster, "wait", "job/fails", "--for=condition=failed", PATIENCE)
    states = {line.split()[0]: line.split()[1:3] for line in cluster("get", "jobs", "--no-headers").splitlines()}
    assert states["works"] == ["Complete", "3/3"]
    assert states["fails"] == ["Failed", "0/3"]
    assert states["waits"] == ["Suspended", "0/3"]
    assert "BackoffLimitExceeded" in cluster("describe", "job", "fails")
    assert re.search(r"Normal +SuccessfulCreate .*Created pod: works-\w+", cluster("describe", "job", "works"))
    assert "No resources found" in cluster.run("get", "pods", "-l", "job-name=waits").stderr
    say(cluster, "patch", "job", "waits", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    say(cluster, "wait", "job/waits", "--for=condition=complete", PATIENCE)
    say(cluster, "wait", "job/works", "--for=delete", PATIENCE)
    assert "Resumed" in cluster("describe", "job", "waits")


def test_a_cron_job_makes_a_job_a_minute_and_one_on_demand(cluster: Kubectl, until: Until) -> None:
    say(cluster, "create", "cronjob", "tick", "--image=busybox", "--schedule=* * * * *", "--", "sleep", "1")
    until(lambda: cluster("get", "jobs", "-o", "name").count("job.batch/tick-") >= 2)
    assert cluster("get", "cronjob", "tick").splitlines()[1].startswith("tick   * * * * *   <none>     False")
    say(cluster, "create", "job", "by-hand", "--from=cronjob/tick")
    say(cluster, "wait", "job/by-hand", "--for=condition=complete", PATIENCE)
    say(cluster, "delete", "cronjob", "tick")


def test_a_node_is_drained_and_its_pods_come_back_elsewhere(cluster: Kubectl) -> None:
    say(cluster, "create", "deployment", "moves", "--image=moves:1", "--replicas=6")
    say(cluster, "rollout", "status", "deploy/moves", PATIENCE)
    drained = say(cluster, "drain", "cpu8-0", "--ignore-daemonsets", "--delete-emptydir-data", "--force", PATIENCE)
    assert "node/cpu8-0 drained" in drained
    say(cluster, "rollout", "status", "deploy/moves", PATIENCE)
    nodes = cluster("get", "pods", "-l", "app=moves", "-o", "jsonpath={.items[*].spec.nodeName}").split()
    assert len(nodes) == 6
    assert "cpu8-0" not in nodes
    assert "Ready,SchedulingDisabled" in cluster("get", "node", "cpu8-0")
    say(cluster, "uncordon", "cpu8-0")


def test_pods_with_claims_of_their_own_run_wherever_volumes_come_from(cluster: Kubectl) -> None:
    say(cluster, "apply", "-f", "-", stdin=STORES)
    say(cluster, "rollout", "status", "sts/store", PATIENCE)
    claims = {line.split()[0]: line.split()[1:4:2] for line in cluster("get", "pvc", "--no-headers").splitlines()}
    assert claims["data-store-0"] == claims["data-store-1"] == ["Bound", "1Gi"]
    say(cluster, "wait", "pod/late", "--for=condition=Ready", PATIENCE)
    assert "Successfully provisioned volume" in cluster("describe", "pvc", "late")
    assert "standard (default)" in cluster("get", "storageclass")
    say(cluster, "scale", "sts/store", "--replicas=1")
    say(cluster, "wait", "pod/store-1", "--for=delete", PATIENCE)
    assert "data-store-1" in cluster("get", "pvc"), "claims outlive their pods"
    volume = cluster("get", "pvc", "data-store-1", "-o", "jsonpath={.spec.volumeName}")
    say(cluster, "delete", "pvc", "data-store-1")
    say(cluster, "wait", f"pv/{volume}", "--for=delete", PATIENCE)


def test_a_quota_that_is_spent_is_told_where_the_user_looks(cluster: Kubectl, until: Until) -> None:
    say(cluster, "create", "namespace", "small")
    say(cluster, "create", "quota", "few", "--hard=pods=1", "-n", "small")
    say(cluster, "create", "deployment", "many", "--image=many:1", "--replicas=2", "-n", "small")
    until(lambda: "exceeded quota: few" in cluster("describe", "rs", "-n", "small"))
    assert re.search(r"Warning +FailedCreate .*Error creating: pods \"many-\S+\" is forbidden", cluster("describe", "rs", "-n", "small"))
    assert "pods: 1/1" in cluster("get", "quota", "few", "-n", "small")
    say(cluster, "delete", "namespace", "small", PATIENCE)
