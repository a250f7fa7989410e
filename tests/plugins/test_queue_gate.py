"""The gate of a queue: pods held back by it alone are let through while their queue has room, which is then kept for them."""

from __future__ import annotations

from typing import Any

import pytest
from scene import Thing, binds, conf, cycle_on

from pumice.testing import PodBuilder, cluster, hypernode, node, pod, podgroup, queue

GATE = "scheduling.volcano.sh/queue-allocation-gate"
TIERS = ("gang", "capacity, predicates")
NODE = node("n").cpu(99)
OPTED = {GATE: "true"}


def gated(name: str, of: str, *gates: str, notes: Thing = OPTED, **amounts: Any) -> PodBuilder:
    return (
        pod(name)
        .gang(of)
        .asks(**{"cpu": 1} | amounts)
        .having("spec", "schedulingGates", value=[{"name": gate} for gate in gates])
        .annotations(notes)
    )


def decided(*things: Any, tiers: tuple[str, ...] = TIERS) -> tuple[list[str], list[str]]:
    """Who passes the gate, and who is bound."""
    decisions = cycle_on(cluster(NODE, *things), conf(*tiers))
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
def test_who_passes(what: str, held_back: PodBuilder, passes: list[str]) -> None:
    assert decided(queue("q"), podgroup("a").queue("q").admitted(), held_back) == (passes, [])


def test_only_as_many_pass_as_the_queue_has_room_for() -> None:
    things = [
        queue("q").capability(cpu=3),
        podgroup("r").queue("q").admitted(),
        pod("r").gang("r").on("n").cpu(1),
        podgroup("a").queue("q").admitted(),
    ]
    assert decided(things, [gated(f"p{number}", "a", GATE) for number in range(5)]) == (["p0", "p1"], [])


def test_the_room_of_those_who_passed_is_kept_for_them() -> None:
    passed = [podgroup("a").queue("q").admitted().created(9), pod("p").gang("a").cpu(2).selector("no", "where").annotations(OPTED)]
    others = [*podgroup("b").queue("q").admitted().pods(4, cpu=1)]
    assert decided(queue("q").capability(cpu=4), passed, others)[1] == ["b-0", "b-1"]


def test_who_passed_is_placed_in_the_room_that_was_kept() -> None:
    passed = [podgroup("a").queue("q").admitted().created(9), pod("p").gang("a").cpu(2).annotations(OPTED)]
    others = [*podgroup("b").queue("q").admitted().pods(4, cpu=1)]
    assert decided(queue("q").capability(cpu=4), passed, others)[1] == ["b-0", "b-1", "p"]


def test_a_gang_that_gives_its_places_back_keeps_its_room_reserved() -> None:
    lost = pod("p-1").gang("a").cpu(1).selector("no", "where").annotations(OPTED)
    passed = [podgroup("a", 2).queue("q").admitted(), pod("p-0").gang("a").cpu(1).annotations(OPTED), lost]
    others = [*podgroup("b").queue("q").admitted().created(9).pods(4, cpu=1)]
    assert decided(queue("q").capability(cpu=4), passed, others)[1] == ["b-0", "b-1"]


def test_without_capacity_the_gate_opens_all_the_same() -> None:
    assert decided(queue("q"), podgroup("a").queue("q").admitted(), gated("p", "a", GATE), tiers=("gang", "predicates")) == (["p"], [])


def test_a_part_of_a_job_passes_once_however_many_domains_were_tried() -> None:
    hyper = [hypernode(f"h{number}").holds("n") for number in range(2)]
    things = [queue("q"), podgroup("a").queue("q").topology(1).admitted(), gated("p", "a", GATE)]
    assert decided(things, hyper, tiers=("gang", "capacity, predicates, network-topology-aware"))[0] == ["p"]
