"""The reasons for which people wait, each as a new user meets it: one line says what is wrong, with numbers, and what is given helps."""

from __future__ import annotations

import pytest

from pumice.answers import Because, TrialCluster, Why, why
from pumice.answers.answer_text import page
from pumice.answers.changes import make_all
from pumice.answers.missing_room import Missing, for_a_part
from pumice.answers.refusing_rules import NodesFor
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model.cluster import Cluster
from pumice.testing import cluster, hypernode, node, pod, podgroup, priority_class, queue, session
from pumice.testing.builders import PodBuilder
from pumice.testing.scene import NOW, policy

PLUGINS = ("gang", "priority", "predicates", "nodeorder", "binpack")


def default(*more: str) -> Policy:
    return policy("enqueue, allocate, backfill", (*PLUGINS, *more))


def gang(name: str, count: int, cpu: int) -> list[PodBuilder]:
    return [pod(f"{name}-{number}").cpu(cpu).gang(name) for number in range(count)]


def no_room() -> tuple[Cluster, Policy]:
    return cluster(node("n1").cpu(4), node("n2").cpu(8), pod("old").cpu(6).on("n2"), podgroup("j"), pod("j").cpu(8).gang("j")), default()


def too_large() -> tuple[Cluster, Policy]:
    return cluster(node("n1").cpu(4), node("n2").cpu(8), podgroup("j"), pod("j").cpu(32).gang("j")), default()


def fragmented() -> tuple[Cluster, Policy]:
    olds = [pod(f"old{number}").cpu(2).on(f"n{number}") for number in range(3)]
    return cluster(*(node(f"n{n}").cpu(4) for n in range(3)), *olds, podgroup("j"), pod("j").cpu(3).gang("j")), default()


def quota() -> tuple[Cluster, Policy]:
    small = queue("small").capability(cpu=4)
    held = pod("old").cpu(3).gang("old").on("n1")
    groups = (podgroup("old").queue("small").phase("Running"), podgroup("j").queue("small").phase("Inqueue"))
    return cluster(node("n1").cpu(16), small, *groups, held, pod("j").cpu(2).gang("j")), default("capacity")


def closed_queue() -> tuple[Cluster, Policy]:
    return cluster(
        node("n1").cpu(16), queue("shut").state("Closed"), podgroup("j").queue("shut").phase("Pending"), pod("j").cpu(2).gang("j")
    ), default("proportion")


def taint() -> tuple[Cluster, Policy]:
    nodes = (node("small").cpu(2), node("g1").cpu(16).taint("gpu", "yes"), node("g2").cpu(16).taint("gpu", "yes"))
    return cluster(*nodes, podgroup("j"), pod("j").cpu(8).gang("j")), default()


def affinity() -> tuple[Cluster, Policy]:
    return cluster(node("n1").cpu(16), node("n2").cpu(16), podgroup("j"), pod("j").cpu(2).selector("disk", "ssd").gang("j")), default()


def gang_too_large() -> tuple[Cluster, Policy]:
    return cluster(node("n1").cpu(4), node("n2").cpu(4), podgroup("j", 10), *gang("j", 10, 1)), default()


def topology() -> tuple[Cluster, Policy]:
    racks = (hypernode("r1").holds("n1", "n2"), hypernode("r2").holds("n3", "n4"))
    nodes = [node(f"n{number}").cpu(2) for number in range(1, 5)]
    job = podgroup("j", 3).topology(1)
    return cluster(*nodes, *racks, job, *gang("j", 3, 2)), default("network-topology-aware")


def gate() -> tuple[Cluster, Policy]:
    held = pod("j").cpu(1).gang("j").having("spec", "schedulingGates", value=[{"name": "example.com/quota"}])
    return cluster(node("n1").cpu(4), podgroup("j"), held), default()


def missing_volume() -> tuple[Cluster, Policy]:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    return cluster(node("n1").cpu(4), podgroup("j"), pod("j").cpu(1).gang("j").having("spec", "volumes", value=volumes)), default()


def outranked() -> tuple[Cluster, Policy]:
    first = podgroup("first").priority_class("high")
    made = cluster(
        priority_class("high", 10), node("n1").cpu(4), podgroup("j"), first, pod("j").cpu(3).gang("j"), pod("first").cpu(3).gang("first")
    )
    return made, default()


LINES = {
    no_room: (Because.NO_ROOM, "no node has 8 cpu free: n2, the only node that it may use, has 2 (6 short)"),
    too_large: (Because.TOO_LARGE, "it asks for 32 cpu on one node, and the largest, n2, has 8 in all (24 short)"),
    fragmented: (
        Because.FRAGMENTED,
        "no node has 3 cpu free, though all together have 6: of 3 nodes that it may use, n0 comes closest with 2 (1 short)",
    ),
    quota: (Because.QUOTA, "queue small may hold 4 cpu, and holds 3; it asks for 2 (1 short)"),
    closed_queue: (Because.QUEUE_CLOSED, "queue shut is Closed: it serves no job"),
    taint: (Because.TAINT, "2 of 3 nodes, the only ones with room for it, have a taint that it does not tolerate: gpu=yes:NoSchedule"),
    affinity: (Because.AFFINITY, "no node that it may use matches its node selector disk=ssd"),
    gang_too_large: (Because.GANG_TOO_LARGE, "its 10 pods start together, and even empty nodes would hold only 8 (2 short)"),
    topology: (
        Because.TOPOLOGY,
        "its 3 pods must be in one HyperNode of tier 1 or lower; the roomiest, r1, has room for 2 (1 short)",
    ),
    gate: (Because.GATED, "scheduling gate example.com/quota holds its only pod"),
    missing_volume: (Because.VOLUME, "PersistentVolumeClaim default/data does not exist"),
    outranked: (
        Because.OUTRANKED,
        "it would start if it were alone, but podgroup/first goes first (priority 10 above 0) and leaves too little room",
    ),
}


