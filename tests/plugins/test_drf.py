"""drf: the smaller dominant share first, among jobs, and with a hierarchy among queues level by level."""

from __future__ import annotations

import numpy as np
import pytest
from scene import Thing, evicted, opened, outcome, per_job

from pumice.scheduler.model.cluster import Cluster
from pumice.testing import Builder, NodeBuilder, PodBuilder, QueueBuilder, cluster, node, pod, podgroup, queue

PLAIN = ("gang", "drf, predicates")
TREE = ("gang", "{name: drf, enableHierarchy: true}, predicates")
CPU, MEMORY, BOTH = {"cpu": 1}, {"memory": "1G"}, {"cpu": 1, "memory": "1G"}


def test_jobs_alternate_by_their_greatest_share_of_any_resource() -> None:
    made = cluster(
        node("n").has(cpu=9, memory="18G"),
        podgroup("a").admitted().pods(9, cpu=1, memory="4G"),
        podgroup("b").admitted().pods(9, cpu=3, memory="1G"),
    )
    assert per_job(outcome(made, *PLAIN)) == {"a": 3, "b": 2}


@pytest.mark.parametrize(("held", "goes"), [(4, True), (3, True), (2, False)])
def test_who_would_still_have_no_less_may_be_preempted(held: int, goes: bool) -> None:
    rich = [node("n").cpu(held), *podgroup("rich", 0).admitted().pods(held, on="n", cpu=1)]
    poor = [node("m").cpu(1), podgroup("poor").admitted(), pod("p").gang("poor").on("m").cpu(1), *pod("poor").gang("poor").cpu(1).times(1)]
    made = cluster(rich, poor, podgroup("waits").admitted().pods(1, cpu=1))
    with opened(made, "drf") as session:
        others = [t for t in made.tasks.values() if t.job and t.job.name == "rich"]
        victims = session.evictable.permitted("preemptable", made.tasks["default/poor-0"], others)
        assert bool(session.evictable.unspared("preemptable", made.tasks["default/poor-0"], others)) == goes
        spared = session.evictable.spared_rows("preemptable", made.tasks["default/poor-0"])
        assert isinstance(spared, np.ndarray) and spared.tolist() == [not goes, True]  # on the other node nobody has as much
        assert session.evictable.spared_rows("reclaimable", made.tasks["default/poor-0"]) is True  # no plugin lets anybody go by this hook
    assert bool(victims) == goes


def test_a_pod_of_no_job_is_no_victim() -> None:
    made = cluster(node("n").cpu(4), pod("stray").on("n").cpu(1), podgroup("a").admitted(), pod("a").gang("a").cpu(1))
    with opened(made, "drf") as session:
        assert session.evictable.permitted("preemptable", made.tasks["default/a"], [made.tasks["default/stray"]]) == []


# -- hierarchy


def branch(name: str, path: str = "", weights: str = "") -> QueueBuilder:
    annotations = {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights} if path else {}
    return queue(name).annotations(annotations)


def served(nodes: list[NodeBuilder], *branches: tuple[str, str, str, Thing, int]) -> dict[str, int]:
    """Binds by job; a branch is its name, path, weights, the request of its pods and their number."""
    things = [each for name, path, weights, asked, count in branches for each in _branch(name, path, weights, asked, count)]
    return per_job(outcome(cluster(nodes, things), *TREE))


def _branch(name: str, path: str, weights: str, asked: Thing, count: int) -> list[Builder]:
    return [branch(name, path, weights), *podgroup(name).queue(name).admitted().pods(count, **asked)]


def test_hungry_siblings_are_scaled_to_the_least_of_them() -> None:
    """Five each but for the last pod: queues that wait learn of what their sisters got only when one of them comes or goes."""
    got = served(
        [node("n").has(cpu=10, memory="10G")],
        ("sci", "root/sci", "100/50", BOTH, 10),
        ("dev", "root/eng/dev", "100/50/50", CPU, 10),
        ("prod", "root/eng/prod", "100/50/50", MEMORY, 10),
    )
    assert got == {"sci": 4, "dev": 6, "prod": 6}


def test_a_saturated_branch_holds_nobody_back() -> None:
    got = served(
        [node("n").has(cpu=30, memory="30G")],
        ("pg1", "root/pg1", "100/25", CPU, 30),
        ("pg2", "root/pg2", "100/25", CPU, 30),
        ("pg31", "root/pg3/pg31", "100/25/50", CPU, 30),
        ("pg32", "root/pg3/pg32", "100/25/50", MEMORY, 30),
        ("pg4", "root/pg4", "100/25", MEMORY, 30),
    )
    assert got == {"pg1": 10, "pg2": 10, "pg31": 10, "pg32": 15, "pg4": 15}


WEIGHT_ROWS: list[tuple[str, str, str, dict[str, int]]] = [
    ("by weight", "1/1", "1/3", {"a": 3, "b": 9}),
    ("missing weights are 1", "1", "1/3", {"a": 3, "b": 9}),
    ("unreadable weights are 1", "1/x", "1/3", {"a": 3, "b": 9}),
    ("nan is 1", "1/nan", "1/3", {"a": 3, "b": 9}),
    ("weights below 1 are 1", "1/0.1", "1/3", {"a": 3, "b": 9}),
]


@pytest.mark.parametrize(("what", "a", "b", "expected"), WEIGHT_ROWS, ids=[row[0] for row in WEIGHT_ROWS])
def test_weights(what: str, a: str, b: str, expected: dict[str, int]) -> None:
    assert served([node("n").cpu(12)], ("a", "root/a", a, CPU, 12), ("b", "root/b", b, CPU, 12)) == expected


