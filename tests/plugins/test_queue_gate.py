"""The gate of a queue: pods held back by it alone are let through while their queue has room, which is then kept for them."""

from __future__ import annotations

from typing import Any

import pytest
from queued import cluster, conf, job, node, pod, pods, queue
from scene import Thing, binds, cycle_on

GATE = "scheduling.volcano.sh/queue-allocation-gate"
TIERS = ("gang", "capacity, predicates")
NODE = node("n", cpu=99)
OPTED = {GATE: "true"}


def gated(name: str, of: str, *gates: str, notes: Thing = OPTED, **amounts: Any) -> Thing:
    return pod(name, of, notes=notes, spec={"schedulingGates": [{"name": gate} for gate in gates]}, **({"cpu": 1} | amounts))


def decided(*things: Any, tiers: tuple[str, ...] = TIERS) -> tuple[list[str], list[str]]:
    """Who passes the gate, and who is bound."""
    decisions = cycle_on(cluster(NODE, *things), conf(tiers))
    return sorted(task.name for task in decisions.ungated.values()), sorted(binds(decisions))


@pytest.mark.parametrize(
    ("what", "held_back", "passes"),
    [
        ("its own gate alone", gated("p", "a", GATE), ["p"]),
        ("another gate, too", gated("p", "a", GATE, "example.com/other"), []),
        ("another gate", gated("p", "a", "example.com/other"), []),
        ("without having asked for it", gated("p", "a", GATE, notes={}), []),
        ("asking for nothing but a place", gated("p", "a", GATE, cpu=0), []),
    ],
)
def test_who_passes(what: str, held_back: Thing, passes: list[str]) -> None:
    assert decided(queue("q"), job("a", "q"), held_back) == (passes, [])


def test_only_as_many_pass_as_the_queue_has_room_for() -> None:
    things = [queue("q", capability={"cpu": 3}), job("r", "q"), pod("r", "r", "n", cpu=1), job("a", "q")]
    assert decided(things, [gated(f"p{number}", "a", GATE) for number in range(5)]) == (["p0", "p1"], [])


def test_the_room_of_those_who_passed_is_kept_for_them() -> None:
    passed = [job("a", "q", 9), pod("p", "a", cpu=2, notes=OPTED, spec={"nodeSelector": {"no": "where"}})]
    others = [job("b", "q"), *pods("b", 4, cpu=1)]
    assert decided(queue("q", capability={"cpu": 4}), passed, others)[1] == ["b-w-0", "b-w-1"]


def test_who_passed_is_placed_in_the_room_that_was_kept() -> None:
    passed = [job("a", "q", 9), pod("p", "a", cpu=2, notes=OPTED)]
    others = [job("b", "q"), *pods("b", 4, cpu=1)]
    assert decided(queue("q", capability={"cpu": 4}), passed, others)[1] == ["b-w-0", "b-w-1", "p"]


def test_a_gang_that_gives_its_places_back_keeps_its_room_reserved() -> None:
    lost = pod("p-1", "a", cpu=1, notes=OPTED, spec={"nodeSelector": {"no": "where"}})
    passed = [job("a", "q", least=2), pod("p-0", "a", cpu=1, notes=OPTED), lost]
    others = [job("b", "q", 9), *pods("b", 4, cpu=1)]
    assert decided(queue("q", capability={"cpu": 4}), passed, others)[1] == ["b-w-0", "b-w-1"]


def test_without_capacity_the_gate_opens_all_the_same() -> None:
    assert decided(queue("q"), job("a", "q"), gated("p", "a", GATE), tiers=("gang", "predicates")) == (["p"], [])


def test_a_part_of_a_job_passes_once_however_many_domains_were_tried() -> None:
    hyper = [
        {
            "apiVersion": "topology.volcano.sh/v1alpha1",
            "kind": "HyperNode",
            "metadata": {"name": f"h{number}"},
            "spec": {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "n"}}}]},
        }
        for number in range(2)
    ]
    things = [queue("q"), job("a", "q", networkTopology={"mode": "hard", "highestTierAllowed": 1}), gated("p", "a", GATE)]
    assert decided(things, hyper, tiers=("gang", "capacity, predicates, network-topology-aware"))[0] == ["p"]
