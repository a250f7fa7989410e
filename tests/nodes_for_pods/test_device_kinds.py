"""Devices that are not simply had or not had: tainted, shared, cut out of others, for some nodes only, behind extended resources."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.plugins.kube.devices import allocation
from pumice.scheduler.plugins.kube.devices.extended_resources import classes_by_resource
from pumice.scheduler.plugins.kube.dynamic_resources import EarlierAlternatives, FreeDevices, dynamic_resources
from pumice.scheduler.plugins.kube.indexes.assumed_devices import AssumedDevices
from pumice.scheduler.plugins.kube.node_resources_fit import FitFilter
from pumice.testing import ObjectBuilder, PodBuilder, cluster, manifest, node, pod
from tests.nodes_for_pods.asking import HOST, admitted, refusals, scores
from tests.nodes_for_pods.test_devices import FULL, NODES, asks, claim, device, device_class, held, place, pool, using, where

Thing = dict[str, Any]
BAD = {"key": "bad", "value": "1", "effect": "NoSchedule"}


# -- taints


@pytest.mark.parametrize(
    ("taint", "toleration", "where_it_fits"),
    [
        ({}, None, ""),
        ({"effect": "NoExecute"}, None, ""),
        ({"effect": "None"}, None, "a"),
        ({}, {"operator": "Exists"}, "a"),
        ({}, {"key": "bad", "value": "1"}, "a"),
        ({}, {"key": "bad", "operator": "Equal", "value": "2"}, ""),
        ({}, {"key": "other", "operator": "Exists"}, ""),
        ({}, {"key": "bad", "operator": "Exists", "effect": "NoExecute"}, ""),
        ({}, {"key": "bad", "operator": "Nonsense"}, ""),
    ],
)
def test_a_tainted_device_goes_to_those_who_tolerate_it(taint: Thing, toleration: Thing | None, where_it_fits: str) -> None:
    tainted = device("a0") | {"taints": [BAD | taint]}
    asking = asks(tolerations=[toleration] if toleration else [])
    assert where(pool("a", tainted), claim("c", asking), using("p", "c")) == where_it_fits


@pytest.mark.parametrize(
    ("selector", "where_it_fits"),
    [
        (None, "a b"),
        ({}, ""),
        ({"driver": "drv", "pool": "a"}, "b"),
        ({"device": "b0"}, "a"),
        ({"driver": "another"}, "a b"),
    ],
)
def test_rules_taint_devices_too(selector: Thing | None, where_it_fits: str) -> None:
    spec = {"taint": BAD} | ({} if selector is None else {"deviceSelector": selector})
    rule = manifest("DeviceTaintRule", "r", spec=spec)
    assert where(pool("a", "a0"), pool("b", "b0"), rule, claim("c"), using("p", "c")) == where_it_fits


# -- counters


def cut(name: str, amount: int, of: str = "cs") -> Thing:
    return device(name) | {"consumesCounters": [{"counterSet": of, "counters": {"mem": {"value": amount}}}]}


def counters(on: str, amount: int, *names: str, slices: int = 2) -> ObjectBuilder:
    sets = [{"name": name, "counters": {"mem": {"value": amount}}} for name in names or ("cs",)]
    made = pool(on, slices=slices, name=f"{on}-counters").having("spec", "devices", value=None)
    return made.having("spec", "sharedCounters", value=sets)


def test_devices_that_are_cut_out_of_one_share_its_counters() -> None:
    parts = (counters("a", 40), pool("a", cut("a0", 30), cut("a1", 10), cut("a2", 20), slices=2))
    assert where(*parts, claim("c", asks(2)), using("p", "c")) == "a"
    assert where(*parts, claim("c", asks(3)), using("p", "c")) == ""
    assert where(*parts, claim("d", **held("a0")), claim("c", asks(1)), using("p", "c")) == "a"
    assert where(*parts, claim("d", **held("a0")), claim("c", asks(2)), using("p", "c")) == ""
    made = cluster(*NODES, device_class(), *parts, claim("c"), claim("d"), using("p", "c"), using("q", "d"))
    made.index(AssumedDevices)
    assert place(made, "p", 0) == ["r:a0"] and place(made, "q", 0) == ["r:a1"]
    assert where(*parts, claim("c", asks(1, "x", ('device.driver == "drv"',)), asks(1, "y")), using("p", "c")) == "a"


def test_a_device_in_use_elsewhere_in_the_pool_counts() -> None:
    here, there = pool("a", cut("a0", 30), slices=3), pool("a", cut("a1", 30), slices=3, name="there", nodeName="b")
    things = (*NODES, device_class(), counters("a", 40, slices=3), here, there, claim("c"), using("p", "c"))
    for newer in (False, True):  # whatever node the counters' own slice names
        free, used = cluster(*things), cluster(*things, claim("d", **held("a1")))
        free.newer = used.newer = newer
        assert admitted(free, "default/p", *dynamic_resources(free)) == "a b"
        assert admitted(used, "default/p", *dynamic_resources(used)) == ""


@pytest.mark.parametrize(
    ("pieces", "newer", "where_told"),
    [
        ((pool("a", "a0", "a0"),), False, "a"),
        ((counters("a", 40, "cs", "cs"), pool("a", "a0", slices=2)), False, "abc"),
        ((counters("a", 40), pool("a", cut("a0", 1, "other"), slices=2)), False, "abc"),
        ((counters("a", 40, "cs", "cs"), pool("a", "a0", slices=2)), True, "a"),
    ],
)
def test_a_faulty_pool_gives_nothing_and_that_is_told(pieces: tuple[Thing, ...], newer: bool, where_told: str) -> None:
    """In 1.36 wherever its counters reach, which is everywhere."""
    made = cluster(
        *NODES, device_class(), *pieces, claim("c"), claim("all", asks(allocationMode="All")), using("p", "c"), using("q", "all")
    )
    made.newer = newer
    told = {node: ("invalid resource pools were encountered" if node in where_told else FULL) + "!" for node in "abc"}
    assert refusals(made, "default/p", *dynamic_resources(made)) == told
    wants_all = "claim default/all, request r: asks for all devices, but resource pool drv/a is currently invalid!"
    assert refusals(made, "default/q", *dynamic_resources(made))["a"] == wants_all
    made.put(*claim("c", {"name": "r", "firstAvailable": [{"name": "x", "deviceClassName": "gpu"}]}).build())
    assert scores(made, "default/p", EarlierAlternatives(made)) == [0, 0, 0]


# -- capacities


def shared(name: str, **capacities: Thing) -> Thing:
    return {"name": name, "allowMultipleAllocations": True, "capacity": capacities}


def wanting(**amounts: str) -> Thing:
    return asks(capacity={"requests": amounts})


def shares(made: Cluster, name: str) -> list[dict[str, str]]:
    made.move(made.tasks[f"default/{name}"], status.ALLOCATED, 0)
    allotted = made.index(AssumedDevices).of_pod(made.tasks[f"default/{name}"])
    return [{key: amount.text for key, amount in (pick.amounts or {}).items()} for each in allotted for pick in each.picks]


def test_a_shared_device_serves_as_long_as_it_has_something_left() -> None:
    offered = pool("a", shared("a0", memory={"value": "40Gi"}))
    claims = [claim(f"c{n}", wanting(memory="15Gi")) for n in range(3)]
    made = cluster(*NODES, device_class(), offered, *claims, *(using(f"p{n}", f"c{n}") for n in range(3)))
    made.index(AssumedDevices)
    assert shares(made, "p0") == shares(made, "p1") == [{"memory": "15Gi"}]
    assert admitted(made, "default/p2", *dynamic_resources(made)) == ""
    made.move(made.tasks["default/p0"], status.PENDING, -1)
    assert admitted(made, "default/p2", *dynamic_resources(made)) == "a"
    both = claim("c", wanting(memory="15Gi"), wanting(memory="30Gi") | {"name": "s"})
    assert where(offered, both, using("p", "c")) == ""


@pytest.mark.parametrize(
    ("count", "memories", "got"),
    [
        (2, [40], []),
        (2, [40, 20], ["a0", "a1"]),
        (2, [40, 10, 50], ["a0", "a2"]),
    ],
)
def test_a_request_gets_shares_of_different_devices(count: int, memories: list[int], got: list[str]) -> None:
    offered = pool("a", *(shared(f"a{number}", memory={"value": f"{memory}Gi"}) for number, memory in enumerate(memories)))
    wanted = claim("c", asks(count, capacity={"requests": {"memory": "15Gi"}}))
    made = cluster(*NODES, device_class(), offered, wanted, using("p", "c"))
    made.index(AssumedDevices)
    assert admitted(made, "default/p", *dynamic_resources(made)) == ("a" if got else "")
    assert place(made, "p", 0) == [f"r:{name}" for name in got]


def test_what_objects_say_of_shares_counts() -> None:
    offered = pool("a", shared("a0", memory={"value": "40Gi"}))
    status = held("a0")["status"]
    status["allocation"]["devices"]["results"][0] |= {"shareID": "x", "consumedCapacity": {"memory": "30Gi"}}
    taken = claim("d", status=status)
    assert where(offered, taken, claim("c", wanting(memory="10Gi")), using("p", "c")) == "a"
    assert where(offered, taken, claim("c", wanting(memory="11Gi")), using("p", "c")) == ""
    del status["allocation"]["devices"]["results"][0]["shareID"]
    assert where(offered, taken, claim("c", wanting(memory="10Gi")), using("p", "c")) == ""


RANGE = {"validRange": {"min": "2", "max": "20", "step": "4"}, "default": "3"}


@pytest.mark.parametrize(
    ("policy", "asked", "given"),
    [
        (None, None, "40"),
        ({"default": "8"}, None, "8"),
        (RANGE, "1", "2"),
        (RANGE, "7", "10"),
        (RANGE, "18", "18"),
        (RANGE, "19", None),
        (RANGE, None, "3"),
        ({"validRange": {"min": "500m", "step": "500m"}}, "1200m", "1500m"),
        ({"validRange": {"min": "1", "step": "500m"}}, "1600m", "2"),
        ({"validRange": {"min": "500m", "max": "2", "step": "500m"}}, "1800m", "2"),
        ({"validRange": {"min": "500m", "max": "1900m", "step": "500m"}}, "1800m", None),
        ({"validRange": {"min": "2", "step": "2"}}, "2500m", "4"),
        ({"validRange": {"min": "2"}}, "7", "7"),
        ({"validRange": {"max": "6"}}, "7", None),
        ({"validRange": {"max": "6"}}, "5", "5"),
        ({"validValues": ["5", "10"]}, "6", "10"),
        ({"validValues": ["5", "10"]}, "11", None),
        ({"validValues": ["5", "10"], "default": "7"}, None, "7"),
        (None, "41", None),
    ],
)
def test_a_request_gets_as_much_as_the_policy_gives(policy: Thing | None, asked: str | None, given: str | None) -> None:
    offered = pool("a", shared("a0", slots={"value": "40"} | ({"requestPolicy": policy} if policy else {})))
    made = cluster(*NODES, device_class(), offered, claim("c", wanting(slots=asked) if asked else asks()), using("p", "c"))
    made.device_gates = frozenset({"DRAFractionalCapacityRange"})
    made.index(AssumedDevices)
    assert shares(made, "p") == ([{"slots": given}] if given else [])
    if given in ("1500m", "2") and asked in ("1200m", "1600m", "1800m"):  # the parts of a unit are rounded up first
        made = cluster(*NODES, device_class(), offered, claim("c", wanting(slots=asked)), using("p", "c"))
        made.index(AssumedDevices)
        assert shares(made, "p") == [{"slots": "2"}]


def test_all_devices_are_by_1_37_also_those_of_which_others_use_too_much() -> None:
    offered = pool("a", shared("a0", slots={"value": "10"}), shared("a1", slots={"value": "10"}), shared("a2", slots={"value": "5"}))
    status = held("a0")["status"]
    status["allocation"]["devices"]["results"][0] |= {"shareID": "x", "consumedCapacity": {"slots": "6"}}
    everything = asks(allocationMode="All", capacity={"requests": {"slots": "6"}})
    for newer, given in ((False, [{"slots": "6"}]), (True, [])):
        made = cluster(*NODES, device_class(), offered, claim("d", status=status), claim("c", everything), using("p", "c"))
        made.newer = newer
        made.index(AssumedDevices)
        assert (admitted(made, "default/p", *dynamic_resources(made)) == "a") is bool(given)
        assert shares(made, "p") == given


def test_of_a_device_with_counters_only_the_first_share_consumes() -> None:
    part = shared("a0", memory={"value": "40"}) | {"consumesCounters": cut("x", 30)["consumesCounters"]}
    twice = claim("c", wanting(memory="1"), wanting(memory="1") | {"name": "s"})
    assert where(counters("a", 40), pool("a", part, slices=2), twice, using("p", "c")) == "a"
    futile = asks(1, "t", ("false",))
    none = claim("c", wanting(memory="1"), wanting(memory="1") | {"name": "s"}, futile)
    assert where(counters("a", 40), pool("a", part, cut("a1", 1), slices=2), none, using("p", "c")) == ""


# -- who may watch, who wants all


def test_what_a_request_watches_no_other_of_the_claim_can_have() -> None:
    watching = asks(1, "w", adminAccess=True)
    assert where(pool("a", "a0"), claim("c", watching, asks()), using("p", "c")) == ""
    assert where(pool("a", "a0", "a1"), claim("c", watching, asks()), using("p", "c")) == "a"
    assert where(pool("a", "a0"), claim("c", watching, asks(1, "v", adminAccess=True)), using("p", "c")) == ""


def test_all_devices_of_a_pool_that_changes_or_that_a_constraint_parts_end_the_attempt() -> None:
    everything = asks(allocationMode="All")
    parted = pool("b", device("b0", model="x"), device("b1", model="y"))
    alike = claim("c", everything, constraints=[{"matchAttribute": "drv/model"}])
    made = cluster(*NODES, device_class(), pool("a", "a0", slices=2), parted, alike, using("p", "c"))
    refused = refusals(made, "default/p", *dynamic_resources(made))
    assert refused["a"] == "claim default/c, request r: asks for all devices, but resource pool drv/a is currently being updated!"
    assert refused["b"] == "claim default/c, request r: cannot add device drv/b/b1 because a claim constraint would not be satisfied!"
    assert refused["c"] == FULL + "!"
    kinds = ("drv/model", "drv/none")
    both = claim("c", asks(2), constraints=[{"matchAttribute": kind} for kind in kinds])
    assert where(parted, both, using("p", "c")) == ""
    futile = asks(1, "s", ('device.attributes["drv"].model == "z"',))
    of_one = claim("c", asks(1), futile, constraints=[{"matchAttribute": "drv/model", "requests": ["s"]}])
    assert where(parted, of_one, using("p", "c")) == ""


def test_a_claim_holds_so_many_devices_and_no_more() -> None:
    many = pool("a", *(f"a{n}" for n in range(40)))
    assert where(many, claim("c", asks(32)), using("p", "c")) == "a"
    made = cluster(*NODES, device_class(), many, claim("c", asks(33)), using("p", "c"))
    told = "claim default/c: number of requested devices 33 exceeds the claim limit of 32!"
    assert refusals(made, "default/p", *dynamic_resources(made)) == dict.fromkeys("abc", told)
    made = cluster(*NODES, device_class(), many, claim("c", asks(30), asks(3, "s")), using("p", "c"))
    made.newer = True  # as 1.37 says it
    told = "claim default/c, request s: adding 3 devices exceeds the claim limit of 32, with 30 already accounted for!"
    assert refusals(made, "default/p", *dynamic_resources(made)) == dict.fromkeys("abc", told)
    ways = [{"name": str(n), "deviceClassName": "gpu", "count": n} for n in (32, 2)]
    either = claim("c", asks(4), {"name": "s", "firstAvailable": ways})
    made = cluster(*NODES, device_class(), many, either, using("p", "c"))
    made.index(AssumedDevices)
    assert place(made, "p", 0)[-1].startswith("s/2:")


# -- where devices are reached


def test_each_device_may_say_which_nodes_reach_it() -> None:
    only_c = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["c"]}]}]}
    places: list[Thing] = [{"nodeName": "b"}, {"nodeSelector": only_c}, {"allNodes": True}, {}]
    for told, reached in zip(places, ("b", "c", "a b c", ""), strict=True):
        piece = pool("net", device("n0") | told, perDeviceNodeSelection=True)
        assert where(piece, claim("c"), using("p", "c")) == reached


def test_a_shared_claim_can_be_used_where_its_devices_are_reached() -> None:
    terms = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["a"]}]}
    labelled = {"matchExpressions": [{"key": HOST, "operator": "In", "values": ["b", "a"]}]}
    places: list[tuple[Thing, str]] = [({"allNodes": True}, "a b c"), ({"nodeName": "b"}, "b")]
    places += [({"nodeSelector": {"nodeSelectorTerms": [term]}}, reached) for term, reached in ((terms, "b c"), (labelled, "a b"))]
    for told, reached in places:
        made = cluster(*NODES, device_class(), pool("b", "n0", **told), claim("c"), using("p", "c"), using("q", "c"))
        made.index(AssumedDevices)
        assert place(made, "p", 1) == ["r:n0"]
        assert admitted(made, "default/q", *dynamic_resources(made)) == reached


def test_an_older_generation_goes_once_a_newer_one_is_there_for_others() -> None:
    newer = pool("a", "a0", generation=2, nodeName="b")
    assert where(pool("a", "a0", slices=2), newer, claim("c"), using("p", "c")) == "b"


def test_devices_that_need_preparing_come_last() -> None:
    slow = pool("a", device("a0") | {"bindingConditions": ["Ready"]})
    other = pool("z", "z0", nodeName="a")
    made = cluster(*NODES, device_class(), slow, other, claim("c"), using("p", "c"))
    made.index(AssumedDevices)
    assert place(made, "p", 0) == ["r:z0"]


# -- alternatives


def test_nodes_where_earlier_alternatives_can_be_had_score_higher() -> None:
    big = {"name": "big", "deviceClassName": "gpu", "selectors": [{"cel": {"expression": 'device.attributes["drv"].big'}}]}
    either = {"name": "r", "firstAvailable": [big, {"name": "any", "deviceClassName": "gpu"}]}
    mixed = (pool("a", device("a0", big=False)), pool("b", device("b0", big=True)))
    made = cluster(*NODES, device_class(), *mixed, claim("c", either), claim("d"), using("p", "c"), using("q", "d"), pod("r"))
    assert scores(made, "default/p", EarlierAlternatives(made)) == [87, 100, 0]
    assert scores(made, "default/q", EarlierAlternatives(made)) == scores(made, "default/r", EarlierAlternatives(made)) == []


# -- searches that do not end


def test_a_search_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocation, "STEPS", 50)
    many = pool("a", *(device(f"a{n}", number=n) for n in range(12)))
    hopeless = claim("c", asks(6), asks(1, "s", ("false",)))
    made = cluster(*NODES, device_class(), many, hopeless, using("p", "c"))
    refused = refusals(made, "default/p", *dynamic_resources(made))
    assert refused["a"] == "timed out trying to allocate devices!" and refused["c"] == FULL + "!"
    assert place(made, "p", 0) == []


def test_a_pod_that_wants_hundreds_of_devices_is_not_tried() -> None:
    many = [pool("a", *(f"a{n}" for n in range(300)))]
    claims = [claim(f"c{n}", asks(32)) for n in range(7)]
    made = cluster(*NODES, device_class(), *many, *claims, using("p", *(f"c{n}" for n in range(7))))
    assert refusals(made, "default/p", *dynamic_resources(made))["a"] == "timed out trying to allocate devices!"


def test_a_pod_may_get_as_many_devices_as_are_allowed() -> None:
    names = [f"c{n}" for n in range(6)]
    claims = [claim(name, *(asks(1, f"r{n}") for n in range(allocation.MOST_RESULTS))) for name in names]
    assert where(pool("a", *(f"a{n}" for n in range(allocation.MOST_TOGETHER))), *claims, using("p", *names)) == "a"


def test_devices_that_differ_in_nothing_but_their_names_are_tried_once() -> None:
    many = pool("a", *(f"a{n}" for n in range(30)))
    hopeless = claim("c", asks(10), asks(1, "s", ("false",)))
    made = cluster(*NODES, device_class(), many, hopeless, using("p", "c"))
    assert refusals(made, "default/p", *dynamic_resources(made))["a"] == FULL + "!"


# -- extended resources


def serving(name: str = "gpu", resource: str = "example.com/gpu") -> ObjectBuilder:
    return device_class(name).having("spec", "extendedResourceName", value=resource)


def wants(name: str, *counts: int, resource: str = "example.com/gpu", init: tuple[int, ...] = (), sidecars: int = 0) -> PodBuilder:
    def containers(amounts: tuple[int, ...], kind: str, **more: Any) -> list[Thing]:
        return [{"name": f"{kind}{i}", "resources": {"requests": {resource: str(n)} if n else {}}} | more for i, n in enumerate(amounts)]

    made = pod(name).having("spec", "containers", value=containers(counts, "c"))
    lasting = containers((sidecars,), "s", restartPolicy="Always") if sidecars else []
    return made.having("spec", "initContainers", value=[*containers(init, "i"), *lasting])


def given(made: Cluster, name: str, row: int) -> list[str]:
    made.index(AssumedDevices)
    return place(made, name, row)


@pytest.mark.parametrize("resource", ["example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"])
def test_a_class_serves_an_extended_resource_on_nodes_that_have_none(resource: str) -> None:
    plugin = node("d").cpu(4).having("status", "allocatable", resource, value="1")
    made = cluster(*NODES, plugin, serving(), pool("a", "a0", "a1"), wants("p", 2, resource=resource), wants("q", 1, resource=resource))
    rules = [FitFilter(served=made.index(AssumedDevices).classes), *dynamic_resources(made)]
    assert admitted(made, "default/q", *rules) == "a d"
    assert admitted(made, "default/p", *rules) == "a"
    assert given(made, "q", 3) == []
    assert given(made, "q", 0) == ["container-0-request-0:a0"]
    assert admitted(made, "default/p", *rules) == ""


def test_of_classes_of_one_resource_the_youngest_serves_it_then_the_first_by_name() -> None:
    def class_of(name: str, hour: int) -> ObjectBuilder:
        return serving(name).created(f"2026-01-01T0{hour}:00:00Z")

    served = "example.com/gpu"
    assert classes_by_resource(cluster(class_of("b", 2), class_of("a", 2), class_of("c", 1)))[served] == "a"
    assert classes_by_resource(cluster(class_of("a", 1), class_of("b", 2)))[served] == "b"


def test_containers_that_initialise_use_what_later_ones_have() -> None:
    made = cluster(*NODES, serving(), pool("a", *(f"a{n}" for n in range(9))), wants("p", 1, 0, init=(2, 4, 1), sidecars=1))
    assert [pick.partition(":")[0] for pick in given(made, "p", 0)] == [
        "container-1-request-0",
        "container-1-request-0",
        "container-3-request-0",
        "container-4-request-0",
    ]
    (allotted,) = made.index(AssumedDevices).of_pod(made.tasks["default/p"])
    assert allotted.special is not None
    assert {(m.container, m.request.split("-")[1]) for m in allotted.special.mappings} == {
        *(("s0", "3"), ("c0", "4")),
        *(("i0", "3"), ("i0", "4")),
        *(("i1", "3"), ("i1", "4"), ("i1", "1")),
        ("i2", "3"),
    }


def test_a_claim_that_was_written_for_the_pod_counts_instead_of_what_was_assumed() -> None:
    made = cluster(*NODES, serving(), pool("a", "a0", "a1"), wants("p", 1), wants("q", 1))
    assert given(made, "p", 0) == ["container-0-request-0:a0"]
    owner = {"name": "p", "uid": "default-p", "controller": True}
    notes = {"resource.kubernetes.io/extended-resource-claim": "true"}
    written = claim("p-extended-resources-x", metadata={"annotations": notes, "ownerReferences": [owner]}, **held("a1"))
    made.put(*written.build())
    assert made.index(AssumedDevices).of_pod(made.tasks["default/p"]) == []
    assert given(made, "q", 0) == ["container-0-request-0:a0"]
    made.move(made.tasks["default/p"], status.RUNNING, 0)
    assert made.index(AssumedDevices).of_pod(made.tasks["default/p"]) == []


def test_one_that_an_attempt_left_behind_holds_nothing() -> None:
    made = cluster(*NODES, serving(), pool("a", "a0"), wants("p", 1))
    owner = {"name": "p", "uid": "default-p", "controller": True}
    notes = {"resource.kubernetes.io/extended-resource-claim": "true"}
    made.put(*claim("p-extended-resources-x", metadata={"annotations": notes, "ownerReferences": [owner]}, **held("a0")).build())
    assert admitted(made, "default/p", *dynamic_resources(made)) == "a"


def test_who_ran_before_without_a_claim_has_none() -> None:
    made = cluster(*NODES, serving(), pool("a", "a0"), wants("p", 1).on("a"), wants("q", 1))
    assert made.index(AssumedDevices).of_pod(made.tasks["default/p"]) == []
    assert given(made, "q", 0) == ["container-0-request-0:a0"]
    made.move(made.tasks["default/q"], status.RUNNING, 0)
    assert [len(each.picks) for each in made.index(AssumedDevices).of_pod(made.tasks["default/q"])] == [1]


def test_a_pod_may_have_claims_and_such_resources() -> None:
    both = wants("p", 1).having("spec", "resourceClaims", value=[{"name": "c", "resourceClaimName": "c"}])
    made = cluster(*NODES, serving(), pool("a", "a0", "a1"), pool("b", "b0"), claim("c"), both)
    assert FreeDevices(made).prepare(made.tasks["default/p"]) is not None
    assert admitted(made, "default/p", *dynamic_resources(made)) == "a"
    assert given(made, "p", 0) == ["r:a0", "container-0-request-0:a1"]


# -- alpha gates


def where_with(gate: str, *things: Any) -> str:
    made = cluster(*NODES, device_class(), *things)
    made.device_gates = frozenset([gate])
    return admitted(made, "default/p", *dynamic_resources(made))


def grouped(name: str, *groups: str) -> Thing:
    made = cut(name, 10)
    made["consumesCounters"][0]["compatibilityGroups"] = list(groups)
    return made


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (("x", "y"), ("y", "z"), "a"),
        (("x",), ("y",), ""),
        ((), (), "a"),
        ((), ("x",), ""),
    ],
)
def test_devices_share_counters_only_with_a_group_in_common(first: tuple[str, ...], second: tuple[str, ...], together: str) -> None:
    gate = "DRADeviceCompatibilityGroups"
    parts = (counters("a", 40), pool("a", grouped("a0", *first), grouped("a1", *second), slices=2))
    assert where_with(gate, *parts, claim("c", asks(2)), using("p", "c")) == together
    assert where_with(gate, *parts, claim("d", **held("a0")), claim("c", asks(1)), using("p", "c")) == together
    assert where_with(gate, *parts, claim("c", asks(1)), using("p", "c")) == "a"
    # without the gate a slice with groups is as if it were not there, and its pool is not whole
    assert where(*parts, claim("c", asks(1)), using("p", "c")) == ("" if first or second else "a")


def test_groups_of_one_counter_set_say_nothing_about_another() -> None:
    other = grouped("a1", "y")
    other["consumesCounters"][0]["counterSet"] = "other"
    parts = (counters("a", 40, "cs", "other"), pool("a", grouped("a0", "x"), other, slices=2))
    assert where_with("DRADeviceCompatibilityGroups", *parts, claim("c", asks(2)), using("p", "c")) == "a"


def listing(name: str, **attribute: Any) -> Thing:
    return {"name": name, "attributes": {"link": attribute}}


LISTS = "DRAListTypeAttributes"


@pytest.mark.parametrize(
    ("first", "second", "common"),
    [
        ({"strings": ["x", "y"]}, {"strings": ["y", "z"]}, True),
        ({"strings": ["x"]}, {"strings": ["z"]}, False),
        ({"ints": [1, 2]}, {"int": 2}, True),
        ({"bools": [True]}, {"ints": [1]}, False),
        ({"versions": ["1.0.0", "2.0.0"]}, {"version": "2.0.0"}, True),
    ],
)
def test_attributes_that_are_lists_have_values_in_common_or_not(first: Thing, second: Thing, common: bool) -> None:
    parts = pool("a", listing("a0", **first), listing("a1", **second))
    alike, apart = ([{key: "drv/link"}] for key in ("matchAttribute", "distinctAttribute"))
    assert where_with(LISTS, parts, claim("c", asks(2), constraints=alike), using("p", "c")) == ("a" if common else "")
    assert where_with(LISTS, parts, claim("c", asks(2), constraints=apart), using("p", "c")) == ("" if common else "a")


def test_selectors_read_lists_with_the_gate_alone() -> None:
    parts, wanted = pool("a", listing("a0", strings=["x", "y"])), asks(selectors=('device.attributes["drv"].link.includes("y")',))
    assert where_with(LISTS, parts, claim("c", wanted), using("p", "c")) == "a"
    made = cluster(*NODES, device_class(), parts, claim("c", wanted), using("p", "c"))
    assert "attribute link: unsupported attribute value" in refusals(made, "default/p", *dynamic_resources(made))["a"]


# -- optional node operations

SKIPS = "DRAOptionalNodeOperations"
SPARING = {"skipNodeOperations": ["NodeUnprepareResources"]}
DECLARING = [node(name).having("status", "declaredFeatures", value=[SKIPS] if name == "b" else None) for name in "ab"]
LACKS = f"resource claim default/c allocation requires {SKIPS} feature on the node!"


def sparing(on: str = "", *devices: str) -> ObjectBuilder:
    """Devices for which kubelets leave something out: of one node, or of all."""
    spec = {"nodeName": on} if on else {"allNodes": True}
    return pool(on or "net", *devices, **spec, **SPARING)


def test_devices_that_spare_kubelets_work_are_for_kubelets_that_can_leave_it_out() -> None:
    parts = (sparing("a", "a0"), sparing("b", "b0"), claim("c"), using("p", "c"))

    def found(*gates: str) -> str:
        made = cluster(*DECLARING, device_class(), *parts)
        made.device_gates = frozenset(gates)
        return admitted(made, "default/p", *dynamic_resources(made))

    assert found(SKIPS) == "b"
    assert found(LISTS) == ""  # the newest allocator leaves them alone without the gate, those before it do not know of them
    assert found() == "a b"
    made = cluster(*DECLARING, device_class(), sparing("a", "a0"), claim("c", asks(allocationMode="All")), using("p", "c"))
    made.device_gates = frozenset([SKIPS])
    assert refusals(made, "default/p", *dynamic_resources(made)) == dict.fromkeys("ab", FULL + "!")


def test_an_allocated_device_that_spares_kubelets_work_is_out_of_reach_of_others() -> None:
    told = held("a0")
    told["status"]["allocation"]["devices"]["results"][0] |= SPARING
    made = cluster(*DECLARING, device_class(), claim("c", **told), using("p", "c"))
    assert refusals(made, "default/p", *dynamic_resources(made)) == {"a": "resourceclaim not available on the node!"}


def test_who_shares_such_a_device_before_it_is_written_is_told_what_the_node_lacks() -> None:
    made = cluster(*DECLARING, device_class(), sparing("", "n0"), claim("c"), using("p", "c"), using("q", "c"))
    made.device_gates = frozenset([SKIPS])
    assert place(made, "q", 1) == ["r:n0"]
    assert refusals(made, "default/p", *dynamic_resources(made)) == {"a": LACKS}


# -- derived attributes

DERIVES = "DRADerivedAttributes"


def deriving(expression: str, count: int = 2, **more: Any) -> Thing:
    return asks(count, derivedAttributes=[{"name": "mine/family", "expression": expression}], **more)


def derived(expression: str, *devices: Thing, constraint: str = "matchAttribute", gates: tuple[str, ...] = (DERIVES,)) -> str:
    """The refusal of a node for two of its devices; empty if it has two that a derived attribute does not part."""
    wanted = claim("c", deriving(expression), constraints=[{constraint: "mine/family"}])
    made = cluster(node("a"), device_class(), pool("a", *devices), wanted, using("p", "c"))
    made.device_gates = frozenset(gates)
    return refusals(made, "default/p", *dynamic_resources(made)).get("a", "")


X1, X2, Y1 = device("a0", model="x-1", lanes=1), device("a1", model="x-2", lanes=1), device("a2", model="y-1", lanes=2)
MODEL = 'device.attributes["drv"].model'


@pytest.mark.parametrize(
    ("expression", "devices", "alike"),
    [
        (f'{MODEL}.split("-")[0]', (X1, X2), True),
        (f'{MODEL}.split("-")[0]', (X1, Y1), False),
        ('device.attributes["drv"].lanes', (X1, X2), True),
        (f'{MODEL}.startsWith("x")', (X1, Y1), False),
        (f'semver({MODEL}.split("-")[1] + ".0.0")', (X1, Y1), True),
    ],
)
def test_constraints_may_name_what_a_request_derives_from_devices(expression: str, devices: tuple[Thing, ...], alike: bool) -> None:
    assert derived(expression, *devices) == ("" if alike else FULL + "!")
    assert derived(expression, *devices, constraint="distinctAttribute") == (FULL + "!" if alike else "")


def test_a_derived_attribute_hides_one_of_the_device_for_its_own_request_alone() -> None:
    request = asks(2, derivedAttributes=[{"name": "drv/model", "expression": '"same"'}])
    alike = [{"matchAttribute": "drv/model"}]
    parts = (pool("a", X1, Y1), using("p", "c"))
    assert where_with(DERIVES, *parts, claim("c", request, constraints=alike)) == "a"
    assert where_with(DERIVES, *parts, claim("c", asks(2), constraints=alike)) == ""
    either = {"name": "r", "firstAvailable": [request["exactly"] | {"name": "one"}]}
    assert where_with(DERIVES, *parts, claim("c", either, constraints=alike)) == "a"


@pytest.mark.parametrize(("constraint", "fits"), [("matchAttribute", ""), ("distinctAttribute", FULL + "!")])
def test_derived_lists_are_compared_with_the_gate_of_lists_alone(constraint: str, fits: str) -> None:
    letters = f'{MODEL}.split("-")'
    assert derived(letters, X1, Y1, constraint=constraint, gates=(DERIVES, LISTS)) == fits
    assert derived(letters, X1, Y1, constraint=constraint) == FULL + "!"
    assert derived("[]", X1, Y1, constraint=constraint, gates=(DERIVES, LISTS)) == FULL + "!"


BEGINS = "evaluate derived attribute mine/family on device drv/a/a0 failed: "


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ('device.attributes["drv"].none', BEGINS + "no such key: none"),
        ('[dyn(1), dyn("x")]', BEGINS + "expected list element at index 1 to be int, got string"),
        ("[dyn(1.5)]", BEGINS + "unsupported list element type: float64"),
        ("dyn(1.5)", BEGINS + "unsupported CEL return type: float64"),
        ("1.5", "compile derived attribute mine/family failed: must evaluate to a primitive scalar (string, integer, boolean, semver) or "),
        ("nobody", "compile derived attribute mine/family failed: undeclared reference to 'nobody'"),
    ],
)
def test_a_derived_attribute_without_a_value_ends_the_attempt(expression: str, told: str) -> None:
    assert derived(expression, X1, X2).startswith(told)


def test_a_device_that_cannot_be_read_derives_nothing() -> None:
    bad = {"name": "a0", "attributes": {"v": {"version": "no version"}}}
    assert derived("1", bad, X2).startswith(BEGINS + "attribute v: parse semantic version: ")


def test_without_the_gate_a_request_that_derives_attributes_is_refused() -> None:
    told = "claim default/c, request r: cannot handle request with derived attributes, the feature is disabled!"
    assert derived("1", X1, X2, gates=(LISTS,)) == told
