"""A native gang under Volcano's actions in an embedded cluster: the name of its scheduler is enough."""

from __future__ import annotations

from typing import Any

from pumice.scheduler.framework.feature_gates import release
from tests.embedded.cluster import GROUPS, PODS, Api, Object, cluster, until

NATIVE = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
QUEUE = "scheduling.volcano.sh/queue-name"


def gang(api: Api, name: str, pods: int, cpu: str, **labels: str) -> None:
    policy = {"schedulingPolicy": {"gang": {"minCount": pods}}}
    api.create(NATIVE, {"metadata": {"name": name, "labels": labels}, "spec": policy})
    container = {"name": "main", "image": "train:1", "resources": {"requests": {"cpu": cpu}}}
    for number in range(pods):
        spec = {"schedulerName": "volcano", "schedulingGroup": {"podGroupName": name}, "containers": [container]}
        api.create(PODS, {"metadata": {"name": f"{name}-{number}"}, "spec": spec})


def condition(api: Api, name: str) -> Object:
    found: list[Object] = api.get(f"{NATIVE}/{name}").get("status", {}).get("conditions", [])
    return next((each for each in found if each["type"] == "PodGroupInitiallyScheduled"), {})


def test_the_story_of_two_native_gangs_in_a_queue() -> None:
    gates: dict[str, Any] = {"GenericWorkload": True}
    with cluster("2x4cpu", release=release(37, gates)) as api:
        api.create(QUEUES, {"metadata": {"name": "research"}, "spec": {"weight": 1}})
        gang(api, "train", 3, "2", **{QUEUE: "research"})
        until(lambda: condition(api, "train").get("status") == "True")
        made = api.get(f"{GROUPS}/train")
        assert made["spec"]["queue"] == "research" and made["spec"]["minMember"] == 3
        assert made["metadata"]["ownerReferences"][0]["apiVersion"] == "scheduling.k8s.io/v1beta1"
        assert condition(api, "train")["reason"] == "Scheduled"
        gang(api, "late", 3, "1")
        until(lambda: condition(api, "late").get("status") == "False")
        assert condition(api, "late")["reason"] == "Unschedulable" and "tasks in gang unschedulable" in condition(api, "late")["message"]
        assert not any(pod["spec"].get("nodeName") for pod in api.items(PODS) if pod["metadata"]["name"].startswith("late-")), "none or all"
        api.delete(f"{PODS}/train-0")
        until(lambda: condition(api, "late").get("status") == "True")
