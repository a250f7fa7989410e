"""What a cluster gives to pods beside a node: whom to trust, addresses of their own, conditions, an end at their deadline."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pumice.client.certificates import DAY_S, VALID_DAYS
from pumice.cluster.apiserver import PatchRequest
from pumice.cluster.nodes.containers import SimulatedContainers
from pumice.cluster.nodes.kubelet import Kubelets
from pumice.cluster.nodes.node_heartbeats import Addresses
from pumice.cluster.nodes.stage import read_stages
from pumice.cluster.store_lister import StoreLister
from tests.embedded.cluster import Still


def conditions(pod: dict[str, Any]) -> dict[str, str]:
    return {each["type"]: each["status"] for each in pod["status"]["conditions"]}


def test_every_namespace_says_whom_to_trust_and_goes_on_saying_so() -> None:
    still = Still(plain=False)
    still.store.create("namespaces", {"metadata": {"name": "later"}})
    still.after(1)
    for namespace in ("default", "kube-system", "later"):
        assert still.store.get("configmaps", "kube-root-ca.crt", namespace)["data"] == {"ca.crt": still.plane.server.certificate}
    still.store.patch("configmaps", "kube-root-ca.crt", PatchRequest("merge", {"data": {"ca.crt": "other", "b": "c"}}), "default")
    still.store.delete("configmaps", "kube-root-ca.crt", "later")
    still.after(1)
    for namespace in ("default", "later"):
        assert still.store.get("configmaps", "kube-root-ca.crt", namespace)["data"] == {"ca.crt": still.plane.server.certificate}
    old = still.plane.server.certificate
    still.plane.server.renew(time.time() + 0.91 * VALID_DAYS * DAY_S)
    still.after(1)
    assert still.plane.server.certificate != old
    for namespace in ("default", "later"):
        assert still.store.get("configmaps", "kube-root-ca.crt", namespace)["data"] == {"ca.crt": still.plane.server.certificate}


def test_a_pod_finds_the_token_of_the_default_account() -> None:
    still = Still()
    still.pod("web", "cpu4-0")
    volumes = still.store.get("pods", "web", "default")["spec"]["volumes"]
    assert [volume["name"].startswith("kube-api-access-") for volume in volumes] == [True]


@pytest.mark.parametrize("selector", [{}, {"disk": "fast"}])
def test_a_pod_made_with_a_node_is_scheduled_whether_the_node_takes_it_or_not(selector: dict[str, str]) -> None:
    still = Still()
    still.pod("web", "cpu4-0", nodeSelector=selector)
    still.after(2)
    pod = still.store.get("pods", "web", "default")
    assert conditions(pod)["PodScheduled"] == "True"
    assert pod["status"]["observedGeneration"] == pod["metadata"]["generation"] == 1


def test_a_deadline_that_is_set_later_counts_from_the_start() -> None:
    still = Still()
    still.pod("web", "cpu4-0")
    still.after(100)
    still.store.patch("pods", "web", PatchRequest("merge", {"spec": {"activeDeadlineSeconds": 120}}), "default")
    still.after(1)
    assert still.store.get("pods", "web", "default")["status"]["observedGeneration"] == 2
    still.after(17)
    assert still.phase("web") == "Running"
    still.after(5)
    pod = still.store.get("pods", "web", "default")
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "DeadlineExceeded")


def test_a_deadline_that_has_passed_already_ends_the_pod_at_once() -> None:
    still = Still()
    still.pod("web", "cpu4-0")
    still.after(100)
    still.store.patch("pods", "web", PatchRequest("merge", {"spec": {"activeDeadlineSeconds": 5}}), "default")
    still.after(1)
    assert still.phase("web") == "Failed"


def test_containers_that_start_again_do_not_move_the_deadline() -> None:
    still = Still()
    notes = {"pumice.io/run-seconds": "30", "pumice.io/exit-code": "1"}
    still.pod("web", "cpu4-0", notes=notes, activeDeadlineSeconds=60, restartPolicy="Always")
    still.after(59)
    assert still.phase("web") == "Running"
    still.after(4)
    assert still.store.get("pods", "web", "default")["status"]["reason"] == "DeadlineExceeded"


def addresses(still: Still) -> list[str]:
    return [pod["status"]["podIP"] for pod in still.store.all("pods") if pod["status"].get("podIP")]


def test_no_two_pods_have_one_address_though_the_kubelets_were_started_again() -> None:
    still = Still()
    for number in range(3):
        still.pod(f"old-{number}", "cpu4-0", cpu="100m")
    still.after(2)
    Kubelets(StoreLister(still.store), still.clock, read_stages())
    again = Kubelets(StoreLister(still.store), still.clock, read_stages())
    for number in range(3):
        still.store.create("pods", {"metadata": {"name": f"new-{number}"}, "spec": spec()}, "default")
    for _ in range(4):
        while again.step():
            pass
        still.clock.move_to(still.clock.now() + 2)
    found = addresses(still)
    assert len(found) == len(set(found)) == 6


def spec() -> dict[str, Any]:
    return {"nodeName": "cpu4-0", "containers": [{"name": "c", "image": "i"}]}


def test_addresses_are_given_again_only_once_they_were_given_back_and_as_late_as_can_be() -> None:
    pool = Addresses("10.0.0.0/29", ["10.0.0.2", "192.168.0.1"])
    assert [pool.take() for _ in range(6)] == ["10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.7", "10.0.0.1"]
    with pytest.raises(OSError, match="all of 8 addresses are in use"):
        pool.take()
    pool.give_back("10.0.0.4")
    assert pool.take() == "10.0.0.4"


def test_nodes_have_addresses_of_their_own_and_room_for_files() -> None:
    still = Still("3x4cpu")
    still.after(1)
    still.store.delete("nodes", "cpu4-0")
    still.after(1)
    still.store.create("nodes", {"metadata": {"name": "fresh"}, "status": {"capacity": {"cpu": "1", "pods": "1"}}})
    still.after(1)
    nodes = list(still.store.all("nodes"))
    found = [node["status"]["addresses"][0]["address"] for node in nodes]
    assert len(found) == len(set(found)) == 3
    assert nodes[0]["status"]["allocatable"]["ephemeral-storage"] == "100Gi"


@pytest.mark.parametrize("kind", ["replicasets.apps", "replicationcontrollers"])
def test_owner_whose_pods_a_quota_refuses_says_so_until_they_fit(kind: str) -> None:
    here = Still()
    here.store.create("resourcequotas", {"metadata": {"name": "two"}, "spec": {"hard": {"pods": "2"}}}, "default")
    here.after(1)
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}}
    selector = {"matchLabels": labels} if kind == "replicasets.apps" else labels
    here.store.create(kind, {"metadata": {"name": "web"}, "spec": {"replicas": 3, "selector": selector, "template": template}}, "default")
    here.after(5)
    status = here.store.get(kind, "web", "default")["status"]
    (failure,) = status["conditions"]
    assert (failure["type"], failure["status"], failure["reason"]) == ("ReplicaFailure", "True", "FailedCreate")
    assert "exceeded quota: two" in failure["message"] and status["replicas"] == 2
    here.store.patch("resourcequotas", "two", PatchRequest("merge", {"spec": {"hard": {"pods": "3"}}}), "default")
    here.after(30)
    status = here.store.get(kind, "web", "default")["status"]
    assert status["replicas"] == 3 and "conditions" not in status


def resize(here: Still, name: str, cpu: str) -> dict[str, Any]:
    amounts = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    change = {"spec": {"containers": [{"name": "main", "resources": amounts}]}}
    here.store.patch("pods", name, PatchRequest("strategic", change), "default", "resize")
    here.after(1)
    found: dict[str, Any] = here.store.get("pods", name, "default")
    return found


def test_running_pod_is_resized_as_far_as_its_node_has_room() -> None:
    here = Still("1x4cpu")
    (node,) = (each["metadata"]["name"] for each in here.store.all("nodes"))
    here.pod("first", node, "1")
    here.pod("second", node, "2")
    here.after(5)
    pod = resize(here, "first", "2")
    (container,) = pod["status"]["containerStatuses"]
    assert container["allocatedResources"]["cpu"] == container["resources"]["requests"]["cpu"] == "2" and container["restartCount"] == 0
    assert pod["status"]["observedGeneration"] == pod["metadata"]["generation"]
    pod = resize(here, "first", "3")
    (pending,) = (each for each in pod["status"]["conditions"] if each["type"] == "PodResizePending")
    assert (pending["status"], pending["reason"]) == ("True", "Deferred")
    assert pending["message"] == "Node didn't have enough cpu: requested: 3000, available: 2000"
    assert pod["status"]["containerStatuses"][0]["allocatedResources"]["cpu"] == "2"
    here.store.delete("pods", "second", "default")
    here.after(60)
    pod = here.store.get("pods", "first", "default")
    assert pod["status"]["containerStatuses"][0]["allocatedResources"]["cpu"] == "3" and "PodResizePending" not in conditions(pod)
    pod = resize(here, "first", "5")
    assert {each["reason"] for each in pod["status"]["conditions"] if each["type"] == "PodResizePending"} == {"Infeasible"}


def test_ephemeral_container_runs_beside_the_others() -> None:
    here = Still()
    here.pod("p", next(iter(here.store.all("nodes")))["metadata"]["name"])
    here.after(5)
    change = {"spec": {"ephemeralContainers": [{"name": "debugger", "image": "busybox", "terminationMessagePolicy": "File"}]}}
    here.store.patch("pods", "p", PatchRequest("strategic", change), "default", "ephemeralcontainers")
    here.after(1)
    pod = here.store.get("pods", "p", "default")
    (status,) = pod["status"]["ephemeralContainerStatuses"]
    assert status["name"] == "debugger" and "running" in status["state"]
    assert "container debugger of p started" in SimulatedContainers(lambda: 0.0).log(pod, "debugger", {})
