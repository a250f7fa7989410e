"""Whole stories over HTTP: what a user writes, and what becomes of it once controllers, kubelets and scheduler have had their say.

The cluster's clock runs two hundred times as fast as ours. Stories that share a cluster have names of their own, and leave room for others.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tests.embedded.cluster import DEPLOYMENTS, GROUPS, JOBS, PODS, Api, Object, Refused, cluster, until

GPU = "nvidia.com/gpu"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"


@pytest.fixture(scope="module")
def shared() -> Iterator[Api]:
    with cluster("2x8gpu,3x4cpu") as api:
        yield api


def pod_spec(cpu: str = "1", gpus: int = 0, **more: Any) -> Object:
    requests: dict[str, Any] = {"cpu": cpu, "memory": "1Gi"} | ({GPU: gpus} if gpus else {})
    return {"containers": [{"name": "main", "image": "train:1", "resources": {"requests": requests, "limits": requests}}], **more}


def vcjob(name: str, replicas: int, *, run_s: int | None = None, code: int = 0, gpus: int = 0, **spec: Any) -> Object:
    notes = {"pumice.io/run-seconds": str(run_s), "pumice.io/exit-code": str(code)} if run_s is not None else {}
    template = {"metadata": {"annotations": notes}, "spec": pod_spec(gpus=gpus, restartPolicy="Never")}
    task = {"name": "worker", "replicas": replicas, "template": template}
    body = {"minAvailable": replicas, "schedulerName": "volcano", "tasks": [task], **spec}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": body}


def phase_of(api: Api, job: str) -> str:
    return str(api.get(f"{JOBS}/{job}").get("status", {}).get("state", {}).get("phase"))


def deployment(name: str, replicas: int, **spec: Any) -> Object:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod_spec("100m", **spec)}
    return {"metadata": {"name": name}, "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}}


def running(pods: list[Object]) -> list[Object]:
    return [pod for pod in pods if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]]


def test_operator_that_is_deployed_here_is_told_once_that_it_does_not_run(shared: Api) -> None:
    assert shared.warnings(DEPLOYMENTS, deployment("plain", 1)) == []
    (told,) = shared.warnings(DEPLOYMENTS, deployment("operator", 1, serviceAccountName="operator"))
    assert told == "containers are simulated: this program does not run; run it outside, with this kubeconfig"
    assert shared.warnings(DEPLOYMENTS, deployment("second", 1, serviceAccountName="operator")) == []
    for name in ("plain", "operator", "second"):
        shared.delete(f"{DEPLOYMENTS}/{name}")


def test_a_vcjob_goes_from_submission_to_completion(shared: Api) -> None:
    shared.create(JOBS, vcjob("train", 3, run_s=60, plugins={"env": [], "svc": []}))
    until(lambda: phase_of(shared, "train") == "Running")
    assert {pod["metadata"]["name"] for pod in shared.pods_of("train")} == {"train-worker-0", "train-worker-1", "train-worker-2"}
    until(lambda: phase_of(shared, "train") == "Completed")
    status = shared.get(f"{JOBS}/train")["status"]
    assert status["succeeded"] == 3
    events = {event["reason"] for event in shared.items("/api/v1/namespaces/default/events")}
    assert "Scheduled" in events
    assert "started on" in shared.get(f"{PODS}/train-worker-0/log")


def test_elastic_jobs_that_arrive_together_each_get_their_minimum() -> None:
    """One after the other, within the scheduler's period, and their pods as the controllers get round to them."""
    names = ["one", "two", "three"]

    def placed(name: str) -> int:
        return sum("nodeName" in pod["spec"] for pod in api.pods_of(name))

    with cluster("2x8cpu", speed=1) as api:
        for name in names:
            api.create(JOBS, vcjob(name, 16, minAvailable=2))
        until(lambda: sum(map(placed, names)) == 16)
        assert min(map(placed, names)) >= 2


def test_a_failing_task_ends_its_job_by_the_policy(shared: Api) -> None:
    policies = [{"event": "PodFailed", "action": "AbortJob"}]
    shared.create(JOBS, vcjob("breaks", 2, run_s=20, code=7, policies=policies))
    until(lambda: phase_of(shared, "breaks") == "Aborted")


def test_deleting_a_job_takes_its_pods_and_its_group_along(shared: Api) -> None:
    shared.create(JOBS, vcjob("short-lived", 2))
    until(lambda: len(running(shared.pods_of("short-lived"))) == 2)
    shared.delete(f"{JOBS}/short-lived")
    until(lambda: not shared.pods_of("short-lived"))
    until(lambda: not [group for group in shared.items(GROUPS) if group["metadata"]["name"].startswith("short-lived")])


