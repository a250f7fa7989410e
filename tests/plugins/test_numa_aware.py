"""numa-aware: what the kubelet's CPU and topology managers would do, told before the pod is sent there."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import pytest
from scene import Thing, binds, cycle_on, only, opened as open_session

from pumice.api.integers import index_set
from pumice.api.volcano import CpuInfo
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import status
from pumice.scheduler.plugins.volcano.numa_aware.hints import Hint, NumaTopology, assign, best_hint
from pumice.testing import Builder, PodBuilder, cluster, manifest, node, pod, podgroup, refusals, scores
from tests.calls import calls

#: two sockets, each a NUMA node with four cores of two threads: 0 and 8 share a core, 0-3 and 8-11 a socket
MACHINE = NumaTopology({str(cpu): CpuInfo(numa=cpu % 8 // 4, socket=cpu % 8 // 4, core=cpu % 8) for cpu in range(16)})
LEFT, RIGHT, BOTH = 0b01, 0b10, 0b11


def cpus(text: str) -> frozenset[int]:
    return frozenset(index_set(text))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0-3,8", {0, 1, 2, 3, 8}), ("", set()), ("5", {5}), (" 1 , 3-4 ", {1, 3, 4}), ("a,1-,2-b,-3,7", {7}), ("4-2", set())],
)
def test_sets_of_cpus_are_read(text: str, numbers: set[int]) -> None:
    assert index_set(text) == numbers


@pytest.mark.parametrize(
    ("free", "number", "taken"),
    [
        ("0-15", 0, ""),
        ("0-15", 8, "0-3,8-11"),  # a whole socket
        ("1-15", 8, "4-7,12-15"),  # the one that is whole
        ("0-15", 16, "0-15"),
        ("0-15", 10, "0-3,8-11,4,12"),  # a socket and a core
        ("0-15", 2, "0,8"),  # a whole core
        ("0-15", 3, "0,8,1"),  # and a thread near it
        ("0-3,8-11,4,12", 2, "4,12"),  # the socket with fewer free cores
        ("1,0,8,5", 1, "5"),  # the socket with fewer free CPUs
        ("0,8,1,4,12,5", 1, "1"),  # the core with fewer
        ("0,8,1,4,12,5", 3, "0,8,1"),  # near what was taken
        ("0-3", 5, None),
        ("0-3,99", 5, None),
    ],
)
def test_cpus_are_taken_by_sockets_then_cores_then_singly(free: str, number: int, taken: str | None) -> None:
    assert MACHINE.take(cpus(free), number) == (None if taken is None else cpus(taken))


@pytest.mark.parametrize(
    ("free", "request_", "hint"),
    [
        ("0-15", 2, Hint(LEFT, True)),
        ("0-15", 8, Hint(LEFT, True)),
        ("0-15", 9, Hint(BOTH, True)),
        ("0-1,4-7", 3, Hint(RIGHT, True)),
        ("0-1,4-5", 3, Hint(BOTH, False)),  # one node would do on an empty machine
        ("0-1", 3, Hint(BOTH, False)),
        ("0-15", 17, Hint(BOTH, False)),
        ("0-15", 0, Hint(BOTH, True)),
    ],
)
def test_the_hint_names_the_numa_nodes_that_have_the_cpus(free: str, request_: int, hint: Hint) -> None:
    assert best_hint(MACHINE, cpus(free), request_) == hint


#: eight NUMA nodes of two CPUs
WIDE = NumaTopology({str(cpu): CpuInfo(numa=cpu // 2, socket=cpu // 8, core=cpu) for cpu in range(16)})


@pytest.mark.parametrize(
    ("free", "request_", "hint"),
    [
        ("0-15", 5, Hint(0b111, True)),
        ("1,2,4-6,8-15", 5, Hint(0b10101, True)),
        ("0,2,4,6,8,10,12,14", 3, Hint(0b111, False)),
        ("0,2,4,6,8,10,12-15", 4, Hint(0b11000000, True)),
        ("0,2,4,6,8,10,12-15", 5, Hint(0b11000001, True)),
    ],
)
def test_of_equally_many_numa_nodes_the_lowest_are_named(free: str, request_: int, hint: Hint) -> None:
    every = [sum(1 << node for node in chosen) for size in range(1, 9) for chosen in combinations(range(8), size)]
    enough = [mask for mask in every if len(WIDE.within(cpus(free), mask)) >= request_]
    assert min(enough, key=lambda mask: (mask.bit_count(), mask)) == hint.mask
    assert best_hint(WIDE, cpus(free), request_) == hint


def test_a_machine_of_many_numa_nodes_costs_no_more_than_their_square() -> None:
    def work(nodes: int) -> int:
        machine = NumaTopology({str(cpu): CpuInfo(numa=cpu, socket=0, core=cpu) for cpu in range(nodes)})
        return calls(lambda: best_hint(machine, machine.cpus, nodes // 2))

    assert work(16) < 6 * work(8)


def test_a_machine_without_cpus_admits_nobody_who_wants_a_policy() -> None:
    assert assign(NumaTopology({}), cpus(""), (0,), "restricted") is None


@pytest.mark.parametrize(
    ("policy", "free", "requests", "given"),
    [
        ("single-numa-node", "0-15", (4,), "0,8,1,9"),
        ("single-numa-node", "0,1,4-7", (3,), "4-6"),
        ("single-numa-node", "0,1,4,5", (3,), None),
        ("single-numa-node", "0-15", (9,), None),
        ("restricted", "0,1,4,5", (3,), None),
        ("restricted", "0-15", (10,), "0-3,8-11,4,12"),
        ("best-effort", "0,1,4,5", (3,), "0,1,4"),
        ("best-effort", "0,1", (3,), ""),
        ("single-numa-node", "0,1,4,5,6", (2, 3), "0,1,4-6"),
        ("single-numa-node", "0,1,4,5", (2, 2, 1), None),
        ("single-numa-node", "0,1", (0,), ""),
    ],
)
def test_containers_get_cpus_one_after_the_other(policy: str, free: str, requests: tuple[int, ...], given: str | None) -> None:
    assert assign(MACHINE, cpus(free), requests, policy) == (None if given is None else cpus(given))


# -- the plugin

SINGLE = "single-numa-node"


def numa(
    name: str, free: str | None = "0-7", policy: str = SINGLE, manager: str = "static", reserved: str = "0", pods: list[Thing] | None = None
) -> Builder:
    """A node's two NUMA nodes of four CPUs each: 0-3 and 4-7."""
    spec: dict[str, Any] = {
        "policies": {"CPUManagerPolicy": manager, "TopologyManagerPolicy": policy},
        "resReserved": {"cpu": reserved},
        "cpuDetail": {str(cpu): {"numa": cpu // 4, "socket": cpu // 4, "core": cpu} for cpu in range(8)},
    }
    spec |= {"numares": {"cpu": {"allocatable": free, "capacity": 8}}} if free is not None else {}
    spec |= {"podAllocations": pods} if pods is not None else {}
    return manifest("Numatopology", name, spec=spec)


def shown(uid: str, allocated: str) -> Thing:
    return {"name": "x", "namespace": "default", "uid": uid, "containerAllocations": [{"name": "m", "allocations": {"cpu": allocated}}]}


def own(name: str, cpu: str = "3", policy: str = SINGLE, on: str = "") -> PodBuilder:
    """A Guaranteed pod."""
    made = pod(name).gang("g").on(on).limits(cpu=cpu, memory="1Gi")
    return made.annotation("volcano.sh/numa-topology-policy", policy) if policy else made


def opened(*things: Builder, weight: int = 1) -> Session:
    return open_session(cluster(node("n").cpu(8), podgroup("g").admitted(), *things), only("numa-aware", {"weight": weight}))


NO_POLICY = "node(s) have not the NUMA topology policy that the pod asks for"
NO_CPUS = "node(s) have not the CPUs that the NUMA topology policy demands"


@pytest.mark.parametrize(
    ("topology", "policy", "reason"),
    [
        (None, SINGLE, NO_POLICY),
        (numa("n"), SINGLE, None),
        (numa("n"), "restricted", NO_POLICY),
        (numa("n", policy="restricted"), "restricted", None),
        (numa("n", manager="none"), SINGLE, NO_POLICY),
        (numa("n", free=None), SINGLE, NO_POLICY),
        (numa("n", free=""), SINGLE, NO_POLICY),
        (numa("n", free="0,1,4,5"), SINGLE, NO_CPUS),
        (numa("n", free="0,1,4,5", policy="best-effort"), "best-effort", None),
        (numa("n", free="0-3", reserved="1"), SINGLE, None),  # 0 is reserved; 1 to 3 are left
        (numa("n", free="0-3", reserved="1500m"), SINGLE, NO_CPUS),
        (numa("n", free="0-3", reserved="some"), SINGLE, None),
        # without a wish of its own a pod meets whatever policy the node has
        (None, "", None),
        (None, "none", None),
        (numa("n", free="0,1,4,5"), "", NO_CPUS),
        (numa("n", free=None), "none", NO_CPUS),
        (numa("n", free="0,1", manager="none"), "", None),
        (numa("n", free="0,1", policy="none"), "", None),
    ],
)
def test_a_node_takes_a_pod_if_its_kubelet_will(topology: Builder | None, policy: str, reason: str | None) -> None:
    session = opened(*([topology] if topology else []), own("p", policy=policy))
    assert refusals(session, "p").get("n") == reason


def test_pods_without_cpus_of_their_own_are_not_looked_at() -> None:
    session = opened(
        numa("n", free="0,1"), pod("p").gang("g").cpu(3).annotation("volcano.sh/numa-topology-policy", SINGLE), own("half", "2500m")
    )
    assert refusals(session, "p") == {}
    assert refusals(session, "half") == {}
    assert session.plugin("numa-aware").scorers()
    assert refusals(opened(numa("n", free=""), own("half", "2500m", policy="")), "half") == {}
    assert refusals(opened(numa("n", free=""), own("whole", "1", policy="")), "whole") == {"n": NO_CPUS}


def test_few_numa_nodes_are_preferred_by_pods_that_ask_for_a_policy() -> None:
    things = [
        node("m").cpu(8),
        numa("n", "0,1,4,5", "best-effort"),
        numa("m", "4-7", "best-effort"),
        own("p", policy="best-effort"),
        own("q", policy=""),
    ]
    session = opened(*things, weight=10)
    assert scores(session, "p") == {"n": 0, "m": 500}
    assert scores(session, "q") == {"n": 0, "m": 0}
    assert opened(weight=0).plugin("numa-aware").scorers() == []


def test_placing_takes_cpus_and_undoing_gives_them_back() -> None:
    session = opened(numa("n"), own("a"), own("b", "4"), own("c", "4"))
    first, second = (session.cluster.tasks[f"default/{name}"] for name in "ab")
    with session.statement() as statement:
        statement.allocate(first, 0)
        assert refusals(session, "b") == {}
        statement.pipeline(second, 0)
        assert refusals(session, "c") == {"n": NO_CPUS}
        decision = json.loads(session.annotations[second.uid]["volcano.sh/topology-decision"])
        assert decision == {"numa": {"1": {"cpu": "4"}}}
    assert refusals(session, "c") == {}
    assert not any(session.annotations.values())


def test_a_pod_with_a_policy_goes_to_no_node_whose_cpus_are_all_taken_though_it_needs_none_of_its_own() -> None:
    session = opened(numa("n", free="0,1"), own("all", "2"), own("half", "500m"), own("any", "500m", policy=""))
    assert refusals(session, "half") == {}
    with session.statement() as statement:
        statement.allocate(session.cluster.tasks["default/all"], 0)
        assert (refusals(session, "half"), refusals(session, "any")) == ({"n": NO_CPUS}, {})


def test_the_cpus_of_an_evicted_pod_can_be_promised() -> None:
    held = numa("n", "6,7", pods=[shown("default-old", "0-3"), shown("gone", "4,5")])
    session = opened(held, own("old", "4", on="n"), own("p", "4"), own("small", "2"))
    old, small = (session.cluster.tasks[f"default/{name}"] for name in ("old", "small"))
    assert refusals(session, "p") == {"n": NO_CPUS}
    with session.statement() as statement:
        statement.evict(old, "preempt")
        assert refusals(session, "p") == {}
        statement.allocate(small, 0)  # gets what is free now
        assert session.plugin("numa-aware")._given == {small.uid: cpus("6,7")}
    assert refusals(session, "p") == {"n": NO_CPUS}


def test_a_pod_that_the_plugin_cannot_serve_is_placed_without_a_decision() -> None:
    session = opened(node("bare").cpu(8), numa("n", free="0,1"), own("p"), pod("plain").gang("g").cpu(1))
    for name, row in (("p", 0), ("p", 1), ("plain", 0)):
        with session.statement() as statement:
            statement.allocate(session.cluster.tasks[f"default/{name}"], row)
            assert session.annotations == {}


@pytest.mark.parametrize("topology", [numa("n", policy="none"), numa("n", manager="none")])
def test_where_the_kubelet_does_not_look_at_numa_nodes_nothing_is_decided(topology: Builder) -> None:
    session = opened(topology, own("p", policy=""))
    with session.statement() as statement:
        statement.allocate(session.cluster.tasks["default/p"], 0)
        assert session.annotations == {}


def remembered(*later: Builder, running: bool = False) -> set[str]:
    """Pods whose CPUs are still kept for them, one cycle after a was placed on 0-2 and the later objects came."""
    made = cluster(node("n").has(cpu=8, memory="16Gi"), podgroup("g").admitted(), numa("n"), own("a"))
    conf = only("numa-aware")
    assert binds(cycle_on(made, conf)) == {"a": "n"}
    task = made.tasks["default/a"]
    if running:
        made.move(task, status.RUNNING, task.node)
    for thing in later:
        made.put(*thing.build())
    cycle_on(made, conf)
    return set(made.memory["numa-aware"]["decided"])


@pytest.mark.parametrize(
    ("later", "running", "kept"),
    [
        ([], False, True),
        ([], True, True),
        ([numa("n", "3-7")], False, True),  # too early to show it
        ([numa("n", "3-7")], True, False),
        ([numa("n", "3-7", pods=[])], True, True),
        ([numa("n", "3-7", pods=[shown("default-a", "0-2")])], True, False),
        ([own("a").phase("Failed")], False, False),
    ],
)
def test_cpus_are_kept_until_the_node_s_object_shows_them(later: list[Builder], running: bool, kept: bool) -> None:
    assert remembered(*later, running=running) == ({"default-a"} if kept else set())


def test_two_cycles_do_not_give_the_same_cpus_twice() -> None:
    made = cluster(node("n").has(cpu=8, memory="16Gi"), podgroup("g").admitted(), numa("n"), own("a", "4"), own("b", "4"))
    assert binds(cycle_on(made, only("numa-aware"))) == {"a": "n", "b": "n"}
    made.put(*own("c", "1").build())
    assert binds(cycle_on(made, only("numa-aware"))) == {}


def test_what_is_known_of_a_machine_goes_with_its_object() -> None:
    made = cluster(node("n").has(cpu=8, memory="16Gi"), podgroup("g").admitted(), numa("n"), numa("m"), own("a", "4"))
    cycle_on(made, only("numa-aware"))
    assert made.memory["numa-aware"]["machines"].keys() == {"n"}
    made.remove("Numatopology", "n")
    made.remove("Numatopology", "m")
    cycle_on(made, only("numa-aware"))
    assert made.memory["numa-aware"]["machines"] == {}
    assert made.memory["numa-aware"]["decided"] == {}
