"""Gangs within limits of the network topology, and gangs in parts."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pumice.inputs.cluster_from_files import advance
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.queue import Queue
from pumice.scheduler.model.task import Task
from pumice.testing import Outcome, cluster, hypernode, node, pod, podgroup, schedule, session
from pumice.testing.scene import NOW, policy
from tests.topology.racks import ACTIONS, PLUGINS, assert_same, gang, part, rack_of, racks, running, state


def run(*objects: Any) -> Outcome:
    return schedule(cluster(*objects), ACTIONS, *PLUGINS)


def nodes_of(outcome: Outcome, name: str) -> list[str]:
    """Where the pods of a gang were bound, sorted."""
    return sorted(where for key, where in outcome.binds.items() if key.startswith(f"default/{name}-"))


# -- limits


def test_a_gang_with_a_limit_stays_in_one_rack_though_the_cluster_is_emptier_elsewhere() -> None:
    outcome = run(*racks(2, 2), podgroup("a", 4).topology(1), *gang("a", 4), podgroup("o").phase("Running"), *running("o", "n1"))
    assert nodes_of(outcome, "a") == ["n3", "n3", "n4", "n4"]


def test_nothing_is_bound_if_no_rack_takes_the_whole_gang() -> None:
    outcome = run(*racks(2, 2), podgroup("a", 5).topology(1), *gang("a", 5))
    assert outcome.binds == {}


def test_a_wider_limit_is_used_only_if_no_closer_hypernode_does() -> None:
    assert nodes_of(run(*racks(2, 2), podgroup("a", 3).topology(2), *gang("a", 3)), "a") in (["n1", "n1", "n2"], ["n3", "n3", "n4"])
    assert len(run(*racks(2, 2), podgroup("a", 5).topology(2), *gang("a", 5)).binds) == 5


def test_a_soft_topology_spreads_as_a_last_resort() -> None:
    wish = podgroup("a", 5).topology(mode="soft")
    assert len(run(*racks(2, 2), wish, *gang("a", 5)).binds) == 5
    assert nodes_of(run(*racks(2, 2), podgroup("a", 4).topology(mode="soft"), *gang("a", 4)), "a") == ["n1", "n1", "n2", "n2"]


def test_a_hard_topology_without_a_tier_limits_nothing() -> None:
    assert len(run(*racks(2, 2), podgroup("a", 5).topology(), *gang("a", 5)).binds) == 5


@pytest.mark.parametrize(("tier_name", "bound"), [("rack", 0), ("spine", 5), ("galaxy", 5)])
def test_a_tier_may_be_named_and_an_unknown_name_limits_nothing(tier_name: str, bound: int) -> None:
    wish = podgroup("a", 5).having("spec", "networkTopology", value={"mode": "hard", "highestTierName": tier_name})
    assert len(run(*racks(2, 2), wish, *gang("a", 5)).binds) == bound


def test_of_two_racks_the_fuller_one_is_taken() -> None:
    outcome = run(*racks(2, 2, cpu=4), podgroup("a", 2).topology(1), *gang("a", 2), podgroup("o").phase("Running"), *running("o", "n3"))
    assert set(nodes_of(outcome, "a")) <= {"n3", "n4"}


def test_a_running_gang_grows_where_it_is() -> None:
    group = podgroup("a", 2).topology(1).phase("Running")
    outcome = run(*racks(2, 2), group, *running("a", "n3", "n4"), *[p.cpu(1) for p in pod("b-x").gang("a").times(2)])
    assert sorted(outcome.binds.values()) == ["n3", "n4"]


def test_an_elastic_gang_does_not_start_where_not_all_its_pods_fit() -> None:
    assert run(*racks(2, 2), podgroup("a", 2).topology(1), *gang("a", 6)).binds == {}


def test_a_running_elastic_gang_takes_what_there_is() -> None:
    group = podgroup("a", 1).topology(1).phase("Running")
    outcome = run(*racks(2, 2), group, *running("a", "n3"), *pod("b").cpu(1).gang("a").times(6))
    assert sorted(outcome.binds.values()) == ["n3", "n4", "n4"]


def test_jobs_with_a_topology_wait_while_the_tree_is_unusable_and_others_do_not() -> None:
    broken = [hypernode(name, 3).holds("s", kind="HyperNode") for name in ("x", "y")]
    outcome = run(*racks(2), *broken, podgroup("a").topology(1), *gang("a", 1), podgroup("b"), *gang("b", 1))
    assert list(outcome.binds) == ["default/b-0"]


def test_without_the_plugin_limits_do_not_bind() -> None:
    made = cluster(*racks(2, 2), podgroup("a", 5).topology(1), *gang("a", 5))
    assert len(schedule(made, ACTIONS, "gang", "predicates").binds) == 5


def test_without_gang_a_rack_takes_what_it_can() -> None:
    made = cluster(
        *racks(2, 2), podgroup("a", 9).topology(1).needs(cpu=1), *gang("a", 4), podgroup("o").phase("Running"), *running("o", "n1")
    )
    assert len(schedule(made, ACTIONS, "predicates", "network-topology-aware").binds) == 4


def test_a_gang_that_fits_nowhere_says_how_much_is_short() -> None:
    outcome = run(*racks(2, 1), podgroup("a", 5).topology(1), *gang("a", 5))
    text = "no HyperNode of tier 1 or lower has room for all 5 pending pods: the roomiest, r1, has room for 4, 1 too few"
    assert outcome.waiting["default/a-0"] == text
    assert f"Origin reason is a-0: {text}" in outcome.waiting["default/a-1"]


def test_a_part_that_fits_nowhere_says_so_too() -> None:
    outcome = run(*racks(1, 1), *parts(3, 1, 3, 3))
    assert "has room for all 3 pending pods: the roomiest, r1, has room for 2, 1 too few" in outcome.waiting["default/a-0-0"]


def test_a_gang_whose_pods_are_further_apart_than_they_may_be_says_so() -> None:
    outcome = run(*racks(2, 2), podgroup("a", 3).topology(1).phase("Running"), *running("a", "n1", "n3"), pod("b").cpu(1).gang("a"))
    text = "no HyperNode of tier 1 or lower holds all of its pods that run: the lowest that does, s, is of tier 2"
    assert outcome.waiting["default/b"] == text


def test_where_hypernodes_contradict_each_other_a_gang_says_which() -> None:
    other = hypernode("other", 2).holds("r1", kind="HyperNode")
    outcome = run(*racks(2), other, podgroup("a", 1).topology(1), *gang("a", 1))
    assert outcome.waiting["default/a-0"] == "no HyperNode can be used: HyperNode r1 is a member of both other and s"


def test_a_gang_refused_by_nodes_says_what_they_say() -> None:
    pods = [p.selector("zone", "east") for p in gang("a", 2)]
    outcome = run(*racks(1, 1), podgroup("a", 2).topology(1), *pods)
    assert outcome.waiting["default/a-0"].startswith("0/1 nodes are unavailable: 1 node(s) didn't match")


def test_a_gang_that_is_refused_by_its_queue_blames_no_domain() -> None:
    class Closed(Plugin):
        name = "closed"

        def allocatable(self, queue: Queue, task: Task) -> bool:
            return False

    made = cluster(*racks(1, 1), podgroup("a", 2).topology(1), *gang("a", 2))
    assert "HyperNode" not in schedule(made, ACTIONS, *PLUGINS, Closed).waiting["default/a-0"]


@pytest.mark.parametrize("seed", range(12))
def test_a_planned_run_goes_where_one_by_one_would(seed: int) -> None:
    """A plugin that might choose nodes itself makes allocate ask for each pod anew."""

    class Bystander(Plugin):
        name = "bystander"

        def best_node(self, task: Task, scores: Any) -> int | None:
            return None

    dice = random.Random(seed)
    objects: list[Any] = []
    for number in range(3):
        names = [f"n{number}-{index}" for index in range(dice.randint(2, 5))]
        objects += [node(name).cpu(dice.randint(2, 9)).memory(f"{dice.randint(4, 40)}Gi") for name in names]
        objects.append(hypernode(f"r{number}").holds(*names))
    for number in range(4):
        size = dice.randint(4, 9)
        pods = [p.memory(f"{number + 1}Gi") for p in gang(f"g{number}", size)]
        objects += [podgroup(f"g{number}", dice.randint(2, size)).topology(1).created(f"2026-01-01T00:00:0{number}Z"), *pods]
    planned = schedule(cluster(*objects), ACTIONS, *PLUGINS)
    assert planned == schedule(cluster(*objects), ACTIONS, *PLUGINS, Bystander)
    assert planned.binds


# -- dry runs


def test_dry_runs_leave_everything_as_it_was() -> None:
    """Two gangs are tried in every rack, one of them part by part, and neither fits."""
    made = cluster(
        *racks(2, 2, 2),
        *(podgroup("a", 5).topology(1), *gang("a", 5)),
        *(podgroup("b", 7).parts("part", 3, least=3, highest_tier=1), *part("b", "0", 3), *part("b", "1", 3), *part("b", "2", 3)),
        *(podgroup("o", 5).phase("Running"), *running("o", "n1", "n2", "n3", "n4", "n5")),
    )
    before = state(made)
    assert schedule(made, ACTIONS, *PLUGINS).binds == {}
    made.check()
    assert_same(before, state(made))


def test_a_gang_waits_in_a_rack_whose_pods_are_leaving_without_being_bound() -> None:
    leaving = [one.leaving() for one in running("o", "n1", "n2", cpu=2)]
    full = running("f", "n3", "n4", cpu=2)
    groups = podgroup("a", 2).topology(1), podgroup("o").phase("Running"), podgroup("f").phase("Running")
    made = cluster(*racks(2, 2), *groups, *gang("a", 2), *leaving, *full)
    outcome = schedule(made, ACTIONS, *PLUGINS)
    assert outcome.binds == {}
    assert len(outcome.pipelined) == 2
    assert {rack_of(where) for where in outcome.pipelined.values()} == {1}
    assert made.jobs["default/a"].allocated_hypernode == ""
    made.check()


# -- parts


def parts(size: int, least: int, minimum: int, *counts: int, tier: int | None = 1) -> list[Any]:
    group = podgroup("a", minimum).parts("part", size, least, tier)
    return [group, *(one for value, count in enumerate(counts) for one in part("a", str(value), count))]


def test_each_part_stays_in_a_rack_of_its_own() -> None:
    outcome = run(*racks(2, 2, 2), *parts(3, 3, 9, 3, 3, 3))
    assert [len({rack_of(w) for w in nodes_of(outcome, f"a-{value}")}) for value in "012"] == [1, 1, 1]
    assert len(outcome.binds) == 9


def test_a_part_that_is_placed_in_turns_does_not_leave_its_rack() -> None:
    """Each part starts with two of its three pods; the job needs five, so one part must come twice."""
    outcome = run(*racks(2, 2), *parts(2, 2, 5, 3, 3))
    assert [len({rack_of(w) for w in nodes_of(outcome, f"a-{value}")}) for value in "01"] == [1, 1]


def test_parts_that_the_minimum_of_the_policy_needs_come_first() -> None:
    """Of two policies `two` needs a part; its part comes before those of `one`, which are earlier in their order."""
    group = podgroup("a", 2).parts("one", 2).parts("two", 2, least=1)
    ones = [p.label("one", "0") for p in pod("x").cpu(1).gang("a").times(2)]
    twos = [p.label("two", "5") for p in pod("y").cpu(1).gang("a").times(2)]
    outcome = run(node("n").cpu(3), group, *ones, *twos)
    assert sorted(outcome.binds) == ["default/y-0", "default/y-1"]


def test_a_part_takes_no_more_than_it_needs_before_the_others_have_their_turn() -> None:
    outcome = run(node("n").cpu(4), *parts(2, 2, 4, 3, 3, tier=None))
    assert sorted(outcome.binds) == ["default/a-0-0", "default/a-0-1", "default/a-1-0", "default/a-1-1"]


def test_a_part_that_does_not_fit_is_not_placed_by_half() -> None:
    outcome = run(node("n").cpu(5), *parts(3, 1, 3, 3, 3, tier=None))
    assert sorted(outcome.binds) == ["default/a-0-0", "default/a-0-1", "default/a-0-2"]


def test_pods_in_no_part_may_start_one_by_one() -> None:
    outcome = run(node("n").cpu(4), *parts(2, 1, 3, 2, tier=None), *gang("a", 2))
    assert len(outcome.binds) == 4


def test_of_many_racks_a_job_in_parts_takes_the_fullest() -> None:
    taken = [podgroup("o").phase("Running"), *running("o", *["n9"] * 3)]
    outcome = run(*racks(*[1] * 12, cpu=8), *taken, *parts(2, 2, 4, 2, 2))
    assert set(outcome.binds.values()) == {"n9"}


def test_of_many_racks_a_job_in_parts_with_a_limit_takes_the_fullest() -> None:
    taken = [podgroup("o").phase("Running"), *running("o", *["n11"] * 3)]
    group = podgroup("a", 4).topology(1).parts("part", 2, 2)
    outcome = run(*racks(*[1] * 12, cpu=8), *taken, group, *part("a", "0", 2), *part("a", "1", 2))
    assert set(outcome.binds.values()) == {"n11"}


def test_a_job_in_parts_waits_where_pods_are_leaving() -> None:
    leaving = [one.leaving() for one in running("o", "n1", "n2", cpu=2)]
    full = podgroup("f").phase("Running"), *running("f", "n3", "n4", cpu=2)
    group = podgroup("a", 4).topology(1).parts("part", 2, 2)
    objects = [*racks(2, 2), podgroup("o").phase("Running"), *leaving, *full, group, *part("a", "0", 2), *part("a", "1", 2)]
    outcome = run(*objects)
    assert outcome.binds == {}
    assert sorted(outcome.pipelined.values()) == ["n1", "n1", "n2", "n2"]


def test_racks_alike_are_tried_until_one_does() -> None:
    objects = [item.label("zone", "east") if item.kind == "Node" and number > 1 else item for number, item in enumerate(racks(2, 2, 2))]
    pods = [p.selector("zone", "east") for p in gang("a", 2)]
    assert {rack_of(where) for where in run(*objects, podgroup("a", 2).topology(1), *pods).binds.values()} == {2}


def test_a_job_and_its_parts_may_both_have_limits() -> None:
    group = podgroup("a", 4).topology(2).parts("part", 2, 2, 1)
    far = [node("f1").cpu(8), hypernode("r9").holds("f1"), hypernode("s9", 2).holds("r9", kind="HyperNode")]
    outcome = run(*racks(1, 1), *far, group, *part("a", "0", 2), *part("a", "1", 2))
    assert set(outcome.binds.values()) in ({"n1", "n2"}, {"f1"})


# -- what is remembered


def decide(made: Cluster, actions: str = ACTIONS) -> Any:
    return cycle(made, policy(actions, PLUGINS), NOW)


def test_the_hypernode_of_a_job_is_decided_and_kept() -> None:
    made = cluster(*racks(2, 2), podgroup("a", 3).topology(2), *gang("a", 3))
    decisions = decide(made)
    assert [group.hypernode for group in decisions.groups] == ["r1"]
    advance(made, decisions, NOW)
    assert made.jobs["default/a"].allocated_hypernode == "r1"


def test_a_record_that_names_no_hypernode_is_replaced() -> None:
    note = "volcano.sh/job-allocated-hypernode"
    group = podgroup("a", 1).topology(1).phase("Running").annotation(note, "gone")
    made = cluster(*racks(2, 2), group, *running("a", "n3"), pod("b").cpu(1).gang("a"))
    with session(made, *PLUGINS) as opened:
        found = opened.topology.occupied(made.jobs["default/a"])
        assert found is not None
        assert found.name == "r2"


def test_a_record_that_is_wider_than_need_be_is_kept() -> None:
    group = podgroup("a", 1).topology(2).phase("Running").annotation("volcano.sh/job-allocated-hypernode", "s")
    made = cluster(*racks(2, 2), group, *running("a", "n3"))
    job = made.jobs["default/a"]
    (whole,) = job.subjobs
    whole.allocated_hypernode = "s"
    with session(made, *PLUGINS) as opened:
        spine = opened.topology.tree.by_name["s"]
        assert (opened.topology.occupied(job), opened.topology.sub_occupied(job, whole)) == (spine, spine)


@pytest.mark.parametrize("record", ["<cluster-top-hypernode>", "s", "r1"])
def test_a_record_that_does_not_hold_the_pods_within_the_limit_is_replaced(record: str) -> None:
    """HyperNodes that went and came back under another name, or lost nodes, leave such records."""
    group = podgroup("a", 2).topology(1).phase("Running").annotation("volcano.sh/job-allocated-hypernode", record)
    made = cluster(*racks(2, 2), group, *running("a", "n3"), pod("b").cpu(1).gang("a"))
    decisions = decide(made)
    assert [bind.node for bind in decisions.binds] in (["n3"], ["n4"])
    assert made.jobs["default/a"].allocated_hypernode == "r2"


def test_best_effort_pods_are_left_to_backfill() -> None:
    group = podgroup("a", 1).parts("part", 1)
    made = cluster(*racks(1), group, *part("a", "0", 1), pod("x").gang("a").label("part", "1"))
    assert list(schedule(made, ACTIONS, *PLUGINS).binds) == ["default/a-0-0"]


def test_a_record_of_a_job_without_pods_on_nodes_is_dropped() -> None:
    group = podgroup("a", 1).topology(1).annotation("volcano.sh/job-allocated-hypernode", "r2")
    made = cluster(*racks(2, 2), group, *gang("a", 1))
    with session(made, *PLUGINS) as opened:
        assert opened.topology.occupied(made.jobs["default/a"]) is None


def test_a_job_in_parts_occupies_what_holds_all_of_them() -> None:
    group = podgroup("a", 1).parts("part", 1, highest_tier=1).phase("Running")
    far = [one.on("n3") for one in part("a", "1", 1)]
    made = cluster(*racks(2, 2), group, *(one.on("n1") for one in part("a", "0", 1)), *far)
    job = made.jobs["default/a"]
    with session(made, *PLUGINS) as opened:
        found = opened.topology.occupied(job)
        assert found is not None
        assert found.name == "s"
        assert {p.match_index: opened.topology.sub_occupied(job, p) for p in job.subjobs} == {
            0: opened.topology.tree.by_name["r1"],
            1: opened.topology.tree.by_name["r2"],
        }