def test_a_deployment_is_rolled_out_and_rolled_on(shared: Api) -> None:
    shared.create(DEPLOYMENTS, deployment("web", 4))
    until(lambda: shared.get(f"{DEPLOYMENTS}/web").get("status", {}).get("availableReplicas") == 4)
    first = {pod["metadata"]["name"] for pod in shared.pods(app="web")}
    change = {"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}}
    shared.patch(f"{DEPLOYMENTS}/web", change)

    def rolled_on() -> bool:
        status = shared.get(f"{DEPLOYMENTS}/web")["status"]
        names = {pod["metadata"]["name"] for pod in shared.pods(app="web")}
        return bool(status.get("updatedReplicas") == status.get("availableReplicas") == 4 and not names & first)

    until(rolled_on)
    shared.delete(f"{DEPLOYMENTS}/web")
    until(lambda: not shared.pods(app="web"))


def add_node(api: Api, name: str) -> None:
    allocatable = {"cpu": "96", "memory": "768Gi", "pods": "110", GPU: "8"}
    api.create("/api/v1/nodes", {"metadata": {"name": name}, "status": {"allocatable": allocatable}})


def test_a_gang_waits_whole_and_runs_whole_once_a_node_is_added() -> None:
    with cluster("2x8gpu") as api:
        api.create(JOBS, vcjob("gang", 3, gpus=5))

        def refusals() -> list[str]:
            conditions = [each for pod in api.pods_of("gang") for each in pod["status"].get("conditions", ())]
            return [each["message"] for each in conditions if each.get("reason") in ("Unschedulable", "Schedulable")]

        assert "0/2 nodes are unavailable: 2 Insufficient nvidia.com/gpu." in until(lambda: len(refusals()) == 3 and refusals())
        assert not any(pod["spec"].get("nodeName") for pod in api.pods_of("gang"))
        add_node(api, "late")
        until(lambda: len(running(api.pods_of("gang"))) == 3)
        assert {pod["spec"]["nodeName"] for pod in api.pods_of("gang")} == {"gpu8-0", "gpu8-1", "late"}


def test_a_gang_far_beyond_the_cluster_gets_no_pods_and_is_told_why() -> None:
    with cluster("1x8gpu") as api:
        api.create(JOBS, vcjob("gang", 2, gpus=8))
        told = until(lambda: [event["message"] for event in api.items("/api/v1/namespaces/default/events")])
        assert any("overused nvidia.com/gpu" in message for message in told)
        assert not api.pods_of("gang")
        add_node(api, "late")
        until(lambda: len(running(api.pods_of("gang"))) == 2)


def test_pods_of_a_failed_node_are_made_again_elsewhere() -> None:
    with cluster("2x4cpu") as api:
        api.create(DEPLOYMENTS, deployment("web", 6, tolerations=[{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}]))
        until(lambda: len(running(api.pods(app="web"))) == 6)
        assert {pod["spec"]["nodeName"] for pod in api.pods(app="web")} == {"cpu4-0", "cpu4-1"}
        api.patch("/api/v1/nodes/cpu4-0", {"metadata": {"annotations": {"pumice.io/kubelet": "stopped"}}})

        def elsewhere() -> bool:
            alive = running(api.pods(app="web"))
            return len(alive) == 6 and {pod["spec"]["nodeName"] for pod in alive} == {"cpu4-1"}

        until(elsewhere)
        ready = {each["type"]: each["status"] for each in api.get("/api/v1/nodes/cpu4-0")["status"]["conditions"]}
        assert ready["Ready"] == "Unknown"
        api.patch("/api/v1/nodes/cpu4-0", {"metadata": {"annotations": {"pumice.io/kubelet": None}}})
        until(lambda: not api.get("/api/v1/nodes/cpu4-0")["spec"].get("taints"))
        until(lambda: len(api.pods(app="web")) == 6)


def test_a_budget_allows_as_many_evictions_as_it_says(shared: Api) -> None:
    shared.create(DEPLOYMENTS, deployment("careful", 3))
    budget = {"metadata": {"name": "careful"}, "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "careful"}}}}
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    shared.create(path, budget)
    until(lambda: shared.get(f"{path}/careful").get("status", {}).get("disruptionsAllowed") == 1)
    first, second, _ = (pod["metadata"]["name"] for pod in running(shared.pods(app="careful")))
    shared.create(f"{PODS}/{first}/eviction", {"metadata": {"name": first}})
    with pytest.raises(Refused) as refused:
        shared.create(f"{PODS}/{second}/eviction", {"metadata": {"name": second}})
    assert refused.value.status["code"] == 429
    until(lambda: len(running(shared.pods(app="careful"))) == 3)
    shared.delete(f"{DEPLOYMENTS}/careful")


def test_an_urgent_job_makes_room_only_where_the_configuration_says_so(shared: Api) -> None:
    """The built-in configuration does not preempt: the job waits, and says what is short."""
    shared.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "urgent"}, "value": 1000})
    shared.create(JOBS, vcjob("holds", 2, gpus=8))
    until(lambda: len(running(shared.pods_of("holds"))) == 2)
    shared.create(JOBS, vcjob("urgent", 2, gpus=8, priorityClassName="urgent"))
    until(lambda: any(group["metadata"]["name"].startswith("urgent") for group in shared.items(GROUPS)))
    shared.delete(f"{JOBS}/holds")
    until(lambda: len(running(shared.pods_of("urgent"))) == 2)
    shared.delete(f"{JOBS}/urgent")


