"""What each action does where a plugin, a rule or a queue says no."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.scheduler.actions.allocate import Allocate, AllocateArgs
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model.cluster import Cluster
from pumice.testing import PodBuilder, cluster, node, pod, podgroup, queue, schedule
from pumice.testing.scene import NOW, policy
from tests.scenarios.naysayers import CLASSES, PLUGINS, Anybody, Change, Held, lost_claim, port, same

# -- allocate and backfill


def test_without_enqueue_every_job_is_let_in_also_one_whose_pods_are_not_there_yet() -> None:
    objects = (node("a").cpu(4), podgroup("early", 2), podgroup("ready"), pod("p").cpu(1).gang("ready"))
    assert schedule(cluster(*objects), "allocate", *PLUGINS).phases == {"default/early": "Inqueue", "default/ready": "Inqueue"}
    assert schedule(cluster(*objects), "enqueue, allocate").phases["default/early"] == "Inqueue"
    assert schedule(cluster(*objects), "backfill", *PLUGINS).phases == {"default/early": "Pending", "default/ready": "Pending"}


@pytest.mark.parametrize("cpu", [0, 1])
def test_a_pod_that_a_plugin_holds_back_is_told_why(cpu: int) -> None:
    made = cluster(node("a").cpu(4), podgroup("g"), *(pod(name).cpu(cpu).gang("g") for name in "pq"))
    outcome = schedule(made, "enqueue, allocate, backfill", *PLUGINS, Held)
    assert outcome.binds == {"default/q": "a"}
    assert outcome.waiting == {"default/p": "0/1 nodes are unavailable: 1 its licence is in use."}


@pytest.mark.parametrize("cpu", [0, 1])
def test_a_pod_that_no_node_can_help_is_told_why(cpu: int) -> None:
    made = cluster(node("a").cpu(4), podgroup("g"), lost_claim(pod("p").cpu(cpu).gang("g")))
    outcome = schedule(made, "enqueue, allocate, backfill", *PLUGINS)
    assert outcome.waiting == {"default/p": '0/1 nodes are unavailable: 1 persistentvolumeclaim "lost" not found.'}


def test_a_best_effort_pod_that_finds_no_node_is_told_why() -> None:
    made = cluster(node("a").pods(1), node("b").cordoned(), podgroup("g", 0), pod("x").gang("g").on("a"), pod("p").gang("g"))
    outcome = schedule(made, "enqueue, allocate, backfill", *PLUGINS)
    assert outcome.waiting == {"default/p": "0/2 nodes are unavailable: 1 Insufficient pods, 1 node(s) were unschedulable."}


def test_backfill_binds_a_best_effort_pod_that_preempt_had_let_wait_though_there_was_room() -> None:
    made = cluster(*CLASSES, node("a").cpu(1), podgroup("g").priority_class("high").phase("Inqueue"), pod("p").gang("g"))
    alone = schedule(made, "preempt", *PLUGINS)
    assert (alone.binds, alone.pipelined) == ({}, {"default/p": "a"})
    both = schedule(made, "preempt, backfill", *PLUGINS)
    assert (both.binds, both.pipelined, both.evictions) == ({"default/p": "a"}, {}, [])
    assert schedule(made, "preempt, backfill", *PLUGINS).binds == {}
    made.check()


@pytest.mark.parametrize("evicting", ["preempt", "reclaim"])
@pytest.mark.parametrize(
    ("free", "size", "gone", "bound"), [(0, 1, 1, 0), (1, 1, 0, 1), (1, 2, 1, 0), (2, 2, 0, 2)], ids=["full", "free", "half", "both"]
)
def test_before_allocate_nobody_is_evicted_for_what_is_free_and_nobody_waits_for_it(
    evicting: str, free: int, size: int, gone: int, bound: int
) -> None:
    """In an order like "reclaim, allocate" too, a gang is placed at once where it can be."""
    queues = [queue("one"), queue("two")]
    low = podgroup("g", 0).queue("one").priority_class("low").phase("Running")
    high = podgroup("h", size).queue("one" if evicting == "preempt" else "two").priority_class("high").phase("Inqueue")
    nodes = [node("a").cpu(2), *([node("b").cpu(free)] if free else [])]
    old = [pod(f"old-{number}").cpu(1).gang("g").on("a") for number in range(2)]
    made = cluster(*CLASSES, *queues, *nodes, low, high, *old, *pod("new").cpu(1).gang("h").times(size))
    outcome = schedule(made, f"{evicting}, allocate", *PLUGINS, Anybody)
    assert (len(outcome.evictions), len(outcome.binds), len(outcome.pipelined)) == (gone, bound, size - bound)


def test_a_gang_gives_its_more_important_pod_what_is_free_before_allocate() -> None:
    made = cluster(
        *CLASSES, node("a").cpu(2), podgroup("g", 2).phase("Running"), pod("old").cpu(1).gang("g").on("a"), pod("new").cpu(1).gang("g")
    )
    assert schedule(made, "preempt, allocate", *PLUGINS).binds == {"default/new": "a"}


@pytest.mark.parametrize(("spare", "binds", "waits"), [("3", {}, "a"), ("0", {}, ""), ("free", {"default/third": "b"}, "")])
def test_allocate_gives_nobody_the_port_of_a_pod_that_is_only_just_being_evicted(spare: str, binds: dict[str, str], waits: str) -> None:
    low = [podgroup("g", 0).priority_class("low").phase("Running"), port(pod("old").cpu(2).gang("g").on("a"))]
    high = [podgroup("h").priority_class("high").phase("Inqueue"), pod("new").cpu(2).gang("h")]
    third = [podgroup("i", 0).phase("Inqueue"), port(pod("third").cpu(1).gang("i"))]
    nodes = [node("a").cpu(2 if spare == "0" else 3), *([node("b").cpu(1)] if spare == "free" else [])]
    outcome = schedule(cluster(*CLASSES, *nodes, *low, *high, *third), "preempt, allocate", *PLUGINS)
    assert (outcome.binds, outcome.evictions) == (binds, ["default/old"])
    assert outcome.pipelined == {"default/new": "a"} | ({"default/third": waits} if waits else {})


@pytest.mark.parametrize("late", [False, True])
def test_backfill_gives_nobody_the_place_of_a_pod_that_is_only_just_being_evicted(late: bool) -> None:
    """Its port and its place are not free before it has gone."""
    low = [podgroup("g", 0).priority_class("low").phase("Running"), port(pod("old").gang("g").on("a"))]
    high = [podgroup("h").priority_class("high").phase("Inqueue"), port(pod("new").gang("h"))]
    another = [podgroup("i", 0).phase("Inqueue"), port(pod("third").gang("i"))] if late else []
    outcome = schedule(cluster(*CLASSES, node("a").cpu(1), *low, *high, *another), "preempt, backfill", *PLUGINS)
    assert (outcome.binds, outcome.pipelined, outcome.evictions) == ({}, {"default/new": "a"}, ["default/old"])


@pytest.mark.parametrize("free", [0, 1])
def test_backfill_binds_beside_those_who_leave_whoever_needs_nothing_of_theirs(free: int) -> None:
    """Not even their place, if there is no other."""
    low = [podgroup("g", 0).priority_class("low").phase("Running"), pod("old").cpu(1).gang("g").on("a")]
    high = [podgroup("h", 2).priority_class("high").phase("Inqueue"), pod("new").cpu(1).gang("h"), pod("light").gang("h")]
    third = [podgroup("i", 0).phase("Inqueue"), pod("third").gang("i")]
    outcome = schedule(cluster(*CLASSES, node("a").cpu(1).pods(2 + free), *low, *high, *third), "preempt, backfill", *PLUGINS)
    assert (outcome.evictions, outcome.pipelined) == (["default/old"], {"default/new": "a"})
    assert outcome.binds == ({"default/third": "a"} if free else {})


def test_backfill_first_lets_go_of_all_that_wait_without_needing_room() -> None:
    """preempt has let a light pod wait on the first node; another pod, whose turn comes earlier, finds its place free."""
    mixed = [podgroup("h", 2).priority_class("mid").phase("Inqueue"), pod("light").gang("h")]
    other = [podgroup("i", 0).priority_class("high").phase("Inqueue"), pod("third").gang("i")]
    nodes = [node("a").cpu(1).pods(1), node("b").cpu(1).pods(1), node("full").cpu(1)]
    big = pod("big").cpu(1).gang("h").selector("kubernetes.io/hostname", "full")
    outcome = schedule(cluster(*CLASSES, *nodes, *mixed, big, *other), "allocate, preempt, backfill", *PLUGINS)
    assert outcome.binds == {"default/big": "full", "default/third": "a", "default/light": "b"}


@pytest.mark.parametrize(("caches", "bound"), [(True, ["other", "plain"]), (False, ["other", "plain", "small"])])
def test_a_role_of_which_a_pod_found_no_node_is_not_tried_again_unless_that_is_switched_off(caches: bool, bound: list[str]) -> None:
    pods = [
        pod("big").cpu(9).gang("g").role("worker").priority(2),
        pod("small").cpu(1).gang("g").role("worker"),
        pod("other").cpu(1).gang("g").role("leader"),
        pod("plain").cpu(1).gang("g"),
    ]
    made = cluster(node("a").cpu(4), podgroup("g", 0).phase("Inqueue"), *pods)
    chosen = Policy((Allocate(AllocateArgs(predicate_error_cache_enable=caches)),), policy("allocate", PLUGINS).tiers)
    assert sorted(bind.task.name for bind in cycle(made, chosen, NOW).binds) == bound


def nominated_for_a() -> PodBuilder:
    return pod("p").cpu(1).gang("g").having("status", "nominatedNodeName", value="a")


def test_a_nominated_pod_goes_to_its_node_though_equal_pods_are_planned_together() -> None:
    def world(nominated: str) -> Cluster:
        pods = pod("p").cpu(1).gang("g").times(6)
        pods[2] = pods[2].having("status", "nominatedNodeName", value=nominated)
        return cluster(node("a").cpu(8), node("b").cpu(8), podgroup("g", 6), *pods)

    plain = schedule(world("gone"), "enqueue, allocate", *PLUGINS, "nodeorder").binds
    assert plain == {f"default/p-{number}": "ab"[number % 2] for number in range(6)}
    drawn = schedule(world("b"), "enqueue, allocate", *PLUGINS, "nodeorder").binds
    assert list(drawn.values()) == ["a", "b", "b", "a", "a", "b"]
    kept = schedule(
        cluster(node("a").cpu(8), node("b").cpu(99), podgroup("g"), nominated_for_a()), "enqueue, allocate", *PLUGINS, "nodeorder"
    )
    assert kept.binds == {"default/p": "a"}


@pytest.mark.parametrize(
    ("least", "roles", "tried"),
    [
        (2, {"m": 1, "w": 1}, False),
        (2, {"w": 2}, True),
        (2, {"m": 2, "w": 1}, True),
        (1, {"m": 2, "w": 1}, True),
        (3, {"m": 2, "w": 2}, False),
    ],
)
def test_a_gang_is_tried_on_after_a_failure_only_while_it_may_still_start(least: int, roles: dict[str, int], tried: bool) -> None:
    """The master fits nowhere. Where its role must have one, nobody else is tried; minima above that of the job mean nothing but
    that enough pods of other roles must be left."""
    group = podgroup("g", least).phase("Inqueue").having("spec", "minTaskMember", value=roles)
    pods = [pod("m").cpu(9).gang("g").role("m").priority(9), *(one.role("w") for one in pod("w").cpu(1).gang("g").times(2))]
    outcome = schedule(cluster(node("a").cpu(4), group, *pods), "allocate", *PLUGINS)
    assert sorted(outcome.binds) == (["default/w-0", "default/w-1"] if tried else [])
    assert tried or "can possibly be assigned" not in outcome.waiting["default/w-0"]


# -- reclaim


def lent(change: Change = same, keeper: Change = same, owner: str = "mine") -> Cluster:
    """As `contested`, but what the pod could have is held by another queue."""
    keeping = keeper(pod("keeper").cpu(2).gang("stays").preemptable(False).on("a"))
    return cluster(
        node("a").cpu(4),
        *(queue(name) for name in ("mine", "sated", "theirs")),
        podgroup("stays").queue("theirs").phase("Running"),
        podgroup("lent", 0).queue("theirs").phase("Running"),
        podgroup("claim").queue(owner).phase("Inqueue"),
        keeping,
        pod("old").cpu(2).gang("lent").on("a"),
        change(pod("p").cpu(2).gang("claim")),
    )


def reclaimed(made: Cluster, *plugins: Any) -> list[str]:
    outcome = schedule(made, "reclaim", "predicates", "gang", Anybody, *plugins)
    made.check()
    return [name.removeprefix("default/") for name in outcome.evictions]


def test_nothing_is_taken_back_for_a_pod_that_could_not_be_placed_all_the_same() -> None:
    assert reclaimed(lent()) == ["old"]
    assert reclaimed(lent(), Held) == []
    assert reclaimed(lent(lost_claim)) == []
    assert reclaimed(lent(port)) == ["old"]
    assert reclaimed(lent(port, port)) == []


def test_nodes_on_which_nobody_could_go_are_not_for_reclaim() -> None:
    made = lent()
    made.put(*node("b").cpu(9).build())
    assert reclaimed(made) == ["old"]


def test_a_queue_that_has_had_enough_takes_nothing_back() -> None:
    assert reclaimed(lent(owner="sated")) == []


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
@pytest.mark.parametrize("chief", ["old-0", "old-1", "old-2"])
def test_of_what_a_gang_can_spare_the_least_important_goes(action: str, chief: str) -> None:
    """Whichever of its pods came first."""
    members = [pod(f"old-{n}").cpu(1).gang("old").on("a").priority(9 if f"old-{n}" == chief else 1) for n in range(3)]
    made = cluster(
        *CLASSES,
        node("a").cpu(3),
        queue("q"),
        podgroup("old", 2).phase("Running").priority_class("low"),
        *members,
        podgroup("new").queue("default" if action == "preempt" else "q").priority_class("high"),
        pod("new").cpu(1).gang("new"),
    )
    least_important = max(f"old-{n}" for n in range(3) if f"old-{n}" != chief)
    assert schedule(made, f"enqueue, allocate, {action}", *PLUGINS).evictions == [f"default/{least_important}"]


def test_a_pod_that_its_gang_needs_hides_nobody_who_can_go() -> None:
    """Of its queue's surplus it takes no part, though it is younger and would go first: all plugins in one tier."""
    made = cluster(
        node("a").cpu(3),
        queue("q"),
        podgroup("spare", 1).phase("Running"),
        *(member.on("a") for member in pod("spare").cpu(1).gang("spare").times(2)),
        podgroup("needed", 1).phase("Running").created("2026-01-01T00:00:00Z"),
        pod("needed").cpu(1).gang("needed").on("a"),
        podgroup("new").queue("q"),
        pod("new").cpu(1).gang("new"),
    )
    assert schedule(made, "enqueue, allocate, reclaim", "gang", "proportion", "predicates").evictions == ["default/spare-1"]
