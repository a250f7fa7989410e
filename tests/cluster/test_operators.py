"""Operators of others, as they are shipped, on `pumice up`: each does its main job."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from binaries import module_of
from operators import ARGO, CERT_MANAGER, JOBSET, KUBERAY, KUEUE, SPARK, TRAINER, Cluster, running

pytestmark = pytest.mark.nightly
QUEUE = "kueue.x-k8s.io/queue-name"


def template(seconds: int, exit_code: int = 0) -> dict[str, Any]:
    notes = {"pumice.io/run-seconds": str(seconds), "pumice.io/exit-code": str(exit_code)}
    container = {"name": "c", "image": "i", "command": ["work"], "resources": {"requests": {"cpu": "1"}}}
    return {"metadata": {"annotations": notes}, "spec": {"restartPolicy": "Never", "containers": [container]}}


def job_set(name: str, jobs: dict[str, dict[str, Any]], **spec: Any) -> dict[str, Any]:
    parts = [{"name": part, "replicas": 2, "template": {"spec": {"backoffLimit": 0, "template": pod}}} for part, pod in jobs.items()]
    spec = {"replicatedJobs": parts, **spec}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}, "spec": spec}


def test_jobset_starts_in_order_and_restarts_as_its_failure_policy_says(tmp_path: Path) -> None:
    with running(tmp_path, JOBSET) as cluster:
        cluster.apply(
            job_set(
                "ordered",
                {"driver": template(3600), "workers": template(2)},
                startupPolicy={"startupPolicyOrder": "InOrder"},
                successPolicy={"operator": "All", "targetReplicatedJobs": ["workers"]},
            ),
            job_set("failing", {"workers": template(1, 3)}, failurePolicy={"maxRestarts": 2}),
        )

        def ended() -> dict[str, Any]:
            return {each["metadata"]["name"]: each.get("status", {}) for each in cluster.get("jobsets")}

        cluster.until(lambda: all("terminalState" in status for status in ended().values()))
        assert {name: status["terminalState"] for name, status in ended().items()} == {"ordered": "Completed", "failing": "Failed"}
        assert ended()["failing"]["restarts"] == 2


def test_kuberay_runs_sixty_workers_in_one_gang(tmp_path: Path) -> None:
    pod = {"spec": {"containers": [{"name": "ray", "image": "ray", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}}]}}
    workers = {"groupName": "w", "replicas": 60, "minReplicas": 60, "maxReplicas": 60, "rayStartParams": {}, "template": pod}
    spec = {"rayVersion": "2.46.0", "headGroupSpec": {"rayStartParams": {}, "template": pod}, "workerGroupSpecs": [workers]}
    with running(tmp_path, KUBERAY) as cluster:
        cluster.apply({"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "sixty"}, "spec": spec})
        cluster.until(lambda: [each.get("status", {}).get("readyWorkerReplicas") for each in cluster.get("rayclusters")] == [60])
        assert [each["spec"]["minMember"] for each in cluster.get("podgroups")] == [61]


def test_kubeflows_trainer_brings_a_job_to_its_end(tmp_path: Path) -> None:
    with running(tmp_path, JOBSET, TRAINER) as cluster:
        runtimes = module_of("trainer") / "manifests" / "overlays" / "runtimes"
        (tmp_path / "runtimes.yaml").write_text(cluster.shell(f"kubectl kustomize {runtimes}"))
        cluster.until(lambda: cluster.succeeds("kubectl apply -f runtimes.yaml"))
        trainer = {"numNodes": 3, "image": "train", "command": ["sleep", "5"]}
        spec = {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer}
        cluster.apply({"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "train"}, "spec": spec})
        cluster.until(lambda: cluster.succeeds("kubectl wait --for condition=Complete --timeout 1s trainjob train"))
        assert [pod["status"]["phase"] for pod in cluster.get("pods")] == ["Succeeded"] * 3


@pytest.mark.skipif("SPARK_HOME" not in os.environ or not shutil.which("java"), reason="SPARK_HOME names no Spark, or there is no Java")
def test_the_spark_operator_submits_an_application_and_sees_its_end(tmp_path: Path) -> None:
    spec = {
        "type": "Scala",
        "mode": "cluster",
        "image": "spark",
        "mainClass": "org.apache.spark.examples.SparkPi",
        "mainApplicationFile": "local:///opt/spark/examples/jars/spark-examples.jar",
        "sparkVersion": "3.5.7",
        "driver": {"cores": 1, "memory": "512m", "serviceAccount": "default", "annotations": {"pumice.io/run-seconds": "5"}},
        "executor": {"instances": 2, "cores": 1, "memory": "512m"},
    }
    with running(tmp_path, SPARK) as cluster:
        cluster.apply({"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "metadata": {"name": "pi"}, "spec": spec})
        state = "kubectl get sparkapplication pi -o jsonpath={.status.applicationState.state}"
        cluster.until(lambda: cluster.shell(state) == "COMPLETED")
        assert [pod["spec"]["containers"][0]["image"] for pod in cluster.get("pods")] == ["spark"]


def test_argo_brings_a_graph_of_steps_to_its_end(tmp_path: Path) -> None:
    after = {"first": [], "left": ["first"], "right": ["first"], "last": ["left", "right"]}
    tasks = [{"name": name, "template": "step", "dependencies": before} for name, before in after.items()]
    step = {"name": "step", "container": {"image": "busybox", "command": ["sleep", "2"]}}
    spec = {"entrypoint": "all", "templates": [{"name": "all", "dag": {"tasks": tasks}}, step]}
    spec |= {"podMetadata": {"annotations": {"pumice.io/run-seconds": "2"}}}
    with running(tmp_path, ARGO) as cluster:
        cluster.apply({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "graph"}, "spec": spec})
        cluster.until(lambda: cluster.shell("kubectl get workflow graph -o jsonpath={.status.phase}") == "Succeeded")
        begun = {
            pod["metadata"]["annotations"]["workflows.argoproj.io/node-name"]: pod["status"]["startTime"] for pod in cluster.get("pods")
        }
        assert begun["graph.first"] < begun["graph.left"] < begun["graph.last"] > begun["graph.right"]


def test_steps_of_argo_are_a_gang_of_volcano(tmp_path: Path) -> None:
    step = {"name": "step", "container": {"image": "busybox", "command": ["sleep", "2"], "resources": {"requests": {"cpu": "1"}}}}
    steps = {"name": "all", "dag": {"tasks": [{"name": name, "template": "step"} for name in "abc"]}}
    notes = {"scheduling.k8s.io/group-name": "steps", "pumice.io/run-seconds": "2"}
    spec = {"entrypoint": "all", "schedulerName": "volcano", "podMetadata": {"annotations": notes}, "templates": [steps, step]}
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "steps"}, "spec": {"minMember": 4}}
    with running(tmp_path, ARGO) as cluster:
        cluster.apply({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "gang"}, "spec": spec}, group)
        cluster.until(lambda: [pod["status"]["phase"] for pod in cluster.get("pods")] == ["Pending"] * 3)
        cluster.shell("""kubectl patch podgroups.scheduling.volcano.sh steps --type merge -p '{"spec": {"minMember": 3}}'""")
        cluster.until(lambda: cluster.shell("kubectl get workflow gang -o jsonpath={.status.phase}") == "Succeeded")


@pytest.mark.skipif("CERT_MANAGER" not in os.environ, reason="CERT_MANAGER names no folder of cert-manager's programs and manifest")
def test_cert_manager_signs_a_certificate_by_an_authority_that_it_has_made(tmp_path: Path) -> None:
    def of(kind: str, name: str, **spec: Any) -> dict[str, Any]:
        return {"apiVersion": "cert-manager.io/v1", "kind": kind, "metadata": {"name": name, "namespace": "cert-manager"}, "spec": spec}

    for each in Path(os.environ["CERT_MANAGER"]).resolve().iterdir():
        (tmp_path / each.name).symlink_to(each)
    with running(tmp_path, CERT_MANAGER) as cluster:
        cluster.apply(
            of("Issuer", "itself", selfSigned={}),
            of("Certificate", "authority", isCA=True, commonName="authority", secretName="authority", issuerRef={"name": "itself"}),
            of("Issuer", "authority", ca={"secretName": "authority"}),
            of("Certificate", "web", dnsNames=["web.example"], secretName="web", issuerRef={"name": "authority"}),
        )
        cluster.until(lambda: cluster.succeeds("kubectl -n cert-manager wait --for condition=Ready --timeout 1s certificate web"))
        kept = json.loads(cluster.shell("kubectl -n cert-manager get secret web authority -o json"))["items"]
        web, authority = (each["data"] for each in kept)
        assert web["ca.crt"] == authority["tls.crt"] != web["tls.crt"]
        hooks = json.loads(cluster.shell("kubectl get validatingwebhookconfigurations cert-manager-webhook -o json"))["webhooks"]
        assert all(each["clientConfig"]["caBundle"] for each in hooks), "the injector, which watches metadata alone, is in step"


def test_kueue_admits_by_quota_preempts_and_lets_come_back(tmp_path: Path) -> None:
    def of(kind: str, name: str, **fields: Any) -> dict[str, Any]:
        return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, **fields}

    def job(name: str, pods: int, seconds: int, **labels: str) -> dict[str, Any]:
        spec = {"parallelism": pods, "completions": pods, "template": template(seconds)}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": {QUEUE: "mine"} | labels}, "spec": spec}

    def jobs(cluster: Cluster) -> dict[str, bool]:
        """By name whether a job may run."""
        return {each["metadata"]["name"]: not each["spec"].get("suspend") for each in cluster.get("jobs")}

    quota = {"coveredResources": ["cpu"], "flavors": [{"name": "plain", "resources": [{"name": "cpu", "nominalQuota": 4}]}]}
    spec = {"namespaceSelector": {}, "preemption": {"withinClusterQueue": "LowerPriority"}, "resourceGroups": [quota]}
    with running(tmp_path, KUEUE) as cluster:
        cluster.apply(
            of("ResourceFlavor", "plain"),
            of("ClusterQueue", "team", spec=spec),
            of("LocalQueue", "mine", spec={"clusterQueue": "team"}),
            of("WorkloadPriorityClass", "urgent", value=1000),
            of("WorkloadPriorityClass", "patient", value=-1),
        )
        cluster.apply(job("first", 3, 3600))
        cluster.until(lambda: jobs(cluster) == {"first": True})
        cluster.apply(job("second", 3, 3600, **{"kueue.x-k8s.io/priority-class": "patient"}))  # of equals of one second any may be the next
        waiting = "kubectl get --raw /apis/visibility.kueue.x-k8s.io/v1beta2/clusterqueues/team/pendingworkloads || true"
        cluster.until(lambda: "job-second-" in cluster.shell(waiting))
        assert jobs(cluster) == {"first": True, "second": False}
        cluster.apply(job("third", 4, 3600, **{"kueue.x-k8s.io/priority-class": "urgent"}))
        cluster.until(lambda: jobs(cluster) == {"first": False, "second": False, "third": True})
        cluster.shell("kubectl delete job third")
        cluster.until(lambda: jobs(cluster) == {"first": True, "second": False})
