"""Device claims: which nodes have the devices that a pod's claims ask for."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.scheduler.engine.rules import Reach
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.plugins.kube.dynamic_resources import FreeDevices, dynamic_resources
from pumice.scheduler.plugins.kube.indexes.assumed_devices import AssumedDevices
from pumice.testing import ObjectBuilder, PodBuilder, cluster, manifest, pod, podgroup, schedule
from tests.nodes_for_pods.asking import HOST, admitted, evaluated, refusals, zoned

Thing = dict[str, Any]
NODES = zoned(a="", b="", c="")
FULL = "cannot allocate all claims"  #: for good


def device_class(name: str = "gpu", *selectors: str) -> ObjectBuilder:
    return manifest("DeviceClass", name, spec={"selectors": [{"cel": {"expression": text}} for text in selectors]})


def device(name: str, memory: str = "", **attributes: Any) -> Thing:
    kinds = {bool: "bool", int: "int", str: "string"}
    made: Thing = {"name": name, "attributes": {key: {kinds[type(value)]: value} for key, value in attributes.items()}}
    return made | ({"capacity": {"memory": {"value": memory}}} if memory else {})


def pool(on: str, *devices: Thing | str, generation: int = 1, slices: int = 1, name: str = "", **more: Any) -> ObjectBuilder:
    offered = [device(each) if isinstance(each, str) else each for each in devices]
    where = more or {"nodeName": on}
    of = {"name": on, "generation": generation, "resourceSliceCount": slices}
    spec = {"driver": "drv", "pool": of, "devices": offered} | where
    return manifest("ResourceSlice", name or f"{on}-{generation}", spec=spec)


def asks(count: int = 1, name: str = "r", selectors: tuple[str, ...] = (), kind: str = "gpu", **more: Any) -> Thing:
    wanted: Thing = {"deviceClassName": kind, "count": count, "selectors": [{"cel": {"expression": text}} for text in selectors]}
    return {"name": name, "exactly": wanted | more}


def claim(name: str, *requests: Thing, constraints: list[Thing] | None = None, metadata: Thing | None = None, **more: Any) -> ObjectBuilder:
    devices = {"requests": list(requests or (asks(),)), "constraints": constraints or []}
    made = manifest("ResourceClaim", name, spec={"devices": devices}, **more)
    return made.having("metadata", value=made.document["metadata"] | (metadata or {}))


def held(*devices: str, selector: Thing | None = None, admin: bool = False) -> Thing:
    results = [{"request": "r", "driver": "drv", "pool": name[0], "device": name, "adminAccess": admin} for name in devices]
    return {"status": {"allocation": {"devices": {"results": results}} | ({"nodeSelector": selector} if selector else {})}}


def using(name: str, *claims: str) -> PodBuilder:
    return pod(name).having("spec", "resourceClaims", value=[{"name": each, "resourceClaimName": each} for each in claims])


def made_for(name: str, made: str | None) -> PodBuilder:
    """A pod whose claim comes from a template."""
    asker = pod(name).having("spec", "resourceClaims", value=[{"name": "g", "resourceClaimTemplateName": "t"}])
    return asker.having("status", "resourceClaimStatuses", value=[{"name": "g", "resourceClaimName": made}]) if made else asker


def owned_by(pod_name: str) -> Thing:
    """Metadata of a claim that was made for a pod."""
    return {"ownerReferences": [{"kind": "Pod", "name": pod_name, "uid": f"default-{pod_name}", "controller": True}]}


def crowded(users: int) -> Thing:
    return {"allocation": {"devices": {}}, "reservedFor": [{"uid": str(number)} for number in range(users)]}


def where(*things: Any) -> str:
    made = cluster(*NODES, device_class(), *things)
    return admitted(made, "default/p", *dynamic_resources(made))


def place(made: Cluster, name: str, row: int) -> list[str]:
    """Put a pod on a row; the devices that it gets."""
    made.move(made.tasks[f"default/{name}"], status.ALLOCATED, row)
    allotted = made.index(AssumedDevices).of_pod(made.tasks[f"default/{name}"])
    return [f"{pick.request}:{pick.device[2]}" for each in allotted for pick in each.picks]


POOLS = (pool("a", "a0", "a1"), pool("b", "b0"))


def test_a_node_needs_as_many_free_devices_as_the_claim_asks_for() -> None:
    assert where(*POOLS, claim("c"), using("p", "c")) == "a b"
    assert where(*POOLS, claim("c", asks(2)), using("p", "c")) == "a"
    assert where(*POOLS, claim("c", asks(2)), claim("d", **held("a1")), using("p", "c")) == ""
    assert where(*POOLS, claim("c", asks(1), asks(1, "s")), using("p", "c")) == "a"
    assert where(*POOLS, claim("c"), claim("d"), using("p", "c", "d")) == "a"


def test_a_flat_request_is_read_as_well() -> None:
    assert where(*POOLS, claim("c", {"name": "r", "deviceClassName": "gpu", "count": 2}), using("p", "c")) == "a"


def test_a_pod_without_claims_is_left_alone() -> None:
    made = cluster(*NODES, pod("p"))
    for rule in dynamic_resources(made):
        assert rule.prepare(made.tasks["default/p"]) is None and rule.key(made.tasks["default/p"]) is None
    assert "assumed devices" not in made.memory


def test_selectors_of_the_class_and_of_the_request_must_all_hold() -> None:
    mixed = pool("a", device("a0", model="A100"), device("a1", model="H100"), device("a2", model="A100", shared=True))
    kind = device_class("big", 'device.attributes["drv"].model == "A100"')
    private = '!has(device.attributes["drv"].shared)'
    assert where(mixed, kind, claim("c", asks(2, kind="big")), using("p", "c")) == "a"
    assert where(mixed, kind, claim("c", asks(2, kind="big", selectors=(private,))), using("p", "c")) == ""
    assert where(mixed, kind, claim("c", asks(1, kind="big", selectors=(private,))), using("p", "c")) == "a"


def test_a_selector_that_cannot_be_judged_is_told() -> None:
    made = cluster(*NODES, device_class(), *POOLS, claim("c", asks(selectors=("true", "device.driver.nope("))), using("p", "c"))
    refused = refusals(made, "default/p", *dynamic_resources(made))
    assert refused.keys() == set("abc") and refused["c"] == FULL + "!"
    assert refused["a"].startswith("claim default/c: selector #1: CEL compile error: ")
    made = cluster(*NODES, device_class("gpu", 'device.attributes["drv"].x == 1'), *POOLS, claim("c"), using("p", "c"))
    told = "class gpu: selector #0: CEL runtime error: no such key: x!"
    assert refusals(made, "default/p", *dynamic_resources(made)) == {"a": told, "b": told, "c": FULL + "!"}
    made = cluster(*NODES, device_class("gpu", 'device.attributes["drv"].x == 1'), *POOLS, claim("c"), using("p", "c"))
    made.newer = True  # as 1.37 says it
    told = "class gpu: selector #0 on device drv/a/a0: CEL runtime error: no such key: x. consider using CEL optional chaining "
    hint = "(.? followed by orValue()) or guarding the check with has() for optional fields!"
    assert refusals(made, "default/p", *dynamic_resources(made))["a"] == told + hint
    assert evaluated(made, "default/p", dynamic_resources(made)).failing.tolist() == [0, 1]
    assert place(made, "p", 0) == []


def test_looking_at_all_devices_may_not_cost_much_more_than_looking_at_one() -> None:
    devices = [device(f"a{number}", number=number) for number in range(8)]
    slow = "lists.range(30000).size() == device.attributes['drv'].number"
    made = cluster(*NODES, device_class(), pool("a", *devices), claim("c", asks(selectors=(slow,))), using("p", "c"))
    told = "claim default/c: selector #0: CEL runtime error: operation cancelled: actual cost limit exceeded!"
    assert refusals(made, "default/p", *dynamic_resources(made))["a"] == told


def test_selectors_are_asked_of_devices_only_as_far_as_the_search_goes() -> None:
    mixed = pool("a", device("a0", model="x"), "a1")
    has_model = asks(selectors=('device.attributes["drv"].model == "x"',))
    assert where(mixed, claim("c", has_model), using("p", "c")) == "a"
    assert where(mixed, claim("c", has_model), claim("d", **held("a0")), using("p", "c")) == ""


def test_a_demanding_request_is_not_robbed_by_an_easily_pleased_one() -> None:
    mixed = pool("a", device("a0", big=True), device("a1", big=False))
    first_any = claim("c", asks(1, "any"), asks(1, "big", ('device.attributes["drv"].big',)))
    made = cluster(*NODES, device_class(), mixed, first_any, using("p", "c"))
    assert admitted(made, "default/p", *dynamic_resources(made)) == "a"
    assert place(made, "p", 0) == ["any:a1", "big:a0"]


def test_capacity_is_at_least_what_is_asked_for() -> None:
    mixed = pool("a", device("a0", "10Gi"), device("a1", "40Gi"), "a2")
    assert where(mixed, claim("c", asks(1, capacity={"requests": {"memory": "20Gi"}})), using("p", "c")) == "a"
    assert where(mixed, claim("c", asks(2, capacity={"requests": {"memory": "20Gi"}})), using("p", "c")) == ""


def test_all_devices_means_all_and_at_least_one() -> None:
    everything = asks(allocationMode="All")
    assert where(*POOLS, claim("c", everything), using("p", "c")) == "a b"
    assert where(*POOLS, claim("c", everything), claim("d", **held("a1")), using("p", "c")) == "b"


def test_administrative_access_uses_nothing_up() -> None:
    watching = claim("c", asks(allocationMode="All", adminAccess=True))
    made = cluster(*NODES, device_class(), *POOLS, watching, claim("d", **held("a0")), claim("e"), using("p", "c"), using("q", "e"))
    assert admitted(made, "default/p", *dynamic_resources(made)) == "a b"
    assert place(made, "p", 0) == ["r:a0", "r:a1"]
    assert place(made, "q", 0) == ["r:a1"]
    assert where(*POOLS, claim("x", **held("b0", admin=True)), claim("c"), using("p", "c")) == "a b"


def test_the_first_alternative_that_can_be_had_is_taken() -> None:
    mixed = (pool("a", device("a0", big=True)), pool("b", device("b0", big=False)))
    big, small = (
        {"name": name, "deviceClassName": "gpu", "selectors": [{"cel": {"expression": text}}]}
        for name, text in (("big", 'device.attributes["drv"].big'), ("small", '!device.attributes["drv"].big'))
    )
    either = claim("c", {"name": "r", "firstAvailable": [big, small]})
    made = cluster(*NODES, device_class(), *mixed, either, using("p", "c"))
    assert admitted(made, "default/p", *dynamic_resources(made)) == "a b"
    assert place(made, "p", 1) == ["r/small:b0"]


def test_devices_of_a_claim_may_have_to_agree_in_an_attribute() -> None:
    apart = (
        pool("a", device("a0", numa=0), device("a1", numa=1), "a3"),
        pool("b", device("b0", numa=0), device("b1", numa=1), device("b2", numa=1)),
    )
    together = [{"matchAttribute": "drv/numa"}]
    made = cluster(*NODES, device_class(), *apart, claim("c", asks(2), constraints=together), using("p", "c"))
    assert admitted(made, "default/p", *dynamic_resources(made)) == "b"
    assert place(made, "p", 1) == ["r:b1", "r:b2"]
    some = claim("c", asks(2), asks(1, "s"), constraints=[{"matchAttribute": "numa", "requests": ["r"]}])
    assert where(*apart, some, using("p", "c")) == "b"


def test_devices_of_a_claim_may_have_to_differ_in_an_attribute() -> None:
    apart = (
        pool("a", device("a0", numa=0), device("a1", numa=0), device("a2", numa=1), "a3"),
        pool("b", device("b0", numa=0), device("b1", numa=0)),
    )
    made = cluster(*NODES, device_class(), *apart, claim("c", asks(2), constraints=[{"distinctAttribute": "drv/numa"}]), using("p", "c"))
    assert admitted(made, "default/p", *dynamic_resources(made)) == "a"
    assert place(made, "p", 0) == ["r:a0", "r:a2"]


def test_constraints_without_an_attribute_and_unknown_classes_are_told() -> None:
    other = claim("c", constraints=[{"requests": ["r"]}])
    made = cluster(*NODES, device_class(), *POOLS, other, using("p", "c"), claim("d", asks(kind="none")), using("q", "d"))
    told = "claim default/c: a constraint that is neither of matchAttribute nor of distinctAttribute!"
    assert refusals(made, "default/p", *dynamic_resources(made)) == dict.fromkeys("abc", told)
    assert refusals(made, "default/q", *dynamic_resources(made)) == dict.fromkeys("abc", "request r: device class none does not exist!")
    assert place(made, "q", 0) == []


@pytest.mark.parametrize(
    ("things", "reason"),
    [
        ([using("p", "c")], 'resourceclaim "c" not found!'),
        ([using("p", "c"), claim("c", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})], 'resourceclaim "c" is being deleted!'),
        ([made_for("p", None)], 'waiting for the resourceclaim of "g" to be created!'),
        ([made_for("p", "c"), claim("c", metadata=owned_by("x"))], 'resourceclaim "c" was not created for this pod!'),
        ([made_for("p", "c"), claim("c")], 'resourceclaim "c" was not created for this pod!'),
        ([using("p", "c"), claim("c", status=crowded(256))], "resourceclaim in use!"),
    ],
)
def test_a_claim_in_the_way_is_told(things: list[Any], reason: str) -> None:
    made = cluster(*NODES, device_class(), *POOLS, *things)
    assert refusals(made, "default/p", *dynamic_resources(made)) == dict.fromkeys("abc", reason)


def test_a_claim_that_turned_out_not_to_be_needed_is_left_aside() -> None:
    unneeded = made_for("p", "c").having("status", "resourceClaimStatuses", value=[{"name": "g"}])
    assert where(*POOLS, unneeded) == "a b c"


def test_an_allocated_claim_is_used_where_its_devices_are() -> None:
    only_b = {"nodeSelectorTerms": [{"matchExpressions": [{"key": HOST, "operator": "In", "values": ["b"]}]}]}
    made = cluster(
        *NODES, device_class(), claim("c", **held("b0", selector=only_b)), claim("d", **held("x")), using("p", "c"), using("q", "d")
    )
    assert refusals(made, "default/p", *dynamic_resources(made)) == dict.fromkeys("ac", "resourceclaim not available on the node!")
    assert admitted(made, "default/q", *dynamic_resources(made)) == "a b c"


def test_only_complete_pools_of_the_newest_generation_count() -> None:
    assert where(pool("a", "a0", generation=1), pool("a", generation=2), claim("c"), using("p", "c")) == ""
    assert where(pool("a", "a0", slices=2), claim("c"), using("p", "c")) == ""
    assert where(pool("a", "a0", slices=2), pool("a", "a1", slices=2, name="more"), claim("c", asks(2)), using("p", "c")) == "a"


def test_devices_that_several_nodes_reach_are_counted_together() -> None:
    some = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": HOST, "operator": "NotIn", "values": ["c"]}]}]}}
    made = cluster(*NODES, device_class(), pool("net", "n0", **some), claim("c"), claim("d"), using("p", "c"), using("q", "d"))
    assert FreeDevices(made).reach is Reach.CLUSTER
    assert admitted(made, "default/p", *dynamic_resources(made)) == "a b"
    assert place(made, "q", 1) == ["r:n0"]
    assert admitted(made, "default/p", *dynamic_resources(made)) == ""
    assert where(pool("net", "n0", allNodes=True), claim("c"), using("p", "c")) == "a b c"


def test_a_claim_that_pods_share_ties_them_to_the_node_of_the_first() -> None:
    made = cluster(*NODES, device_class(), *POOLS, claim("c"), *using("p", "c").times(3))
    rules = dynamic_resources(made)
    assert admitted(made, "default/p-2", *rules) == "a b"
    assert place(made, "p-0", 1) == place(made, "p-1", 1) == ["r:b0"]
    assert admitted(made, "default/p-2", *rules) == "b"
    made.move(made.tasks["default/p-0"], status.PENDING, -1)
    assert admitted(made, "default/p-2", *rules) == "b"
    made.move(made.tasks["default/p-1"], status.PENDING, -1)
    assert admitted(made, "default/p-2", *rules) == "a b"
    assert not made.index(AssumedDevices).in_use.alone


def test_pods_with_claims_of_their_own_share_an_evaluation_and_not_their_devices() -> None:
    pods = [made_for(f"p-{n}", f"c{n}").cpu(1).gang("g") for n in range(4)]
    claims = [claim(f"c{n}", metadata=owned_by(f"p-{n}")) for n in range(4)]
    made = cluster(*NODES, device_class(), *POOLS, *claims, podgroup("g", 3).phase("Inqueue"), *pods)
    assert len({FreeDevices(made).key(task) for task in made.tasks.values()}) == 1
    outcome = schedule(made, "allocate", "predicates", "gang")
    assert sorted(outcome.binds.values()) == ["a", "a", "b"]
    assert len(made.index(AssumedDevices).in_use.alone) == 3


def test_once_the_claim_object_says_it_nothing_is_assumed() -> None:
    made = cluster(*NODES, device_class(), *POOLS, claim("c"), claim("d"), using("p", "c"), using("q", "d"))
    made.index(AssumedDevices)
    place(made, "p", 0)
    made.put(*claim("c", **held("a0")).build())
    made.put(*claim("e").build())
    made.move(made.tasks["default/p"], status.RUNNING, 0)
    assert place(made, "q", 0) == ["r:a1"]
    assert list(made.index(AssumedDevices).by_claim) == ["default/d"]
    made.remove("ResourceClaim", "default/d")
    assert made.index(AssumedDevices).in_use.alone == {("drv", "a", "a0"): 1}


def test_a_pod_that_came_with_its_node_has_the_devices_that_its_claim_says() -> None:
    made = cluster(*NODES, device_class(), *POOLS, claim("c", asks(2)), claim("d", asks(2)), using("x", "c").on("a"), using("p", "d"))
    assert admitted(made, "default/p", *dynamic_resources(made)) == "a"
    made.put(*claim("c", asks(2), **held("a0")).build())
    assert admitted(made, "default/p", *dynamic_resources(made)) == ""


def test_what_was_decided_stands_while_other_claims_come_and_other_pods_move() -> None:
    made = cluster(*NODES, device_class(), *POOLS, claim("c"), using("p", "c"), pod("q"), using("r", "d"))
    made.index(AssumedDevices)
    assert place(made, "p", 0) == ["r:a0"]
    made.put(*claim("d", asks(2)).build())
    made.move(made.tasks["default/q"], status.ALLOCATED, 0)
    assert admitted(made, "default/r", *dynamic_resources(made)) == ""
    made.move(made.tasks["default/p"], status.PENDING, -1)
    assert admitted(made, "default/r", *dynamic_resources(made)) == "a"


def test_who_stands_where_there_are_no_devices_gets_none() -> None:
    made = cluster(*NODES, device_class(), *POOLS, claim("c"), using("p", "c").on("c"))
    assert made.index(AssumedDevices).of_pod(made.tasks["default/p"]) == []


@pytest.mark.parametrize("tier", ["own", "shared"])
def test_of_pods_whose_claims_ask_for_the_same_only_nodes_that_lost_a_device_are_asked_again(
    tier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools = [pool("a", "a0"), pool("b", "b0")] if tier == "own" else [pool("p", "p0", "p1", allNodes=True)]
    named = [f"c{number}" for number in range(3)]
    made = cluster(*NODES, device_class(), *pools, *map(claim, named), *(using(name, name) for name in named))
    asked: list[int] = []
    try_on = AssumedDevices.try_on

    def counted(index: AssumedDevices, row: int, wanted: Any) -> Any:
        asked.append(row)
        return try_on(index, row, wanted)

    monkeypatch.setattr(AssumedDevices, "try_on", counted)
    rows = []
    for name in named:
        evaluation = evaluated(made, f"default/{name}", dynamic_resources(made))
        rows.append((sorted(asked), evaluation.admitted.tolist()))
        if evaluation.admitted.any():
            made.move(made.tasks[f"default/{name}"], status.ALLOCATED, int(evaluation.admitted.argmax()))
        asked.clear()
    if tier == "own":
        assert rows == [([0, 1, 2], [True, True, False]), ([0], [False, True, False]), ([1], [False, False, False])]
    else:
        assert rows == [([0, 1, 2], [True] * 3), ([0, 1, 2], [True] * 3), ([0, 1, 2], [False] * 3)]
    made.check()