def test_nodes_that_a_selector_wants_are_meant_before_all_others() -> None:
    plain, wanted = [node(f"n{number}").cpu(16) for number in range(3)], node("g1").cpu(16).label("gpu", "yes").taint("gpu", "yes")
    made = cluster(*plain, wanted, podgroup("j"), pod("j").cpu(8).selector("gpu", "yes").gang("j"))
    told = ask(made, default()).headline
    assert told is not None
    assert (told.because, told.text) == (
        Because.TAINT,
        "node g1, the only one with room for it, has a taint that it does not tolerate: gpu=yes:NoSchedule",
    )


def test_the_nearest_node_is_that_with_the_fewest_rules_in_the_way_though_another_has_more_room() -> None:
    empty, wanted = node("empty").cpu(16).taint("gpu", "yes"), node("wanted").cpu(16).label("disk", "ssd").taint("gpu", "yes")
    made = cluster(empty, wanted, pod("old").cpu(10).on("wanted"), podgroup("j"), pod("j").cpu(8).selector("disk", "ssd").gang("j"))
    assert [near.node for near in ask(made, default()).nearest] == ["wanted", "empty"]


def test_a_gang_whose_minimum_has_its_places_is_not_short_of_room() -> None:
    made = cluster(node("n1").cpu(4), podgroup("j"), pod("j").cpu(1).gang("j"))
    with session(made, "predicates") as opened:
        more = made.tasks["default/j"]
        assert for_a_part(NodesFor(opened.evaluation(more)), Missing(1, 1, [more])) is None


def test_pods_that_ask_for_another_scheduler_are_not_missing() -> None:
    made = cluster(node("n1").cpu(4), podgroup("j").phase("Inqueue"), pod("j").cpu(1).scheduler("mine").gang("j"))
    told = ask(made, default()).headline
    assert told is not None
    assert (told.because, told.text) == (Because.OTHER_SCHEDULER, 'its pods ask for scheduler "mine"; this one serves volcano')


def test_where_no_node_has_come_yet_nothing_is_for_ever() -> None:
    told = ask(cluster(podgroup("j").phase("Inqueue"), pod("j").cpu(1).gang("j")), default())
    assert told.headline is not None and (told.headline.because, told.never) == (Because.NO_NODES, "")


def test_what_will_never_fit_is_told_behind_what_holds_it_back_now() -> None:
    small, held = queue("small").capability(cpu=4), pod("old").cpu(3).gang("old").on("n1")
    groups = (podgroup("old").phase("Running"), podgroup("j", 2).queue("small").phase("Pending").needs(cpu=6))
    made = cluster(node("n1").cpu(6), small, *groups, held, *gang("j", 2, 3))
    told = ask(made, default("overcommit", "capacity"))
    assert told.headline is not None and told.headline.because is Because.OVERCOMMITTED
    assert told.never == "it must start with 6 cpu, and queue small may hold 4 at most (2 short)"
    assert f"It can never run here: {told.never}" in page(told)


def ask(made: Cluster, by: Policy) -> Why:
    return why(made, by, NOW, "job/j")


@pytest.mark.parametrize("story", LINES, ids=lambda story: story.__name__)
def test_one_line_tells_what_is_wrong_and_what_is_given_helps(story: object) -> None:
    made, by = story()  # type: ignore[operator]
    told = ask(made, by)
    assert told.headline is not None
    assert (told.headline.because, told.headline.text) == LINES[story]  # type: ignore[index]
    with TrialCluster(made) as trial:
        make_all(trial, told.headline.remedy)
        assert ask(made, by).state == "starts"
    assert ask(made, by).line == told.line
    made.check()


def test_room_that_is_made_for_a_part_of_a_gang_is_not_promised_to_all_of_it() -> None:
    made = cluster(node("n1").cpu(4), pod("old").cpu(4).on("n1").leaving(), podgroup("j"), *gang("j", 3, 4))
    told = why(made, default(), NOW, "podgroup/j").line
    assert told == "room is being made for 1 of its 3 pods on n1, and not yet for the other 2: 1 can start when pod/default/old has left"
    alone = cluster(node("n1").cpu(4), pod("old").cpu(4).on("n1").leaving(), podgroup("j"), *gang("j", 1, 4))
    assert why(alone, default(), NOW, "podgroup/j").line == "room is being made for it on n1: it starts when pod/default/old has left"
