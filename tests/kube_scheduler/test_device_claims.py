"""Pods with device claims in kube-scheduler's loop: who is tried, and when an attempt ends with an error."""

from __future__ import annotations

from pumice.testing.builders import PodBuilder
from tests.kube_scheduler.stage import Outcome, existing, machine, play, waiting
from tests.nodes_for_pods.test_devices import asks, claim, device, device_class, held, pool

BIG = 'device.attributes["drv"].big'


def using(made: PodBuilder, *claims: str) -> PodBuilder:
    return made.having("spec", "resourceClaims", value=[{"name": each, "resourceClaimName": each} for each in claims])


def told(outcome: Outcome, name: str) -> str:
    return outcome.waiting[name]


def test_a_pod_without_its_claim_is_not_tried() -> None:
    """So nobody is evicted for it, and where it was nominated it holds no room, though it stays nominated."""
    nominated = using(waiting("p", 2, priority=9), "c").having("status", "nominatedNodeName", value="a")
    outcome = play(machine("a", 2), existing("low", "a", 1), nominated, waiting("q", 1), device_class())
    assert outcome.binds == {"q": "a"} and not outcome.evictions and outcome.nominations == {"p": "a"}
    assert told(outcome, "p") == 'resourceclaim "c" not found'


def test_a_device_that_cannot_be_judged_ends_the_attempt_unless_its_node_is_out_for_another_reason() -> None:
    objects = (device_class(), pool("a", "a0"), pool("b", device("b0", big=True)), claim("c", asks(selectors=(BIG,))))
    asker = using(waiting("p"), "c")
    outcome = play(machine("a"), machine("b"), asker, *objects)
    assert outcome.binds == {} and told(outcome, "p").startswith('running "DynamicResources" filter plugin: claim default/c: selector #0: ')
    assert play(machine("a"), machine("b", on="b"), asker.selector("on", "b"), *objects).binds == {"p": "b"}
    assert play(machine("a", "500m"), machine("b"), asker, *objects).binds == {"p": "b"}
    nominated = asker.having("status", "nominatedNodeName", value="b")
    assert play(machine("a"), machine("b"), nominated, *objects).binds == {"p": "b"}


def test_devices_that_a_pod_got_in_this_cycle_stay_its_own_in_a_dry_run() -> None:
    """second finds the port taken on a, and the devices too once low is thought away."""
    port = [{"containerPort": 80, "hostPort": 80}]
    low = using(waiting("low", priority=-5), "c").having("spec", "containers", 0, "ports", value=port)
    first = using(waiting("first", priority=2), "d")
    second = using(waiting("second", priority=1), "e").having("spec", "containers", 0, "ports", value=port)
    objects = (device_class(), pool("a", "a0", "a1"), claim("c", **held("a0")), claim("d"), claim("e"))
    outcome = play(machine("a", 4), low.on("a"), first, second, *objects)
    assert outcome.binds == {"first": "a"} and not outcome.evictions


def test_a_device_that_cannot_be_judged_in_a_dry_run_ends_preemption() -> None:
    """The nodes' errors are told once each, and no node's reason beside them."""
    selector, low = asks(selectors=(BIG,)), existing("low", "a", 2, priority=-1)
    objects = (machine("a", 2), device_class(), pool("a", "a0"), claim("c", selector), using(waiting("p"), "c"))
    outcome = play(*objects, low)
    why = 'running "DynamicResources" filter plugin: claim default/c: selector #0: CEL runtime error: no such key: big'
    assert told(outcome, "p") == f"0/1 nodes are available: 1 Insufficient cpu. preemption: {why}"