def test_queues_without_a_path_are_served_by_age() -> None:
    made = cluster(
        node("n").cpu(4),
        [branch("a").created(2), branch("b").created(1)],
        [x for q in "ab" for x in (*podgroup(q).queue(q).admitted().pods(4, cpu=1),)],
    )
    assert per_job(outcome(made, *TREE)) == {"b": 4}


@pytest.mark.parametrize(("tiers", "first"), [(("proportion", TREE[1]), "b"), ((TREE[1], "proportion"), "a")])
def test_the_first_tier_that_tells_queues_apart_decides(tiers: tuple[str, ...], first: str) -> None:
    """b is more important to proportion; a holds less in the tree."""
    made = cluster(
        [node("n").cpu(9), branch("a", "root/a", "1/1"), *podgroup("a").queue("a").admitted().pods(4, cpu=1)],
        [
            branch("b", "root/b", "1/1").priority(5),
            podgroup("b").queue("b").admitted(),
            pod("b").gang("b").on("n").cpu(1),
            *pod("b").gang("b").cpu(1).times(4),
        ],
    )
    with opened(made, *tiers) as session:
        in_order = session.orders.in_queue_order([made.queues["a"], made.queues["b"]])
    assert in_order[0].name == first


def test_finished_jobs_do_not_make_a_queue_hungry() -> None:
    """b has all it asks for, so a comes first although it holds more; an unfinished job without pods makes b hungry."""

    def order(phase: str) -> bool:
        a = [branch("a", "root/a", "1/1"), *podgroup("a").queue("a").admitted().pods(4, on="n", cpu=1), pod("next").gang("a").cpu(1)]
        b = [
            branch("b", "root/b", "1/1"),
            podgroup("b").queue("b").admitted(),
            pod("b").gang("b").on("n").cpu(1),
            podgroup("b2").queue("b").phase(phase),
        ]
        made = cluster(node("n").cpu(9), a, b)
        with opened(made, *TREE) as session:
            return session.orders.queue_before(made.queues["a"], made.queues["b"])

    assert order("Completed")
    assert not order("Pending")


@pytest.mark.parametrize("also", [pod("over").phase("Succeeded"), pod("over").on("n").phase("Failed")])
def test_pods_that_have_finished_count_among_what_a_job_asks_for(also: PodBuilder) -> None:
    """b holds all that its other pod asks for, but not all that both did: it is hungry, and before a, which holds more."""
    a = [branch("a", "root/a", "1/1"), *podgroup("a").queue("a").admitted().pods(4, on="n", cpu=1), pod("next").gang("a").cpu(1)]
    b = [branch("b", "root/b", "1/1"), podgroup("b").queue("b").admitted(), pod("b").gang("b").on("n").cpu(1), also.gang("b").cpu(1)]
    made = cluster(node("n").cpu(9), a, b)
    with opened(made, *TREE) as session:
        assert session.orders.queue_before(made.queues["b"], made.queues["a"])


def test_room_is_reclaimed_for_the_needier_branch_until_it_is_no_longer_needier() -> None:
    def gone(wanted: int) -> int:
        running = [branch("a", "root/a", "1/1"), *podgroup("a", 0).queue("a").admitted().pods(6, on="n", cpu=1)]
        taker = [branch("b", "root/b", "1/1"), *podgroup("b", wanted).queue("b").admitted().pods(wanted, cpu=1)]
        tiers = ("{name: gang, enableReclaimable: false}", "{name: drf, enableHierarchy: true}, predicates")
        return len(evicted(outcome(cluster(node("n").cpu(6), running, taker), *tiers, actions="reclaim")))

    assert [gone(wanted) for wanted in (1, 2, 3)] == [1, 2, 0]


def test_asking_for_victims_leaves_the_shares_as_they_were() -> None:
    running = [branch("a", "root/a", "1/1"), *podgroup("a").queue("a").admitted().pods(6, on="n", cpu=1), pod("stray").on("n").cpu(1)]
    made: Cluster = cluster(
        node("n").cpu(6), running, branch("b", "root/b", "1/1"), podgroup("b").queue("b").admitted(), pod("b").gang("b").cpu(1)
    )
    with opened(made, "{name: drf, enableHierarchy: true}") as session:
        tree = session.plugin("drf").tree
        assert session.orders.queue_before(made.queues["b"], made.queues["a"])
        before = [(node.share, node.saturated) for node in tree.root.children.values()]
        existing = [task for task in made.tasks.values() if task.node >= 0]
        named = session.evictable.permitted("reclaimable", made.tasks["default/b"], existing)
        assert session.evictable.unspared("reclaimable", made.tasks["default/b"], existing) == existing
        assert session.orders.queue_before(made.queues["b"], made.queues["a"])
        assert [(node.share, node.saturated) for node in tree.root.children.values()] == before
    assert [task.name for task in named] == [f"a-{number}" for number in range(4)]


def test_the_tree_is_grown_when_queues_are_compared_and_not_before() -> None:
    made = cluster(node("n").cpu(6), branch("a", "root/a", "1/1"), podgroup("a").queue("a").admitted(), pod("a").gang("a").cpu(3))
    with opened(made, "{name: drf, enableHierarchy: true}") as session, session.statement() as statement:
        statement.allocate(made.tasks["default/a"], 0)
        statement.rollback()
        statement.allocate(made.tasks["default/a"], 0)
        tree = session.plugin("drf").tree
        tree.compare(made.queues["a"], made.queues["a"])
        assert tree.root.share == 0.5
