"""Endpoints and EndpointSlices of services: of the pods that they select, and of Endpoints that others keep."""

from __future__ import annotations

from typing import Any

from pumice.api import kinds
from pumice.api.json_objects import Key
from pumice.controllers.controller import ObjectChange
from pumice.controllers.in_memory import Memory
from pumice.controllers.kubernetes.endpoints import ENDPOINTS, SLICE, ServiceEndpoints, _services_over
from pumice.controllers.writes import delete

Object = dict[str, Any]
WEB = Key("default", "web")


def service(**spec: Any) -> Object:
    spec = {"selector": {"app": "web"}, "clusterIP": "10.96.0.9", "ports": [{"name": "http", "port": 80, "targetPort": "http"}]} | spec
    made = kinds.new(kinds.SERVICE, "default", "web", spec=spec)
    return {**made, "metadata": {**made["metadata"], "uid": "service"}}


def pod(name: str, ip: str = "10.0.0.1", is_ready: bool = True, port: int = 8080, **metadata: Any) -> Object:
    made = kinds.new(kinds.POD, "default", name)
    container = {"name": "c", "ports": [{"name": "http", "containerPort": port}]}
    status = {"phase": "Running", "podIP": ip, "conditions": [{"type": "Ready", "status": str(is_ready)}]}
    labels = {"labels": {"app": "web"}, "uid": name}
    return {
        **made,
        "metadata": made["metadata"] | labels | metadata,
        "spec": {"nodeName": "n", "containers": [container]},
        "status": status,
    }


def settled(*objects: Object) -> Memory:
    """The objects once the controller has nothing more to write."""
    memory = Memory(list(objects))
    for _ in range(3):
        writes = ServiceEndpoints().reconcile(WEB, memory, 0.0).writes
        for write in writes:
            memory.apply(write)
    assert not writes
    return memory


def slices(memory: Memory) -> list[Object]:
    return list(memory.all(SLICE, "default"))


def test_the_pods_that_a_service_selects_are_its_endpoints() -> None:
    memory = settled(
        service(), pod("a"), pod("b", "10.0.0.2", is_ready=False), pod("c", "", is_ready=False), pod("d", labels={"app": "other"})
    )
    (one,) = slices(memory)
    assert [(each["addresses"], each["conditions"]["ready"]) for each in one["endpoints"]] == [(["10.0.0.1"], True), (["10.0.0.2"], False)]
    assert one["addressType"] == "IPv4"
    assert one["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}] and one["metadata"]["ownerReferences"][0]["uid"] == "service"
    found = memory.get(ENDPOINTS, *WEB)
    assert found is not None
    (subset,) = found["subsets"]
    assert [each["ip"] for each in subset["addresses"]] == ["10.0.0.1"]
    assert [each["ip"] for each in subset["notReadyAddresses"]] == ["10.0.0.2"]


def test_many_pods_are_in_slices_of_a_hundred_and_other_ports_in_others() -> None:
    pods = [pod(f"p{number}", f"10.0.1.{number}") for number in range(150)]
    memory = settled(service(), *pods, pod("other", "10.0.2.1", port=9090))
    assert sorted(len(one["endpoints"]) for one in slices(memory)) == [1, 50, 100]


def test_slices_follow_their_pods_and_go_with_their_service() -> None:
    memory = settled(service(), pod("a"))
    memory.apply(delete(pod("a"), grace_s=0))
    for write in ServiceEndpoints().reconcile(WEB, memory, 0.0).writes:
        memory.apply(write)
    assert [one["endpoints"] for one in slices(memory)] == [[]]
    memory.apply(delete(service()))
    for write in ServiceEndpoints().reconcile(WEB, memory, 0.0).writes:
        memory.apply(write)
    assert not slices(memory) and memory.get(ENDPOINTS, *WEB) is None
    memory = settled(kinds.new(ENDPOINTS, "default", "web"))
    assert memory.get(ENDPOINTS, *WEB) is not None, "what others keep without a service stays"


def test_endpoints_of_others_are_mirrored_and_left_alone() -> None:
    kept = kinds.new(ENDPOINTS, "default", "web", subsets=[{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}])
    memory = settled(service(selector=None), {**kept, "metadata": {**kept["metadata"], "uid": "e"}})
    (one,) = slices(memory)
    assert one["endpoints"] == [{"addresses": ["192.0.2.1"], "conditions": {"ready": True}}]
    assert one["ports"] == [{"name": "", "port": 80, "protocol": "TCP"}]


def test_only_changes_of_pods_that_matter_to_a_service_wake_it() -> None:
    memory = Memory([service()])
    before = pod("a")
    same, unready = {**before, "spec": {**before["spec"], "priority": 1}}, pod("a", is_ready=False)
    assert not list(_services_over(ObjectChange(before, same), memory))
    assert list(_services_over(ObjectChange(before, unready), memory)) == [WEB]
    assert not list(_services_over(ObjectChange(None, pod("b", labels={"app": "x"})), memory))
