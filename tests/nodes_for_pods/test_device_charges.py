"""Devices that take of their node's own resources: what a pod requests then differs from node to node (DRANodeAllocatableResources)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import json

from pumice.api.kinds import NATIVE_POD_GROUP
from pumice.api.pod import Pod
from pumice.api.structs import convert, encode
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.pod_request import pod_request
from pumice.scheduler.plugins.kube.devices.charges import CHARGES
from pumice.scheduler.plugins.kube.dynamic_resources import dynamic_resources
from pumice.scheduler.plugins.kube.indexes.assumed_devices import AssumedDevices
from pumice.testing import PodBuilder, cluster, node
from tests.kube_scheduler.native import group
from tests.nodes_for_pods.asking import refusals
from tests.nodes_for_pods.test_devices import Thing, asks, claim, device_class, held, pool, using

NODES = (node("a").cpu(4).memory("8Gi"), node("b").cpu(8).memory("8Gi"))
WHOLE = {"cpu": {"mapping": {"deviceMultiplier": "2"}}}
HUGE = "hugepages-2Mi"
OF_HUGE = {HUGE: {"overhead": {"perContainer": "2Mi"}}}
SHARED = "claim c has a mapped device and cannot be shared across pods!"


def taking(name: str, of: Thing | None = None, **more: Any) -> Thing:
    return {"name": name, "nodeAllocatableResources": WHOLE if of is None else of} | more


def over(**amounts: str) -> Thing:
    return {"memory": {"overhead": amounts}}


def scene(*things: Any) -> Cluster:
    made = cluster(*NODES, device_class(), *things)
    made.device_gates = frozenset({CHARGES})
    return made


def user(name: str, cpu: int = 1, claims: tuple[str, ...] = ("c",), containers: int = 1, **more: Any) -> PodBuilder:
    each = {"resources": {"requests": {"cpu": cpu}, "claims": [{"name": name} for name in claims]}}
    made = using(name, *claims).having("spec", "containers", value=[each | {"name": f"k{n}"} for n in range(containers)])
    return made.having("spec", "resources", value=more) if more else made


def told(made: Cluster, name: str = "p") -> dict[str, str]:
    return refusals(made, f"default/{name}", *dynamic_resources(made))


def put(made: Cluster, name: str, row: int) -> list[Thing]:
    """Put a pod on a row; what is to be written of its devices."""
    made.index(AssumedDevices)
    task = made.tasks[f"default/{name}"]
    made.move(task, status.ALLOCATED, row)
    made.check()
    return [json.decode(encode(each)) for each in task.charges]


def test_a_device_adds_to_what_the_pod_requests_on_its_node() -> None:
    made = scene(pool("a", taking("a0")), pool("b", taking("b0")), claim("c"), user("p", 3))
    assert told(made) == {"a": "Insufficient cpu!"}
    (charge,) = put(made, "p", 1)
    assert charge == {"resourceClaimName": "c", "containers": ["k0"], "mapping": [{"name": "cpu", "quantity": "2"}], "overhead": []}
    assert made.nodes.used[0, 1] == 5000
    made.move(made.tasks["default/p"], status.BINDING, 1)
    made.move(made.tasks["default/p"], status.RUNNING, 1)
    assert made.nodes.used[0, 1] == 5000
    made.move(made.tasks["default/p"], status.PENDING, -1)
    made.check()
    assert made.nodes.used[0, 1] == 0 and not made.tasks["default/p"].charges


def test_without_the_gate_devices_take_nothing() -> None:
    made = cluster(*NODES, device_class(), pool("a", taking("a0")), claim("c"), user("p", 3))
    assert told(made) == {"b": "cannot allocate all claims!"}
    assert not put(made, "p", 0) and made.nodes.used[0, 0] == 3000


def test_what_evictions_could_free_is_no_final_refusal() -> None:
    made = scene(pool("a", taking("a0")), claim("c"), user("p", 2), user("q", 1, ()).on("a"))
    assert told(made) == {"a": "Insufficient cpu", "b": "cannot allocate all claims!"}


@pytest.mark.parametrize(
    ("of", "amount"),
    [
        ({"capacityKey": "ram", "capacityMultiplier": "1"}, "1536Mi"),
        ({"capacityKey": "ram", "capacityMultiplier": "500m"}, "768Mi"),
        ({"capacityKey": "ram"}, "1536Mi"),
        ({"capacityKey": "cores", "capacityMultiplier": "250m"}, "750m"),
        ({"capacityKey": "other", "capacityMultiplier": "1"}, ""),
        ({}, ""),
    ],
)
def test_what_is_taken_of_a_capacity_counts(of: Thing, amount: str) -> None:
    capacity = {"ram": {"value": "8Gi"}, "cores": {"value": "8"}}
    shared = taking("a0", {"memory": {"mapping": of}}, allowMultipleAllocations=True, capacity=capacity)
    wanted = claim("c", asks(capacity={"requests": {"ram": "1536Mi", "cores": "3"}}))
    made = scene(pool("a", shared), wanted, user("p"))
    assert told(made) == {"b": "cannot allocate all claims!"}
    assert [each["mapping"][0]["quantity"] for each in put(made, "p", 0)] == ([amount] if amount else [])


def test_a_capacity_of_a_device_that_is_not_shared_is_an_error_of_the_attempt() -> None:
    key = taking("a0", {"cpu": {"mapping": {"capacityKey": "k"}}})
    made = scene(pool("a", key), claim("c"), user("p"))
    what = "ConsumedCapacity is nil, but Capacity key 'k' is set in NodeAllocatableResources for resource cpu"
    assert told(made)["a"] == f"claim default/c, device a0: {what}!"
    assert not put(made, "p", 0)


def test_overhead_is_for_each_pod_and_each_container_that_names_the_claim() -> None:
    both = [taking(name, over(perPod="1Gi", perContainer="512Mi")) for name in ("a0", "a1")]
    asking = user("p", claims=("c", "d"), containers=2)
    made = scene(pool("a", *both, "a2"), claim("c", asks(2)), claim("d"), asking, user("q"))
    (charge,) = put(made, "p", 0)
    assert charge == {
        "resourceClaimName": "c",
        "containers": ["k0", "k1"],
        "mapping": [],
        "overhead": [{"name": "memory", "perPod": "2Gi", "perContainer": "1Gi"}],
    }
    assert made.nodes.used[1, 0] == 4 * 2**30
    assert told(made, "q")["b"].startswith("resourceclaim not available"), "such a claim may be shared, where its devices are"
    put(made, "q", 0)
    assert made.nodes.used[1, 0] == 7 * 2**30


def test_a_claim_whose_device_is_a_part_of_the_node_is_for_one_pod() -> None:
    made = scene(pool("a", taking("a0")), claim("c"), user("p"), user("q"))
    put(made, "p", 0)
    assert told(made, "q") == {"a": f"node allocatable resource {SHARED}", "b": "resourceclaim not available on the node!"}


@pytest.mark.parametrize(("holder", "refused"), [("default-p", False), ("other", True), ("", False)])
def test_a_claim_that_is_kept_for_another_pod_is_refused(holder: str, refused: bool) -> None:
    status_of = held("a0")["status"] | ({"reservedFor": [{"resource": "pods", "name": "x", "uid": holder}]} if holder else {})
    made = scene(pool("a", taking("a0")), pool("b", "b0"), claim("c", status=status_of), user("p"))
    assert told(made) == ({"a": f"node allocatable resource {SHARED}", "b": f"node allocatable resource {SHARED}"} if refused else {})


def test_a_claim_that_is_kept_for_the_group_serves_its_pods() -> None:
    member = user("p").having("spec", "schedulingGroup", value={"podGroupName": "g"})
    kind, made_group = group("g").build()
    status_of = held("a0")["status"] | {"reservedFor": [{"resource": "podgroups", "name": "g", "uid": made_group.metadata.identity}]}
    made = scene(pool("a", taking("a0")), claim("c", status=status_of), member)
    made.put(kind, made_group)
    assert kind == NATIVE_POD_GROUP and told(made)
    made.shares_claims = True
    assert not told(made)


def test_a_device_that_is_gone_is_an_error_if_others_of_the_claim_take_something() -> None:
    made = scene(pool("a", taking("a0")), claim("c", **held("a0", "a1")), user("p"))
    gone = "claim default/c, device a1, driver drv: device a1 not found in pool a for driver drv!"
    assert told(made) == {"a": gone}, "on b no device of it is found, and so it takes nothing there"


def test_devices_of_several_nodes_take_of_the_node_that_the_pod_gets() -> None:
    everywhere = pool("x", taking("x0", allNodes=True), taking("x1", nodeName="b"), perDeviceNodeSelection=True)
    made = scene(everywhere, claim("c", asks(2)), user("p", 3))
    assert told(made) == {"a": "cannot allocate all claims!"}
    put(made, "p", 1)
    assert made.nodes.used[0, 1] == 7000


def test_too_few_devices_are_told_as_ever() -> None:
    twice = pool("a", taking("a0"), taking("a0"))
    made = scene(twice, claim("c"), user("p"))
    assert told(made)["a"] == "invalid resource pools were encountered!"
    assert not put(made, "p", 0)
    made = scene(pool("a", "a0"), claim("c"), user("p"))
    assert told(made) == {"b": "cannot allocate all claims!"}, "where no device takes anything nothing is counted"


COVER = "is insufficient to cover"
TOGETHER = f"{COVER} the aggregated container and node-allocatable DRA"


@pytest.mark.parametrize(
    ("requests", "limits", "own", "of", "text"),
    [
        ({"cpu": "3"}, {}, {}, WHOLE, ""),
        ({"cpu": "2"}, {}, {}, WHOLE, f"pod level request for cpu {TOGETHER} requests!"),
        ({"memory": "1"}, {}, {}, WHOLE, ""),
        ({"example.com/x": "0"}, {}, {}, WHOLE, ""),
        ({"cpu": "3"}, {"cpu": "3"}, {"cpu": "1"}, WHOLE, ""),
        ({"cpu": "3"}, {"cpu": "3"}, {"cpu": "2"}, WHOLE, f"pod level limit for cpu {COVER} the limit and DRA overhead for container k0!"),
        ({"cpu": "3", "memory": "1Gi"}, {"memory": "1Gi"}, {"cpu": "9"}, WHOLE, ""),
        ({HUGE: "4Mi"}, {HUGE: "2Mi"}, {HUGE: "2Mi"}, OF_HUGE, f"pod level limit for {HUGE} {TOGETHER} limits!"),
    ],
)
def test_the_pod_as_a_whole_must_cover_its_devices(requests: Thing, limits: Thing, own: Thing, of: Thing, text: str) -> None:
    asking = user("p", 1, requests=requests, limits=limits)
    asking.document["spec"]["containers"][0]["resources"]["limits"] = own
    made = scene(pool("a", taking("a0", of)), claim("c"), asking)
    assert told(made).get("a", "") == text


def test_a_running_pod_takes_what_its_status_says() -> None:
    charge: Thing = {"resourceClaimName": "c", "containers": ["k0", "k1"]}
    charge["mapping"] = [{"name": "cpu", "quantity": "2"}, {"name": "memory"}]
    charge["overhead"] = [{"name": "cpu", "perContainer": "250m"}, {"name": "memory", "perPod": "1Gi"}]
    running = user("p").on("a").having("status", "nodeAllocatableResourceClaimStatuses", value=[charge, {"resourceClaimName": "d"}])
    made = scene(running, user("q").on("b"))
    assert made.nodes.used[0, 0] == 3500 and made.nodes.used[1, 0] == 2**30 and made.nodes.used[0, 1] == 1000
    assert made.tasks["default/p"].template.newcomer_cpu == 1000, "scores of pods without a node do not count it"
    task = made.tasks["default/p"]
    made.move(task, status.PENDING, -1)
    made.move(task, status.RUNNING, 0)
    assert made.nodes.used[0, 0] == 3500, "a trial that moves it leaves no trace"
    whole = convert(running.having("spec", "resources", value={"requests": {"cpu": "9"}}).document, Pod)
    assert pod_request(whole)["cpu"] == 9000


def test_an_imagined_move_changes_nothing_of_it() -> None:
    made = scene(pool("a", taking("a0")), claim("c"), user("p"))
    put(made, "p", 0)
    made.imagined = True
    made.move(made.tasks["default/p"], status.PENDING, -1)
    made.move(made.tasks["default/p"], status.ALLOCATED, 0)
    made.imagined = False
    made.check()
    assert made.nodes.used[0, 0] == 3000