REFUSALS = [
    (JOBS, vcjob("bad", 2, minAvailable=3), "validatejob", "minAvailable"),
    (JOBS, vcjob("bad", 1, queue="nowhere"), "validatejob", "nowhere"),
    (JOBS, vcjob("bad", 1, plugins={"teleport": []}), "validatejob", "teleport"),
    (JOBS, vcjob("bad", 1, policies=[{"event": "PodFailed", "exitCode": 3, "action": "AbortJob"}]), "validatejob", "policies"),
    (QUEUES, {"metadata": {"name": "bad"}, "spec": {"weight": 1, "parent": "nowhere"}}, "validatequeue", "nowhere"),
    (
        PODS,
        {
            "metadata": {"name": "bad", "annotations": {"volcano.sh/jdb-min-available": "-3"}},
            "spec": pod_spec(schedulerName="volcano"),
        },
        "validatepod",
        "jdb-min-available",
    ),
]


@pytest.mark.parametrize(("path", "body", "webhook", "named"), REFUSALS)
def test_what_volcano_refuses_is_refused_as_its_webhook_does(shared: Api, path: str, body: Object, webhook: str, named: str) -> None:
    with pytest.raises(Refused) as refused:
        shared.create(path, body)
    status = refused.value.status
    assert status["code"] == 400
    assert status["message"].startswith(f'admission webhook "{webhook}.volcano.sh" denied the request: ')
    assert named in status["message"]


def test_the_default_queue_cannot_be_deleted(shared: Api) -> None:
    with pytest.raises(Refused, match="default"):
        shared.delete(f"{QUEUES}/default")


def test_a_closed_queue_takes_no_job(shared: Api) -> None:
    shared.create(QUEUES, {"metadata": {"name": "closed"}, "spec": {"weight": 1}})
    until(lambda: shared.get(f"{QUEUES}/closed").get("status", {}).get("state") == "Open")
    command = {
        "metadata": {"name": "close"},
        "action": "CloseQueue",
        "target": {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "name": "closed",
            "uid": shared.get(f"{QUEUES}/closed")["metadata"]["uid"],
        },
    }
    shared.create("/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands", command)
    until(lambda: shared.get(f"{QUEUES}/closed")["status"]["state"] == "Closed")
    with pytest.raises(Refused, match="closed"):
        shared.create(JOBS, vcjob("late", 1, queue="closed"))


def test_the_clock_is_an_object_of_the_cluster() -> None:
    path = "/api/v1/namespaces/kube-system/configmaps/pumice-clock"
    with cluster("1x4cpu", speed=0) as api:
        assert api.get(path)["data"] == {"speed": "0"}
        api.create(JOBS, vcjob("waits", 1, run_s=100))
        for wrong in ("fast", "-1", "nan", None):
            with pytest.raises(Refused, match="is no speed; write a number from 0"):
                api.patch(path, {"data": {"speed": wrong}})
        api.patch(path, {"data": {"speed": "500"}})
        until(lambda: phase_of(api, "waits") == "Completed")


def test_emptying_a_namespace_ends_what_runs_in_it(shared: Api) -> None:
    shared.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
    shared.create("/apis/apps/v1/namespaces/team/deployments", deployment("web", 2))
    until(lambda: len(running(shared.items("/api/v1/namespaces/team/pods"))) == 2)
    shared.delete("/api/v1/namespaces/team")
    until(lambda: "team" not in {each["metadata"]["name"] for each in shared.items("/api/v1/namespaces")})


def test_who_submits_what_can_never_run_is_warned_as_kubectl_shows_it(shared: Api) -> None:
    why = "can never run here: it must start with 24 nvidia.com/gpu, and queue default may hold 16 at most (8 short)"
    numbers = count()

    def is_warned() -> bool:
        """An answer is given at once, or none: not before the cluster has been read, nor while a cycle runs."""
        name = f"huge-{next(numbers)}"
        warnings = shared.warnings(JOBS, vcjob(name, 3, gpus=8))
        shared.delete(f"{JOBS}/{name}")
        assert warnings in ([], [f"job {name} {why}"])
        return bool(warnings)

    until(is_warned)
    assert shared.warnings(JOBS, vcjob("fits", 2, gpus=8)) == []
    shared.delete(f"{JOBS}/fits")
