"""A pod that fits nowhere takes the place of less important ones: of as few as matter, and not against budgets if that can be."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.kube_scheduler.stage import budget, cluster, existing, machine, play, policy, profile, run, waiting

HIGH = waiting("high", 2, priority=100)
LABELS = {"matchLabels": {"app": "x"}}


def test_the_pod_is_nominated_first_and_bound_when_its_victims_are_gone() -> None:
    chosen = policy()
    made = cluster(chosen, machine("a"), existing("low", "a", 2), HIGH)
    first = run(made, chosen)
    assert (first.binds, first.evictions, first.nominations) == ({}, ["low"], {"high": "a"})
    assert first.waiting["high"] == "0/1 nodes are available: 1 Insufficient cpu."
    assert run(made, chosen).binds == {"high": "a"}


def test_nobody_of_equal_or_higher_priority_goes() -> None:
    outcome = play(machine("a"), existing("equal", "a", 2, priority=100), HIGH)
    assert outcome.evictions == []
    assert "1 No preemption victims found for incoming pod" in outcome.waiting["high"]


def test_a_pod_that_never_preempts_waits() -> None:
    never = HIGH.having("spec", "preemptionPolicy", value="Never")
    outcome = play(machine("a"), existing("low", "a", 2), never)
    assert outcome.evictions == []
    assert outcome.waiting["high"].endswith("preemption: not eligible due to preemptionPolicy=Never.")


def test_the_most_important_are_spared_even_if_more_pods_go() -> None:
    crowd = [existing("big", "a", 1, priority=5), *(existing(f"s{i}", "a", "500m", priority=1) for i in range(2))]
    assert sorted(play(machine("a"), *crowd, waiting("high", 1, 9)).evictions) == ["s0", "s1"]


def test_evictions_where_the_node_is_too_small_are_not_tried() -> None:
    outcome = play(machine("a", 1), existing("low", "a"), HIGH)
    assert outcome.evictions == []
    assert "1 Preemption is not helpful for scheduling" in outcome.waiting["high"]


def test_preemption_without_shortcuts_takes_the_same_victims() -> None:
    crowd = [existing(f"low{number}", "ab"[number % 2], 1, priority=number) for number in range(4)]
    made = [cluster(policy(), machine("a"), machine("b"), *crowd, HIGH) for _ in range(2)]
    assert run(made[0], policy()).evictions == run(made[1], replace(policy(), shortcuts=False)).evictions != []


# -- budgets


def test_a_node_without_violations_is_preferred_to_cheaper_victims() -> None:
    guarded = existing("guarded", "a", 2, priority=0).label("app", "x")
    dear = existing("dear", "b", 2, priority=50)
    assert play(machine("a"), machine("b"), guarded, dear, budget("pdb", 0, LABELS), HIGH).evictions == ["dear"]


def test_a_budget_is_broken_where_every_candidate_breaks_one() -> None:
    guarded = existing("guarded", "a", 2).label("app", "x")
    assert play(machine("a"), guarded, budget("pdb", 0, LABELS), HIGH).evictions == ["guarded"]


@pytest.mark.parametrize(
    ("budgets", "evicted"),
    [
        ([budget("b", 1, LABELS)], "old"),  # one may go: only the second in importance is against it, and it is spared first
        ([budget("b", 0, LABELS), budget("c", 5, LABELS)], "young"),  # both are against it: importance decides
        ([budget("b", 0, LABELS, disrupted=["old"])], "old"),  # counted already: not charged again
        ([budget("b", 0, None)], "young"),  # selects nothing
        ([budget("b", 0, {})], "young"),
        ([budget("b", 0, {"matchExpressions": [{"key": "app", "operator": "Is", "values": ["x"]}]})], "young"),
        ([budget("b", 0, {"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["x"]}]})], "young"),
    ],
)
def test_who_goes_by_budget(budgets: list[tuple[str, object]], evicted: str) -> None:
    old = existing("old", "a", 1, since="2026-01-01T08:00:00Z").label("app", "x")
    young = existing("young", "a", 1, since="2026-01-01T09:00:00Z").label("app", "x")
    assert play(machine("a"), old, young, *budgets, waiting("high", 1, 100)).evictions == [evicted]


def test_a_pod_without_labels_or_of_another_namespace_is_under_no_budget() -> None:
    other = existing("other", "a", 2).label("app", "x").having("metadata", "namespace", value="red")
    dear = existing("dear", "b", 2, priority=50)
    assert play(machine("a"), machine("b"), other, dear, budget("pdb", 0, LABELS), HIGH).evictions == ["other"]


# -- the choice


RULES = {
    "the lowest highest priority": ([("a", [(2, 9)]), ("b", [(1, 5), (1, 8)])], "b"),
    "the lowest sum": ([("a", [(1, 5), (1, 5)]), ("b", [(1, 5), (1, 4)])], "b"),
    "the fewest, though they weigh more": ([("a", [(2, -9)]), ("b", [(1, -9), (1, -9)])], "a"),
}


@pytest.mark.parametrize("rule", RULES)
def test_the_node_is_chosen_by(rule: str) -> None:
    nodes, expected = RULES[rule]
    crowd = [existing(f"{n}{i}", n, cpu, priority) for n, pods in nodes for i, (cpu, priority) in enumerate(pods)]
    assert play(*(machine(n) for n, _ in nodes), *crowd, HIGH).nominations == {"high": expected}


def test_the_victims_that_started_last_go_and_who_has_no_start_started_now() -> None:
    old, young = existing("old", "a", 2, since="2026-01-01T08:00:00Z"), existing("young", "b", 2, since="2026-01-01T09:00:00Z")
    assert play(machine("a"), machine("b"), old, young, HIGH).evictions == ["young"]
    assert play(machine("a"), machine("b"), machine("c"), old, young, existing("now", "c", 2, since=None), HIGH).evictions == ["now"]


def test_with_few_candidates_wanted_the_search_goes_on_until_one_breaks_no_budget() -> None:
    one = profile("{pluginConfig: [{name: DefaultPreemption, args: {minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 1}}]}")
    guarded = existing("guarded", "a", 2).label("app", "x")
    dear, cheap = existing("dear", "b", 2, priority=50), existing("cheap", "c", 2)
    crowd = (machine("a"), machine("b"), machine("c"), guarded, dear, cheap, budget("pdb", 0, LABELS))
    assert play(*crowd, HIGH, conf=one).evictions == ["dear"]
    assert play(*crowd, HIGH).evictions == ["cheap"]


# -- over time


def test_while_victims_leave_nobody_else_is_evicted() -> None:
    chosen = policy()
    made = cluster(chosen, machine("a"), machine("b"), existing("x", "a", 2), existing("y", "b", 2, priority=3), HIGH)
    from pumice.scheduler.framework.cycle import cycle

    assert [e.task.name for e in cycle(made, chosen, 0.0).evictions] == ["x"]
    again = cycle(made, chosen, 1.0)
    assert again.evictions == []
    assert again.waiting[0].message.endswith("not eligible due to a terminating pod on the nominated node.")


def test_less_important_nominations_on_the_node_are_taken_back() -> None:
    low = waiting("low", 2, priority=10).having("status", "nominatedNodeName", value="a")
    outcome = play(machine("a"), machine("b", 1), existing("x", "a", 2), existing("y", "b", 1, priority=500), low, HIGH)
    assert outcome.nominations == {"high": "a"}


def test_an_old_nomination_is_taken_back_when_nothing_can_be_done() -> None:
    hopeless = waiting("p", 2, priority=1).having("status", "nominatedNodeName", value="a")
    assert play(machine("a"), existing("x", "a", 2, priority=9), hopeless).nominations == {}


def test_several_preemptors_share_the_victims_out() -> None:
    nodes = [machine(f"n{i}", 4) for i in range(3)]
    low = [existing(f"l{i}{k}", f"n{i}", 1) for i in range(3) for k in range(4)]
    high = [waiting(f"h{i}", 2, 50) for i in range(6)]
    chosen = policy()
    made = cluster(chosen, *nodes, *low, *high)
    assert len(run(made, chosen).evictions) == 12
    assert len(run(made, chosen).binds) == 6


# -- where more than resources decides: each node is tried by itself


def near(name: str, label: str, kind: str) -> object:
    term = {"labelSelector": {"matchLabels": {"app": label}}, "topologyKey": "kubernetes.io/hostname"}
    return waiting(name, "100m", 50).having("spec", "affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution", value=[term])


def test_a_pod_in_the_way_by_anti_affinity_goes_and_others_stay() -> None:
    crowd = (existing("foe", "a", "100m", 3).label("app", "foe"), existing("bystander", "a", "100m"))
    assert play(machine("a"), *crowd, near("p", "foe", "podAntiAffinity")).evictions == ["foe"]


def test_who_is_needed_near_must_not_be_among_those_who_could_go() -> None:
    bystander = existing("bystander", "a", 1, 3)
    needy = near("p", "friend", "podAffinity").cpu(1)  # type: ignore[attr-defined]
    friend = existing("friend", "a", 1).label("app", "friend")
    assert play(machine("a"), friend.priority(60), bystander, needy).evictions == ["bystander"]
    outcome = play(machine("a"), friend, bystander, needy)
    assert outcome.evictions == []
    assert "1 node(s) didn't match pod affinity rules" in outcome.waiting["p"]


def test_a_host_port_is_taken_over() -> None:
    def with_port(made: object) -> object:
        return made.having("spec", "containers", 0, "ports", value=[{"containerPort": 1, "hostPort": 80}])  # type: ignore[attr-defined]

    outcome = play(machine("a", 4), with_port(existing("web", "a")), existing("x", "a"), with_port(waiting("high", 1, 9)))
    assert outcome.evictions == ["web"]


@pytest.mark.parametrize(("disabled", "kept"), [("'*'", {}), ("DefaultPreemption", {"high": "a"})])
def test_where_nothing_preempts_a_nomination_ends_with_the_next_failure(disabled: str, kept: dict[str, str]) -> None:
    nominated = HIGH.having("status", "nominatedNodeName", value="a")
    conf = profile(f"{{plugins: {{postFilter: {{disabled: [{{name: {disabled}}}]}}}}}}")
    assert play(machine("a"), existing("low", "a", 2), nominated, conf=conf).nominations == kept


EVEN = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": LABELS}


def test_a_pod_on_its_way_out_that_goes_in_thought_evens_out_the_spread() -> None:
    """It was not counted while it stood, but kube-scheduler counts it away, and back."""
    full = machine("b").having("spec", "taints", value=[{"key": "other", "effect": "NoSchedule"}])
    crowd = [existing(name, "a", "100m", priority).label("app", "x") for name, priority in (("first", 3), ("second", 2), ("third", 1))]
    spread = waiting("high", "100m", 9).label("app", "x").having("spec", "topologySpreadConstraints", value=[EVEN])
    assert sorted(play(machine("a"), full, *crowd, spread).evictions) == ["first", "second", "third"]
    assert play(machine("a"), full, *crowd[:2], crowd[2].leaving(), spread).evictions == ["second"]
    elsewhere = existing("elsewhere", "a", "100m", 1).leaving()
    assert sorted(play(machine("a"), full, *crowd[:2], elsewhere, spread).evictions) == ["first", "second"]


def test_a_nominated_pod_counts_for_anti_affinity_before_it_comes() -> None:
    foe = waiting("foe", 2, 80).label("app", "foe")
    outcome = play(machine("a", 3), existing("x", "a", 3), foe, near("p", "foe", "podAntiAffinity"))
    assert outcome.nominations == {"foe": "a"}
    assert "preemption" in outcome.waiting["p"]


def test_a_crowd_that_grows_is_walked_in_full() -> None:
    chosen = policy()
    made = cluster(chosen, machine("a", 2), *(existing(f"s{i}", "a", "100m") for i in range(20)), waiting("first", 2, 5))
    assert len(run(made, chosen).evictions) == 20
    assert run(made, chosen).binds == {"first": "a"}
    for number in range(30):
        made.put(*machine(f"m{number}", "1").build())
        made.put(*existing(f"t{number}", f"m{number // 20}", "50m").build())
    made.put(*waiting("second", 1, 5).build())
    assert len(run(made, chosen).evictions) <= 20


def test_nominations_are_counted_for_whoever_asks() -> None:
    from pumice.scheduler.kube.nominator import Nominator

    made = cluster(policy(), machine("a", 9), waiting("low", 1, 1), waiting("mid", 2, 5), waiting("high", 3, 9))
    low, mid, high = (made.tasks[f"default/{name}"] for name in ("low", "mid", "high"))
    nominations = Nominator(made)
    for task in (low, mid):
        nominations.add(task, 0)
    assert nominations.against(high)[0].tolist() == []
    assert nominations.against(low)[1][0].tolist() == [2000.0]  # not against itself
    assert nominations.against(mid)[0].tolist() == []
    nominations.drop(mid)
    nominations.add(high, 0)
    assert nominations.against(mid)[1][0].tolist() == [3000.0]
    assert nominations.against(high)[0].tolist() == []
    nominations.drop(low)
    nominations.drop(high)
    nominations.drop(high)
    assert not nominations
