"""Kubernetes' own PodGroups by the rules of kube-scheduler 1.37, where no recorded case shows the rule."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.api.errors import InputError
from pumice.cli.inputs import release_of
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions, GroupTry, PreemptionTry
from pumice.scheduler.framework.feature_gates import DEFAULT, GATES, NOT_PROVIDED, minor_of, read_gates, read_release, release
from pumice.scheduler.framework.pods_to_try import EVERYBODY, GroupOutcome, Only
from pumice.scheduler.kube.group_queue import GroupQueue
from pumice.scheduler.kube.pod_groups import GroupEntity, Groups, NativeGroup
from pumice.scheduler.kube.scheduling_queue import SchedulingQueue
from pumice.scheduler.model import status
from pumice.testing.builders import manifest
from tests.kube_scheduler.native import CLAIMS, TOPOLOGY, TREES, group, member, play, policy, run, running, tree
from tests.kube_scheduler.stage import NOW, cluster, existing, machine, profile, waiting

TWO = machine("n1", cpu=2)
RACKS = (machine("a1", cpu=2, rack="a"), machine("b1", cpu=3, rack="b"))


# ---- gates


def test_a_release_has_its_gates() -> None:
    assert not DEFAULT.places_groups and DEFAULT.minor == 36
    assert release(37, {"GenericWorkload": True}).places_groups
    assert release(37).has("StorageCapacityScoring") and not release(36).has("StorageCapacityScoring")
    for name, (_, state) in GATES.items():
        assert release(37).has(name) == (state in ("on", "locked"))
    assert release(37, dict.fromkeys(NOT_PROVIDED, False)) == release(37)  # off, as they are


@pytest.mark.parametrize(
    ("minor", "gates", "told"),
    [
        (37, {"GangScheduling": True}, "unrecognized feature gate: GangScheduling"),
        (36, {"CompositePodGroup": False}, "unrecognized feature gate: CompositePodGroup"),
        (37, {"GenericWorkloads": True}, 'unrecognized feature gate: GenericWorkloads; did you mean "GenericWorkload"?'),
        (37, {"DRAExtendedResource": False}, "cannot set feature gate DRAExtendedResource to false, feature is locked to true"),
        (36, {"GenericWorkload": True}, "feature gate GenericWorkload is alpha in Kubernetes 1.36, and Pumice does not provide it there"),
        (36, {"DRANodeAllocatableResources": True}, "feature gate DRANodeAllocatableResources is alpha in Kubernetes 1.36, and Pumice"),
        (
            37,
            {"CompositePodGroup": True, "GenericWorkload": True},
            "CompositePodGroup is enabled, but depends on features that are disabled: [TopologyAwareWorkloadScheduling]",
        ),
        (
            37,
            {"TopologyAwareWorkloadScheduling": True},
            "TopologyAwareWorkloadScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
    ],
)
def test_gates_are_refused_as_upstream_refuses_them(minor: int, gates: dict[str, bool], told: str) -> None:
    with pytest.raises(ValueError) as caught:
        release(minor, gates)
    assert told in str(caught.value)


def test_the_options_are_read() -> None:
    assert release_of(None, "") == DEFAULT
    found = release_of("v1.37.2", "GenericWorkload=true, PodGroupPreemptionPolicy=T")
    assert found.minor == 37 and found.has("PodGroupPreemptionPolicy")
    assert read_release(found.text) == found and found.text == "1.37 GenericWorkload=true,PodGroupPreemptionPolicy=true"
    assert read_release("1.36") == DEFAULT
    assert [minor_of(text) for text in ("1.30", "1.36", "v1.37.0-rc.1", "1.37+", "1.40")] == [36, 36, 37, 37, 37]
    for text, told in (("two", "is no version"), ("1.x", "is no version"), ("2.1", "is no version")):
        with pytest.raises(InputError, match=told):
            release_of(text, "")
    for text, told in (("A", "missing bool value for A"), ("A=2", "invalid value of A=2"), ("A=true", "unrecognized feature gate: A")):
        with pytest.raises(InputError, match=told):
            release_of("1.37", text)
    assert read_gates("") == {}


# ---- one group


def test_what_became_of_each_try_is_told() -> None:
    """A gang that fits, and one that does not; one whose members do not agree; one for which room is made."""

    def decided(*objects: Any) -> Decisions:
        return cycle(cluster(policy(), machine("n1", cpu=2), *objects), policy(), NOW)

    def tries(*objects: Any) -> list[GroupTry]:
        return decided(*objects).group_tries

    assert tries(group("g", 2), member("p1", "g"), member("p2", "g")) == [GroupTry("default-scheduler", "scheduled")]
    assert tries(group("g", 2), member("p1", "g", 2), member("p2", "g", 2)) == [GroupTry("default-scheduler", "unschedulable")]
    assert tries(group("g"), member("p1", "g", priority=5)) == [GroupTry("default-scheduler", "error")]
    low = [existing(name, "n1") for name in ("v1", "v2")]
    preempting = decided(*low, group("g", 1, priority=9), member("p1", "g", 2, priority=9))
    assert preempting.group_tries == [GroupTry("default-scheduler", "waiting_on_preemption")]
    assert preempting.preemption_tries == [PreemptionTry("podgroup", "Success", 2)]
    whole = [group("w", 2, whole=True), *(running(name, "w", "n1") for name in ("v1", "v2"))]
    by_pod = decided(*whole, waiting("p", 2, priority=9)).preemption_tries
    assert by_pod == [PreemptionTry("pod", "Success", 2, disruptions=1)]
    assert decided(*low, waiting("p", 2, priority=9)).preemption_tries == [PreemptionTry("pod", "Success", 2)]
    assert decided(waiting("p", 3)).preemption_tries == [PreemptionTry("pod", "Unschedulable")]


def test_a_fault_of_preemption_is_the_result_of_the_try() -> None:
    """No member was tried, so that the plugin for devices finds no state."""
    made = cluster(policy(), machine("n1", cpu=2), group("g", 2), member("p1", "g").leaving(), member("p2", "g"))
    assert cycle(made, policy(), NOW).group_tries == [GroupTry("default-scheduler", "error")]


def test_members_of_two_schedulers_are_refused() -> None:
    outcome = play(TWO, group("g"), member("p1", "g"), running("p0", "g", "n1").having("spec", "schedulerName", value="other"))
    text = 'all pods in a single pod group should have the same .spec.schedulerName set, got: "other" and "default-scheduler"'
    assert outcome.groups == {"g": ("SchedulerError", text)} and outcome.told == {"p1": f"SchedulerError: {text}"}


@pytest.mark.parametrize(
    ("gates", "own", "text"),
    [
        ({}, None, "the same preemption policy, got Never and PreemptLowerPriority"),
        ({"PodGroupPreemptionPolicy": True}, None, "as the pod group's preemption policy, got Never and PreemptLowerPriority"),
        ({"PodGroupPreemptionPolicy": True}, "Never", "as the pod group's preemption policy, got PreemptLowerPriority and Never"),
    ],
)
def test_members_agree_in_their_preemption_policy(gates: dict[str, bool], own: str | None, text: str) -> None:
    made = group("g", 2).having("spec", "preemptionPolicy", value=own) if own else group("g", 2)
    never = member("p2", "g").having("spec", "preemptionPolicy", value="Never")
    outcome = play(TWO, made, member("p1", "g"), never, gates=gates)
    assert outcome.groups["g"][0] == "SchedulerError" and outcome.groups["g"][1].endswith(text)


def test_the_policy_of_the_group_forbids_to_preempt() -> None:
    never = group("g", 1, priority=9).having("spec", "preemptionPolicy", value="Never")
    pod = member("p", "g", cpu=2, priority=9).having("spec", "preemptionPolicy", value="Never")
    outcome = play(TWO, existing("low", "n1"), never, pod, gates={"PodGroupPreemptionPolicy": True})
    assert outcome.groups["g"][1].endswith("pod group preemption: not eligible due to preemptionPolicy=Never.") and not outcome.evictions


def test_without_the_plugin_no_minimum_is_checked() -> None:
    conf = profile("{plugins: {multiPoint: {disabled: [{name: GangScheduling}]}}}")
    outcome = play(TWO, group("g", 9), member("p1", "g"), member("p2", "g"), member("p3", "g"), conf=conf)
    assert outcome.binds == {"p1": "n1", "p2": "n1"} and outcome.groups == {"g": ("Scheduled", "")}


def test_without_post_filters_an_empty_reason_is_added_to_the_text() -> None:
    conf = profile("{plugins: {podGroupPostFilter: {disabled: [{name: '*'}]}}}")
    outcome = play(TWO, group("g", 3), *(member(f"p{n}", "g") for n in range(3)), conf=conf)
    assert outcome.groups == {"g": ("Unschedulable", "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining, ")}


def test_a_cluster_without_nodes_takes_the_nomination_back() -> None:
    pod = member("p", "g").having("status", "nominatedNodeName", value="gone")
    alone = profile("{plugins: {podGroupPostFilter: {disabled: [{name: DynamicResources}]}}}")
    outcome = play(group("g"), pod, conf=alone)
    assert outcome.told == {"p": "Unschedulable: no nodes available to schedule pods"} and outcome.nominations == {"p": ""}
    assert play(group("g"), pod).told == {"p": 'SchedulerError: error in "DynamicResources" PodGroupPostFilter plugins: not found'}


def test_the_first_error_of_a_member_ends_the_attempt() -> None:
    slices = [claim("c", selector="device.attributes['x'].nothing")]
    pod = member("p1", "g").having("spec", "resourceClaims", value=[{"name": "c", "resourceClaimName": "c"}])
    outcome = play(TWO, *gpus("n1"), *slices, group("g", 2), pod, member("p2", "g"))
    assert outcome.groups["g"][0] == "SchedulerError"
    assert outcome.groups["g"][1].startswith("failed to schedule other pod from a pod group: ")
    assert outcome.told["p2"].startswith("SchedulerError: failed to schedule other pod") and not outcome.told["p1"].startswith(
        outcome.told["p2"]
    )


def test_a_group_that_waits_for_its_victims_evicts_nobody_else() -> None:
    chosen = policy()
    made = cluster(chosen, TWO, existing("low", "n1", cpu=2), group("g", 1, priority=9), member("p", "g", cpu=2, priority=9))
    first = run(made, chosen)
    assert first.evictions == ["low"] and first.nominations == {"p": "n1"}
    chosen = policy()
    made = cluster(
        chosen,
        TWO,
        existing("low", "n1", cpu=2)
        .having("metadata", "deletionTimestamp", value="2026-01-01T11:00:00Z")
        .having("status", "conditions", value=[{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]),
        group("g", 1, priority=9),
        member("p", "g", cpu=2, priority=9).having("status", "nominatedNodeName", value="n1"),
    )
    second = run(made, chosen)
    assert not second.evictions and not second.nominations
    assert second.groups["g"][1].endswith("pod group preemption: ongoing preemption on nominated nodes")


def test_members_that_would_fit_are_nominated_too_where_room_is_made() -> None:
    outcome = play(
        machine("n1", cpu=2), existing("low", "n1"), group("g", 2, priority=9), member("p1", "g", priority=9), member("p2", "g", priority=9)
    )
    assert outcome.evictions == ["low"] and outcome.nominations == {"p1": "n1", "p2": "n1"}
    found = "pod group preemption: found a placement for podgroup, preempting 1 victims"
    assert outcome.told["p1"] == f"Unschedulable: minCount (2) cannot be satisfied: 1 scheduled, 0 remaining, {found}"
    assert outcome.told["p2"] == "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu."


def test_victims_are_spared_that_leave_room_to_other_nominated_pods() -> None:
    """A pod of another group is nominated to the node: its room is not free for those that come back."""
    outcome = play(
        machine("n1", cpu=4),
        existing("low1", "n1"),
        existing("low2", "n1"),
        waiting("top", cpu=1, priority=99).having("status", "nominatedNodeName", value="n1").having("spec", "schedulingGates", value=[]),
        group("g", 1, priority=9),
        member("p", "g", cpu=2, priority=9),
    )
    assert outcome.binds == {"top": "n1"} and outcome.evictions == ["low2"]


def test_units_return_by_every_rule_if_resources_do_not_decide_alone() -> None:
    port = [{"containerPort": 80, "hostPort": 80}]
    taken = existing("low1", "n1").having("spec", "containers", 0, "ports", value=port)
    outcome = play(
        machine("n1", cpu=4),
        taken,
        existing("low2", "n1"),
        group("g", 2, priority=9),
        member("p1", "g", priority=9).having("spec", "containers", 0, "ports", value=port),
        member("p2", "g", priority=9),
    )
    assert outcome.evictions == ["low1"] and outcome.nominations == {"p1": "n1", "p2": "n1"}


def test_by_rules_too_the_room_of_other_nominated_pods_is_left_to_them() -> None:
    """Host ports decide besides resources. The nominated pod is held back by a gate that another member of its group has."""
    port = [{"containerPort": 80, "hostPort": 80}]
    with_port = member("p", "g", priority=9).having("spec", "containers", 0, "ports", value=port)
    held = member("top", "h", cpu=2, priority=99).having("status", "nominatedNodeName", value="n1")
    objects = [existing("low1", "n1"), existing("low2", "n1"), group("h", 2, priority=99), held]
    gated = member("other", "h", priority=99).having("spec", "schedulingGates", value=[{"name": "example.com/wait"}])
    outcome = play(machine("n1", cpu=4), *objects, gated, group("g", 1, priority=9), with_port)
    assert outcome.evictions == ["low2"] and outcome.nominations == {"p": "n1"}
    full = play(machine("n1", cpu=2), *objects, gated, group("g", 1, priority=9), with_port)
    assert not full.evictions
    both = play(machine("n1", cpu=4), *objects, gated, group("g", 2, priority=9), with_port, member("q", "g", priority=9))
    assert both.evictions == ["low1", "low2"] and both.nominations == {"p": "n1", "q": "n1"}
    nominated = with_port.having("status", "nominatedNodeName", value="n1")  # it counts once: in its place
    again = play(machine("n1", cpu=3), *objects[:2], group("g", 2, priority=9), nominated, member("q", "g", priority=9))
    assert again.evictions == ["low2"] and again.nominations == {"q": "n1"}


def test_a_nomination_of_a_member_holds_no_room_against_another_member() -> None:
    """p2 is nominated to the only node. p1 is tried before it and gets the node; p2 keeps its nomination."""
    nominated = member("p2", "g", priority=9).having("status", "nominatedNodeName", value="n1")
    outcome = play(machine("n1", cpu=2), group("g", 1, priority=9), member("p1", "g", cpu=2, priority=9), nominated)
    assert outcome.binds == {"p1": "n1"} and not outcome.nominations
    other = play(
        machine("n1", cpu=2), group("g", 1, priority=9), group("h", 1, priority=9), member("p1", "h", cpu=2, priority=9), nominated
    )
    assert other.binds == {"p2": "n1"}


def test_the_nomination_of_a_member_that_has_its_place_counts_no_more() -> None:
    outcome = play(
        machine("n1", cpu=3),
        existing("low1", "n1"),
        existing("low2", "n1"),
        group("g", 2, priority=9),
        member("p1", "g", priority=9).having("status", "nominatedNodeName", value="n1"),
        member("p2", "g", priority=9),
    )
    assert outcome.evictions == ["low2"] and outcome.nominations == {"p2": "n1"}


def test_a_placed_member_of_a_group_that_waits_for_its_victims_keeps_its_nomination() -> None:
    leaving = (
        existing("low", "n1", cpu=2)
        .having("metadata", "deletionTimestamp", value="2026-01-01T11:00:00Z")
        .having("status", "conditions", value=[{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}])
    )
    outcome = play(
        machine("n1", cpu=3),
        leaving,
        group("g", 2, priority=9),
        member("p1", "g", priority=9).having("status", "nominatedNodeName", value="n1"),
        member("p2", "g", priority=9),
    )
    assert not outcome.nominations and not outcome.binds
    text = "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining, pod group preemption: ongoing preemption on nominated nodes"
    assert outcome.told["p1"] == f"Unschedulable: {text}"


def test_pods_without_a_group_are_evicted_node_by_node_also_where_groups_wait_or_run() -> None:
    top, second = waiting("top", cpu=2, priority=9), waiting("second", cpu=2, priority=9)
    objects = [machine("n1", cpu=2), machine("n2", cpu=2), existing("low1", "n1"), existing("low2", "n2", priority=1), top, second]
    waits = [group("g", 9, priority=1), member("m", "g", priority=1)]
    outcome = play(*objects, *waits)
    assert outcome.evictions == ["low1", "low2"] and outcome.nominations == {"top": "n1", "second": "n2"}
    assert play(*objects, group("h"), running("r", "h", "n1"), *waits).evictions == ["r", "low1", "low2"]


# ---- groups that go as a whole


def test_a_member_on_a_node_that_is_not_known_stays_where_it_is() -> None:
    chosen = policy()
    made = cluster(
        chosen,
        TWO,
        group("low", whole=True),
        running("r1", "low", "n1", cpu=2),
        running("r2", "low", "gone"),
        group("g", priority=9),
        member("p", "g", priority=9),
    )
    assert run(made, chosen).evictions == ["r1"] and made.tasks["default/r2"].node_name == "gone"


def test_the_highest_group_that_goes_as_a_whole_counts() -> None:
    outcome = play(
        machine("n1", cpu=2),
        machine("n2", cpu=1),
        tree("c", whole=True),
        group("a", parent="c"),
        group("b", parent="c"),
        running("a1", "a", "n1", cpu=2),
        running("b1", "b", "n2"),
        waiting("top", cpu=2, priority=9),
        gates=TREES,
    )
    assert sorted(outcome.evictions) == ["a1", "b1"] and outcome.nominations == {"top": "n1"}


# ---- placements


@pytest.mark.parametrize(
    ("pods", "text"),
    [
        ([running("r", "g", "plain")], "no topology domain found for pod default/r"),
        ([running("r", "g", "gone")], 'getting node for pod default/r: node "gone" not found'),
        ([running("r", "g", "a1"), running("s", "g", "b1")], "more than 1 domain found for pod group: a, b"),
    ],
)
def test_a_group_in_no_single_domain_is_an_error(pods: list[Any], text: str) -> None:
    outcome = play(*RACKS, machine("plain"), group("g", key="rack"), member("p", "g"), *pods, gates=TOPOLOGY)
    assert outcome.groups["g"] == ("SchedulerError", f"cannot determine domain for already scheduled pods: {text}")


def test_no_node_with_the_label_is_no_placement() -> None:
    outcome = play(TWO, group("g", key="rack"), member("p", "g"), gates=TOPOLOGY)
    text = "no feasible placements found, pod group preemption: No preemption victims found for incoming preemptor"
    assert outcome.groups == {"g": ("Unschedulable", text)}
    assert outcome.told == {"p": "Unschedulable: no feasible placements found"}


def test_an_error_in_one_placement_ends_the_attempt() -> None:
    pod = member("p1", "g").having("spec", "resourceClaims", value=[{"name": "c", "resourceClaimName": "c"}])
    made = claim("c", selector="device.attributes['x'].nothing")
    outcome = play(*RACKS, *gpus("a1"), *gpus("b1"), made, group("g", key="rack"), pod, gates=TOPOLOGY)
    assert outcome.groups["g"][0] == "SchedulerError"


@pytest.mark.parametrize(
    ("plugins", "node"),
    [
        ("{}", "a1"),  # the fuller rack
        ("{placementScore: {disabled: [{name: NodeResourcesFit}]}}", "a1"),  # the first
        ("{placementScore: {disabled: [{name: PodGroupPodsCount}]}}", "a1"),
        ("{placementGenerate: {disabled: [{name: '*'}]}}", "b1"),  # one placement of all nodes: the emptier node
    ],
)
def test_plugins_generate_and_score_placements(plugins: str, node: str) -> None:
    outcome = play(*RACKS, group("g", key="rack"), member("p", "g"), gates=TOPOLOGY, conf=profile(f"{{plugins: {plugins}}}"))
    assert outcome.binds == {"p": node}


def test_extended_resources_count_in_the_score_of_a_placement_only_if_a_member_asks_for_them() -> None:
    resources = "[{name: example.com/gpu, weight: 1}, {name: example.com/none, weight: 1}]"
    conf = profile(f"{{pluginConfig: [{{name: NodeResourcesFit, args: {{scoringStrategy: {{resources: {resources}}}}}}}]}}")
    nodes = [
        machine("a1", cpu=2, rack="a").having("status", "allocatable", "example.com/gpu", value="4"),
        machine("b1", cpu=2, rack="b").having("status", "allocatable", "example.com/gpu", value="2"),
    ]
    asking = member("p", "g").having("spec", "containers", 0, "resources", "requests", "example.com/gpu", value="1")
    assert play(*nodes, group("g", key="rack"), asking, gates=TOPOLOGY, conf=conf).binds == {"p": "b1"}
    assert play(*nodes, group("g", key="rack"), member("p", "g"), gates=TOPOLOGY, conf=conf).binds == {"p": "a1"}
    bare = [machine("a1", rack="a").having("status", "allocatable", value={"cpu": "2", "memory": "1Gi", "pods": 9}) for _ in range(1)]
    cpu = profile("{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {resources: [{name: ephemeral-storage}]}}}]}")
    two = [*bare, machine("b1", rack="b").having("status", "allocatable", "ephemeral-storage", value="1Gi")]
    assert play(*two, group("g", key="rack"), member("p", "g"), gates=TOPOLOGY, conf=cpu).binds == {"p": "a1"}


def test_a_nominated_node_outside_of_the_placement_is_passed_over() -> None:
    pod = member("p1", "g", cpu=3).having("status", "nominatedNodeName", value="a1")
    outcome = play(*RACKS, group("g", key="rack"), pod, gates=TOPOLOGY)
    assert outcome.binds == {"p1": "b1"}


# ---- trees


def test_a_tree_with_a_missing_or_circular_parent_waits() -> None:
    outcome = play(TWO, group("a", parent="none"), member("p", "a"), gates=TREES)
    assert outcome.told == {"p": "SchedulingGated: its PodGroup, or a group above that, does not exist"} and not outcome.groups
    circle = play(TWO, group("a", parent="c"), tree("c", parent="d"), tree("d", parent="c"), member("p", "a"), gates=TREES)
    assert circle.told == outcome.told


def test_a_tree_deeper_than_an_api_server_makes_it_is_an_error_where_its_members_are_looked_for() -> None:
    inner = [tree("b", parent="a"), tree("c", parent="b"), tree("d", parent="c"), group("g", 1, parent="d"), member("p", "g")]
    assert play(*RACKS, tree("a"), *inner, gates=TREES).binds == {"p": "b1"}
    outcome = play(*RACKS, tree("a", key="rack"), *inner, gates=TREES)
    assert outcome.groups == {"g": ("SchedulerError", "exceeded maximum hierarchy depth at podgroup/default/g")}


def test_an_error_of_a_child_is_one_of_the_tree_and_what_was_found_out_below_is_forgotten() -> None:
    outcome = play(
        *RACKS,
        tree("c"),
        group("a", parent="c", key="rack"),
        group("b", parent="c"),
        running("r", "a", "a1"),
        running("s", "a", "b1"),
        member("p", "a"),
        member("q", "b"),
        gates=TREES,
    )
    text = "cannot determine domain for already scheduled pods: more than 1 domain found for pod group: a, b"
    assert set(outcome.groups.values()) == {("SchedulerError", f"composite pod group evaluation failed due to child error: {text}")}


def test_a_tree_of_trees_is_placed_together() -> None:
    outcome = play(
        machine("n1", cpu=4),
        tree("root", 2),
        tree("left", 1, parent="root"),
        tree("right", 1, parent="root"),
        group("a", 2, parent="left"),
        group("b", 2, parent="right"),
        *(member(f"a{n}", "a") for n in range(2)),
        *(member(f"b{n}", "b") for n in range(2)),
        gates=TREES,
    )
    assert set(outcome.binds) == {"a0", "a1", "b0", "b1"} and set(outcome.groups) == {"a", "b"}


def test_a_child_that_fails_counts_nothing_in_the_score_of_its_parents_placement() -> None:
    outcome = play(*RACKS, tree("c", 1, key="rack"), group("a", 2, parent="c"), group("b", 2, parent="c"), *TREE_PODS, gates=TREES)
    assert outcome.binds == {"a0": "a1", "a1": "a1"} and outcome.groups["a"] == ("Scheduled", "")
    assert outcome.groups["b"][0] == "Unschedulable"


TREE_PODS = [*(member(f"a{n}", "a") for n in range(2)), *(member(f"b{n}", "b", cpu=2) for n in range(2))]


def test_a_tree_that_needs_more_groups_than_it_has_is_refused_at_once() -> None:
    """Such a tree is not tried at all, unless that is switched off."""
    objects = (TWO, tree("c", 2), group("a", parent="c"), member("p", "a"))
    held = play(*objects, gates=TREES)
    assert held.told == {"p": 'SchedulingGated: waiting for composite pod group "c" tree to meet quorum'} and not held.groups
    tried = play(*objects, gates=TREES, conf=profile("{plugins: {preEnqueue: {disabled: [{name: GangScheduling}]}}}"))
    why = "minCount (2) cannot be satisfied: 0 scheduled, 1 remaining"
    refused = f"pod group is unschedulable, 0/1 placements are available, first placement status: {why}"
    assert tried.told == {"p": f"Unschedulable: {refused}"} and tried.groups["a"][1].startswith(refused)


# ---- device claims


def gpus(node: str) -> list[Any]:
    devices = {"driver": "gpu.example.com", "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}, "nodeName": node}
    return [
        manifest("ResourceSlice", f"slice-{node}", spec=devices | {"devices": [{"name": "gpu-0"}]}),
        *([manifest("DeviceClass", "gpu", spec={})] if node.endswith("1") and node != "b1" else []),
    ]


def claim(name: str, *, selector: str = "", owner: str = "", **told: Any) -> Any:
    exactly: dict[str, Any] = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    exactly |= {"selectors": [{"cel": {"expression": selector}}]} if selector else {}
    made = manifest("ResourceClaim", name, spec={"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}, status=told)
    return made.having("metadata", "ownerReferences", value=[{"name": "x", "uid": owner, "controller": True}]) if owner else made


ENTRY = {"name": "gpu", "resourceClaimTemplateName": "t"}


def templated(made: str) -> Any:
    shared = group("g", 2).having("spec", "resourceClaims", value=[ENTRY])
    return shared.having("status", "resourceClaimStatuses", value=[{"name": "gpu", "resourceClaimName": made}]) if made else shared


def test_a_claim_of_the_group_serves_all_its_members() -> None:
    pods = [member(name, "g").having("spec", "resourceClaims", value=[ENTRY]) for name in ("p1", "p2")]
    made = claim("c", owner="default-g")
    assert play(TWO, *gpus("n1"), made, templated("c"), *pods, gates=CLAIMS).binds == {"p1": "n1", "p2": "n1"}
    waits = play(TWO, *gpus("n1"), made, templated(""), *pods, gates=CLAIMS)
    assert waits.told["p1"] == 'SchedulingGated: waiting for the resourceclaim of "gpu" to be created'
    others = play(TWO, *gpus("n1"), claim("c", owner="other"), templated("c"), *pods, gates=CLAIMS)
    text = "ResourceClaim default/c was not created for Pod default/p1 (neither Pod nor PodGroup g is the owner)"
    assert others.told["p1"] == f"SchedulingGated: {text}"
    assert play(TWO, group("g"), member("p", "g").having("spec", "resourceClaims", value=[ENTRY]), gates=CLAIMS).binds == {}


def allocated(node: str, *users: str) -> dict[str, Any]:
    where = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]}
    devices = {"results": [{"request": "gpu", "driver": "gpu.example.com", "pool": node, "device": "gpu-0"}]}
    reserved = [{"resource": "podgroups", "name": user, "uid": user} for user in users]
    return {"allocation": {"devices": devices, "nodeSelector": where}, "reservedFor": reserved}


@pytest.mark.parametrize(
    ("users", "runs", "freed"), [((), False, True), (("default-g",), False, True), (("x",), False, False), (("default-g",), True, False)]
)
def test_devices_of_a_group_are_given_back_unless_somebody_uses_them(users: tuple[str, ...], runs: bool, freed: bool) -> None:
    named = {"name": "gpu", "resourceClaimName": "c"}
    objects = [
        machine("n1", cpu=2),
        machine("n2", cpu=1),
        *gpus("n1"),
        *gpus("n2"),
        claim("c", **allocated("n2", *users)),
        group("g", 2).having("spec", "resourceClaims", value=[named]),
        *(member(name, "g").having("spec", "resourceClaims", value=[named]) for name in ("p1", "p2")),
        *([running("r", "g", "n1", cpu="100m")] if runs else []),
        existing("full", "n2", priority=9),
    ]
    chosen = policy(CLAIMS)
    made = cluster(chosen, *objects)
    run(made, chosen)
    assert (made.of("ResourceClaim")["default/c"].status.allocation is None) == freed


def sharing(name: str, cpu: int = 1) -> Any:
    """A member with the claim of its group."""
    return member(name, "g", cpu).having("spec", "resourceClaims", value=[SHARED])


SHARED = {"name": "gpu", "resourceClaimName": "c"}
HOLDER = group("g", 2).having("spec", "resourceClaims", value=[SHARED])
FULL = "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
AGAIN = (
    'error in "DynamicResources" PodGroupPostFilter plugins: Operation cannot be fulfilled on resourceclaims.resource.k8s.io "c": '
    "the object has been modified; please apply your changes to the latest version and try again"
)


def test_a_claim_of_which_nothing_is_written_is_given_back_without_harm() -> None:
    """The first member decides the claim for one node, where the second has no room. An API server takes that for no change. No eviction
    helps either."""
    known = claim("c").having("metadata", "uid", value="of-a-server")
    nodes = [machine("n1", cpu=1), machine("n2", cpu=1), machine("n3", cpu=1), existing("low", "n3", priority=-1), *gpus("n1"), *gpus("n2")]
    outcome = play(*nodes, known, HOLDER, sharing("p1"), sharing("p2"), gates=CLAIMS)
    given = "deallocation of PodGroup ResourceClaim completed"
    assert outcome.groups["g"] == ("Unschedulable", f"{FULL}, {given}, pod group preemption: {FULL}")


@pytest.mark.parametrize("nominated", [False, True], ids=["by-looking-around", "where-it-is-nominated"])
def test_a_claim_is_given_back_once(nominated: bool) -> None:
    """The first member has its place and was kept from another node; the second finds no room. Both would give back the same claim."""
    known = claim("c", **allocated("n2")).having("metadata", "uid", value="of-a-server")
    nodes = [machine("n1", cpu=1), machine("n2", cpu=1), *gpus("n1"), *gpus("n2")]
    first = sharing("p1").having("status", "nominatedNodeName", value="n2") if nominated else sharing("p1")
    outcome = play(*nodes, known, HOLDER, first, sharing("p2"), gates=CLAIMS)
    # a nominated member looks at its node alone: only the second gives it back, and then the group again
    assert outcome.groups["g"] == ("SchedulerError", AGAIN)


def test_a_group_without_a_place_lets_go_of_its_claim() -> None:
    """Its claim is of use where it is, but there is room for one member only. Others that use the claim keep it."""
    known = claim("c", **allocated("n1", "default-g", "h"))
    chosen = policy(CLAIMS)
    made = cluster(chosen, machine("n1", cpu=1), *gpus("n1"), known, HOLDER, sharing("p1"), sharing("p2"))
    outcome = run(made, chosen)
    assert outcome.groups["g"] == ("Unschedulable", f"{FULL}, ResourceClaim unreserved for PodGroup")
    left = made.of("ResourceClaim")["default/c"].status
    assert left.allocation is not None and [user.uid for user in left.reserved_for] == ["h"]


def test_a_claim_of_the_pod_alone_is_given_back_as_well() -> None:
    pod = member("p", "g", cpu=2).having("spec", "resourceClaims", value=[{"name": "gpu", "resourceClaimName": "c"}])
    chosen = policy(CLAIMS)
    made = cluster(
        chosen, machine("n1", cpu=2), machine("n2", cpu=1), *gpus("n1"), *gpus("n2"), claim("c", **allocated("n2")), group("g"), pod
    )
    run(made, chosen)
    assert made.of("ResourceClaim")["default/c"].status.allocation is None


def test_evictions_are_looked_for_without_the_claim_that_was_given_back() -> None:
    """The claim has devices where a less important pod is in the way. Without them the member has room on another node."""
    pod = member("p", "g").having("spec", "resourceClaims", value=[SHARED])
    nodes = [machine("n1", cpu=1), machine("n2", cpu=1), *gpus("n1"), *gpus("n2"), existing("low", "n2", priority=-1)]
    outcome = play(*nodes, claim("c", **allocated("n2")), group("g"), pod)
    given = "pod group preemption: found a placement for podgroup, preempting 0 victims"
    assert outcome.groups["g"] == ("Unschedulable", f"minCount (1) cannot be satisfied: 0 scheduled, 0 remaining, {given}")
    assert not outcome.evictions and outcome.nominations == {"p": "n1"}


def test_pods_that_come_later_get_the_devices_that_were_given_back() -> None:
    """Two pods alike want the only device: one comes before it is given back, the other one after that."""

    def wants(name: str) -> list[Any]:
        entry = {"name": "own", "resourceClaimTemplateName": "t"}
        pod = member(name, f"g-{name}").having("spec", "resourceClaims", value=[entry])
        pod = pod.having("status", "resourceClaimStatuses", value=[{"name": "own", "resourceClaimName": f"of-{name}"}])
        return [group(f"g-{name}"), pod, claim(f"of-{name}", owner=f"default-{name}")]

    holder = member("b", "g-b", cpu=2).having("spec", "resourceClaims", value=[SHARED])
    nodes = [machine("n1", cpu=1), machine("n2", cpu=2), *gpus("n1"), claim("c", **allocated("n1"))]
    assert play(*nodes, *wants("a"), group("g-b"), holder, *wants("z")).binds == {"z": "n1"}


def test_a_claim_that_is_made_for_the_pod_is_not_given_back_while_it_waits() -> None:
    """The pod names two claims. One holds devices on a node that is too small; the other is its own, and is not allocated yet."""
    own = {"name": "own", "resourceClaimTemplateName": "t"}
    pod = member("p", "g", cpu=2).having("spec", "resourceClaims", value=[{"name": "gpu", "resourceClaimName": "c"}, own])
    pod = pod.having("status", "resourceClaimStatuses", value=[{"name": "own", "resourceClaimName": "mine"}])
    mine = claim("mine", owner="default-p")
    chosen = policy(CLAIMS)
    nodes = [machine("n1", cpu=2), machine("n2", cpu=1), *gpus("n1"), *gpus("n2")]
    made = cluster(chosen, *nodes, claim("c", **allocated("n2")), mine, group("g"), pod)
    assert run(made, chosen).groups["g"][0] == "Unschedulable"
    assert made.of("ResourceClaim")["default/c"].status.allocation is None


def test_a_member_refused_before_its_devices_were_looked_at_is_an_error() -> None:
    pod = member("p", "g").having("spec", "volumes", value=[{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}])
    outcome = play(TWO, group("g"), pod)
    assert outcome.groups["g"] == ("SchedulerError", 'error in "DynamicResources" PodGroupPostFilter plugins: not found')
    assert play(TWO, group("g", 2), member("a", "g"), pod).groups["g"][0] == "Unschedulable"  # those of another member were


# ---- the queue


def entity(name: str, size: int) -> GroupEntity:
    chosen = policy()
    made = cluster(chosen, TWO, group(name), *(member(f"{name}{n}", name) for n in range(size)))
    assert chosen.profiles is not None
    root = Groups(made, chosen.profiles.release).root_of(f"default/{name}")
    assert isinstance(root, NativeGroup)
    return GroupEntity(root, {root.key: [task for task in made.tasks.values() if task.group]})


def test_an_error_backs_off_by_errors_and_a_bind_that_fails_brings_the_group_back_at_once() -> None:
    queue, waits = GroupQueue(1.0, 10.0), entity("g", 1)
    assert queue.due([waits], {waits.uid}, NOW) == [waits] and not queue.knows(waits.tasks[0]) and queue.next_due() is None
    for number, wait in enumerate((1, 2, 4, 8, 10, 10)):
        queue.tried(waits, GroupOutcome.FAILED, waits.tasks, NOW)
        assert queue.next_due() == NOW + wait + 1, number
    queue.tried(waits, GroupOutcome.REFUSED, waits.tasks, NOW)
    assert queue.next_due() == NOW + 2 and queue.tries(waits.tasks[0]) == (7, NOW) and queue.knows(waits.tasks[0])
    assert queue.due([waits], {waits.uid}, NOW + 1.9) == [] and queue.due([waits], {waits.uid}, NOW + 2) == [waits]
    queue.activate(waits.tasks)
    assert queue.due([waits], {waits.uid}, NOW) == [waits]
    queue.tried(waits, GroupOutcome.PLACED, waits.tasks, NOW)
    assert queue.due([waits], {waits.uid}, NOW) == [waits]
    queue.tried(waits, GroupOutcome.PLACED, [], NOW)
    assert queue.tries(waits.tasks[0]) == (0, 0.0)
    queue.activate(waits.tasks)
    assert queue.due([waits], set(), NOW) == [waits]


def test_refusals_are_counted_on_over_an_error() -> None:
    queue, waits = GroupQueue(1.0, 10.0), entity("g", 1)
    for outcome in (GroupOutcome.REFUSED, GroupOutcome.FAILED, GroupOutcome.REFUSED):
        queue.tried(waits, outcome, waits.tasks, NOW)
    assert queue.next_due() == NOW + 3


def test_a_failed_bind_or_eviction_lets_the_group_be_tried_at_once() -> None:
    chosen = policy()
    made = cluster(chosen, machine("n1", cpu=1), group("g", 2), member("p1", "g"), member("p2", "g"))
    queue = SchedulingQueue(made)
    queue.add(alone := made.tasks["default/p2"])
    assert queue.place_of(alone) == "active"
    queue.forget(alone)
    run(made, chosen, queue=queue)
    p1 = made.tasks["default/p1"]
    assert queue.place_of(p1) == "backoff" and queue.next_due() == NOW + 2
    assert run(made, chosen, NOW + 1, queue).groups == {}
    queue.failed(p1, NOW + 1)
    assert set(run(made, chosen, NOW + 1, queue).groups) == {"g"}
    p1.nominated = "n1"
    queue.eviction_failed("n1")
    assert set(run(made, chosen, NOW + 1, queue).groups) == {"g"}


def test_groups_whose_pods_are_gone_are_forgotten() -> None:
    chosen = policy()
    made = cluster(chosen, machine("n1", cpu=9))
    queue, met = SchedulingQueue(made), []
    for name in "abcd":
        made.put(*group(name, 1).build())
        made.put(*member(f"p-{name}", name).build())
        assert run(made, chosen, queue=queue).binds == {f"p-{name}": "n1"}
        met.append(made.tasks[f"default/p-{name}"])
        assert queue.groups.knows(met[-1])
        made.remove("Pod", met[-1].key)
    assert sum(map(queue.groups.knows, met)) <= 2


def test_only_groups_of_the_pods_that_were_tried_are_tried_again() -> None:
    chosen = policy()
    made = cluster(chosen, machine("n1", cpu=4), group("g"), group("h"), member("p", "g"), member("q", "h"))
    assert run(made, chosen, queue=Only([made.tasks["default/q"]])).binds == {"q": "n1"}
    assert EVERYBODY.tries(made.tasks["default/p"]) == (0, 0.0)
    assert made.tasks["default/p"].status == status.PENDING


def test_gang_gets_the_same_places_without_shortcuts() -> None:
    objects = [machine("a", 2), machine("b", 2), group("g", 3), *(member(f"p{number}", "g") for number in range(4))]
    with_them, without = (run(cluster(chosen, *objects), chosen, NOW) for chosen in (policy(), replace(policy(), shortcuts=False)))
    assert with_them.binds == without.binds and len(without.binds) == 4


def test_units_return_to_nodes_of_no_member_and_leave_room_to_nominated_pods_of_other_groups() -> None:
    """`top` is nominated to n1 and its group is held back, so that both pods there must go; the pod on n2 is in nobody's way."""
    lower = [existing("low1", "n1"), existing("low2", "n1"), existing("far", "n2")]
    nominated = member("top", "h", priority=99).having("status", "nominatedNodeName", value="n1")
    held = member("held", "h", priority=99).having("spec", "schedulingGates", value=[{"name": "example.com/wait"}])
    groups = group("g", 1, priority=9), group("h", 2, priority=99)
    outcome = play(machine("n1", cpu=3), machine("n2", cpu=1), *lower, *groups, nominated, held, member("p", "g", cpu=2, priority=9))
    assert outcome.evictions == ["low1", "low2"] and outcome.nominations == {"p": "n1"}
