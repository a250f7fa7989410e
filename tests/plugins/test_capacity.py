"""capacity: queues borrow up to their limit, share by what they deserve, and give back what they do not."""

from __future__ import annotations

from typing import Any

import pytest
from scene import Thing, binds, evicted, opened, outcome, per_job, phases

from pumice.scheduler.eviction.candidate_nodes import EvictionCandidates
from pumice.scheduler.eviction.victims import victim_order
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.testing import Builder, QueueBuilder, cluster, node, pod, podgroup, priority_class, queue

FIRST = "priority, {name: gang, enableReclaimable: false}"
TIERS = (FIRST, "capacity, predicates")
TREE = (FIRST, "{name: capacity, enableHierarchy: true}, predicates")
RECLAIM = "enqueue, allocate, reclaim"
NODE = node("n").has(cpu=10, memory="100Gi", gpu=8)


def levels(count: int) -> tuple[str, ...]:
    return (FIRST, f"{{name: capacity, enableHierarchy: true, arguments: {{ancestorReclaimLevel: {count}}}}}, predicates")


# -- allocation


def test_a_queue_borrows_beyond_what_it_deserves_up_to_its_capability() -> None:
    made = cluster(NODE, queue("q").capability(cpu=6).deserves(cpu=2), podgroup("a").queue("q").admitted().pods(9, cpu=1))
    assert per_job(outcome(made, *TIERS)) == {"a": 6}


def test_a_closed_queue_has_no_room_for_anybody() -> None:
    made = cluster(NODE, queue("q").having("status", "state", value="Closed"), podgroup("a").queue("q").admitted().pods(1, cpu=1))
    with opened(made, *TIERS) as session:
        capacity, closed = session.plugin("capacity"), made.queues["q"]
        assert (capacity.queue_room(closed) < 0).all() and (capacity.preemptive_room(closed) < 0).all()


def test_a_queue_that_holds_what_it_deserves_of_all_that_it_asks_for_takes_nothing_from_others() -> None:
    jobs = podgroup("a").queue("q").admitted().pods(2, cpu=1), podgroup("b").queue("full").admitted().pods(2, cpu=1)
    runs = podgroup("c").queue("full").phase("Running"), pod("c").gang("c").cpu(1).on("n")
    none = podgroup("d").queue("none").admitted().pods(1, cpu=1)  # it deserves nothing, and holds no more
    made = cluster(NODE, queue("q").deserves(cpu=1), queue("full").deserves(memory=1), queue("none"), *jobs, *runs, *none)
    with opened(made, *TIERS) as session:
        capacity = session.plugin("capacity")
        assert (capacity.preemptive_room(made.queues["full"]) < 0).all() and (capacity.preemptive_room(made.queues["none"]) < 0).all()
        assert (capacity.preemptive_room(made.queues["q"]) >= 0).all()


@pytest.mark.parametrize("tiers", [TIERS, TREE])
def test_no_task_of_a_queue_may_go_that_holds_no_more_than_it_deserves(tiers: Any) -> None:
    def running(name: str, **amounts: Any) -> list[Builder]:
        return [podgroup(name).queue(name).phase("Running"), pod(name).gang(name).asks(**amounts).on("n")]

    fair = queue("fair").deserves(cpu=2), *running("fair", cpu=1), *running("none", memory="1Gi")
    greedy = queue("greedy").deserves(cpu=2), *running("greedy", cpu=3)
    lost = running("lost", cpu=1)
    made = cluster(NODE, queue("root"), queue("none"), *fair, *greedy, *lost, pod("stray").on("n"), pod("taker").cpu(1))
    with opened(made, *tiers) as session:

        def spares(*names: str) -> bool:
            return not session.evictable.unspared(
                "reclaimable", made.tasks["default/taker"], [made.tasks[f"default/{name}"] for name in names]
            )

        assert [spares(name) for name in ("fair", "none", "greedy", "stray", "lost")] == [True, False, False, True, True]
        assert not spares("fair", "greedy")
        taker, gone = made.tasks["default/taker"], [made.tasks[f"default/{name}"] for name in ("none", "greedy")]
        with session.statement() as statement:
            assert session.evictable.spared_rows("reclaimable", taker) is False
            statement.evict(gone[0], "test")
            assert session.evictable.spared_rows("reclaimable", taker) is False
            statement.evict(gone[1], "test")
            assert session.evictable.spared_rows("reclaimable", taker) is True  # no queue is left that holds what it does not deserve
        assert session.evictable.spared_rows("reclaimable", taker) is False


def test_a_node_of_which_no_task_may_go_is_not_asked_again_until_a_task_of_such_a_queue_moves() -> None:
    holds = podgroup("holds").queue("fair").phase("Running"), pod("holds").gang("holds").cpu(10).on("n")
    beyond = queue("third"), podgroup("third").queue("third").phase("Running"), pod("third").gang("third").cpu(1).on("m1")
    waits = [*podgroup("more").queue("fair").admitted().pods(1, cpu=1), *podgroup("taker").queue("other").admitted().pods(1, cpu=1)]
    made = cluster(
        NODE, [node(f"m{n}").cpu(1) for n in range(2)], queue("fair").deserves(cpu=10), queue("other").deserves(cpu=1), holds, waits, beyond
    )
    with opened(made, *TIERS) as session:
        taker, more = made.tasks["default/taker-0"], made.tasks["default/more-0"]
        candidates = EvictionCandidates(session, set(made.jobs.values()), lambda task: task.status == status.RUNNING, "reclaimable")
        row = session.nodes.rows["n"]
        assert candidates.unspared is not None and candidates.rows(taker)[row]
        candidates.unspared.ask(taker, row)
        assert not candidates.rows(taker)[row]
        with session.statement() as statement:
            statement.pipeline(more, session.nodes.rows["m0"])
            assert candidates.rows(taker)[row]
            candidates.unspared.ask(taker, row)
            assert candidates.rows(taker)[row]  # the queue holds more than it deserves now


def test_what_others_are_guaranteed_is_not_lent() -> None:
    made = cluster(NODE, queue("q"), queue("other").guarantees(cpu=3), podgroup("a").queue("q").admitted().pods(10, cpu=1))
    assert per_job(outcome(made, *TIERS)) == {"a": 7}


def test_the_limit_binds_only_what_is_asked_for() -> None:
    full = [
        queue("q").capability(cpu=2, memory="4Gi"),
        podgroup("r").queue("q").admitted(),
        pod("r").gang("r").on("n").asks(cpu=1, memory="8Gi"),
    ]
    made = cluster(
        NODE,
        full,
        podgroup("a").queue("q").admitted(),
        pod("a-cpu").gang("a").cpu(1),
        podgroup("b").queue("q").admitted(),
        pod("b-memory").gang("b").asks(cpu=1, memory="1Gi"),
    )
    assert sorted(binds(outcome(made, *TIERS))) == ["a-cpu"]


def test_the_emptier_queue_by_what_it_deserves_is_served_first() -> None:
    queues = [queue("a").deserves(cpu=8).created(1), queue("b").deserves(cpu=2).created(2)]
    made = cluster(NODE, queues, podgroup("a").queue("a").admitted().pods(10, cpu=1), podgroup("b").queue("b").admitted().pods(10, cpu=1))
    assert per_job(outcome(made, *TIERS)) == {"a": 8, "b": 2}


def test_a_queue_that_deserves_nothing_is_served_last_and_priority_goes_before_shares() -> None:
    queues = [queue("none").created(1), queue("full").deserves(cpu=1).created(2), queue("high").priority(5).created(3)]
    running = [podgroup("r").queue("full").admitted(), pod("r").gang("r").on("n").cpu(1)]
    with opened(cluster(NODE, queues, running, podgroup("none").queue("none").admitted()), *TIERS) as session:
        by_name = session.cluster.queues
        assert session.orders.queue_key(by_name["full"]) < session.orders.queue_key(by_name["none"])
    jobs = [each for name in ("none", "full", "high") for each in (*podgroup(name).queue(name).admitted().pods(6, cpu=1),)]
    assert per_job(outcome(cluster(NODE, queues, running, jobs), *TIERS)) == {"high": 6, "full": 1, "none": 2}


@pytest.mark.parametrize(("state", "placed"), [("Closed", []), ("Closing", ["p"]), ("Unknown", [])])
def test_queues_that_are_not_open_let_nobody_in_and_closing_ones_finish(state: str, placed: list[str]) -> None:
    made = cluster(
        NODE, queue("q").state(state), podgroup("a").queue("q").needs(cpu=1), podgroup("b").queue("q").admitted(), pod("p").gang("b").cpu(1)
    )
    result = outcome(made, *TIERS)
    assert (sorted(binds(result)), phases(result)["a"]) == (placed, "Pending")


def test_a_closing_queue_does_not_place_who_comes_late_even_if_he_reserves_nothing() -> None:
    made = cluster(NODE, queue("q").state("Closing"), podgroup("late").queue("q"), pod("p").gang("late").cpu(1))
    result = outcome(made, *TIERS)
    assert (sorted(binds(result)), phases(result)["late"]) == ([], "Pending")


# -- admission

ENQUEUE_ROWS: list[tuple[str, QueueBuilder, Thing | None, str]] = [
    ("fits", queue("q").capability(cpu=5), {"cpu": 3}, "Inqueue"),
    ("does not fit", queue("q").capability(cpu=5), {"cpu": "3001m"}, "Pending"),
    ("another dimension", queue("q").capability(cpu=1), {"memory": "1Gi"}, "Inqueue"),
    ("a dimension that no capability names is bound by the cluster", queue("q").capability(cpu=5), {"memory": "101Gi"}, "Pending"),
    ("a capability of no cpu is none", queue("q").capability(cpu=0), {"cpu": 8}, "Inqueue"),
    ("no minimum", queue("q").capability(cpu=1), None, "Inqueue"),
]


@pytest.mark.parametrize(("what", "limited", "needs", "phase"), ENQUEUE_ROWS, ids=[row[0] for row in ENQUEUE_ROWS])
def test_a_job_is_let_in_if_its_minimum_fits(what: str, limited: QueueBuilder, needs: Thing | None, phase: str) -> None:
    waiting = podgroup("a").queue("q").needs(**needs) if needs else podgroup("a").queue("q")
    made = cluster(
        NODE, limited, podgroup("r").queue("q").needs(cpu=2).admitted(), pod("r").gang("r").on("n").asks(cpu=2, memory="1Gi"), waiting
    )
    assert phases(outcome(made, *TIERS))["a"] == phase


def test_promises_count_and_what_runs_above_a_minimum_does_not() -> None:
    elastic = [*podgroup("r").queue("q").needs(cpu=1).phase("Running").pods(4, on="n", cpu=1)]
    waiting = [podgroup(name).queue("q").needs(cpu=4).created(number) for number, name in enumerate("abc")]
    made = cluster(NODE, queue("q").capability(cpu=9), elastic, waiting)
    result = outcome(made, *TIERS)
    assert [phases(result)[name] for name in "abc"] == ["Inqueue", "Inqueue", "Pending"]


def test_the_refusal_names_what_is_short() -> None:
    made = cluster(NODE, queue("q").capability(cpu=1, memory="1Gi"), podgroup("a").queue("q").needs(cpu=2, memory="2Gi"))
    with opened(made, *TIERS) as session:
        assert not session.job_enqueueable(made.jobs["default/a"])
        assert session.not_admitted["default/a"] == (
            "queue resource quota insufficient: insufficient cpu, memory. Queue q: 2 cpu asked for, 0 held or promised, 1 allowed; "
            "2Gi memory asked for, 0 held or promised, 1Gi allowed; it can never run within this limit"
        )


def test_a_job_without_minimum_is_welcome() -> None:
    made = cluster(NODE, queue("q").capability(cpu=1), podgroup("a").queue("q"))
    with opened(made, *TIERS) as session:
        assert session.job_enqueueable(made.jobs["default/a"])


@pytest.mark.parametrize("tiers", [TIERS, ("gang", "{name: capacity, enableHierarchy: true}")])
def test_it_tells_what_each_queue_deserves_and_may_hold(tiers: Any) -> None:
    queues = [queue("root").capability(cpu=10), queue("q").parent("root").capability(cpu=6).deserves(cpu=2)]
    with opened(cluster(NODE, queues, podgroup("a").queue("q").admitted()), *tiers) as session:
        deserved, limit = session.plugin("capacity").entitlements()["q"]
    assert (deserved[0], limit[0]) == (2000, 6000)


# -- trees


def dept(name: str, parent: str = "root") -> QueueBuilder:
    return queue(name).parent(parent)


def test_the_limits_of_all_ancestors_bind() -> None:
    tree = [dept("top").capability(cpu=7), dept("mid", "top").capability(cpu=5), dept("x", "mid"), dept("y", "mid"), dept("z", "top")]
    made = cluster(NODE, tree, [each for q in "xyz" for each in (*podgroup(q).queue(q).admitted().pods(6, cpu=1),)])
    counts = per_job(outcome(made, *TREE))
    assert counts["x"] + counts.get("y", 0) <= 5
    assert sum(counts.values()) == 7


def test_a_guarantee_of_a_sibling_is_kept_free() -> None:
    tree = [dept("top").capability(cpu=6), dept("x", "top"), dept("y", "top").guarantees(cpu=2)]
    assert per_job(outcome(cluster(NODE, tree, podgroup("x").queue("x").admitted().pods(9, cpu=1)), *TREE)) == {"x": 4}


def test_the_root_bounds_nothing_unless_it_says_so() -> None:
    def made(*root: QueueBuilder) -> Cluster:
        return cluster(NODE, root, dept("x"), podgroup("a").queue("x").needs(cpu=99))

    assert phases(outcome(made(), *TREE)) == {"a": "Inqueue"}
    assert phases(outcome(made(queue("root").capability(cpu=9)), *TREE)) == {"a": "Pending"}


def test_admission_counts_for_all_levels() -> None:
    tree = [dept("top").capability(cpu=5), dept("x", "top"), dept("y", "top")]
    waiting = [podgroup(name).queue(name).needs(cpu=3).created(number) for number, name in enumerate("xy")]
    assert sorted(phases(outcome(cluster(NODE, tree, waiting), *TREE)).values()) == ["Inqueue", "Pending"]


def test_branches_are_compared_where_they_part_by_live_shares() -> None:
    tree = [dept("a").deserves(cpu=5), dept("b").deserves(cpu=5).created(1)]
    tree += [
        dept("a1", "a").deserves(cpu=5).created(2),
        dept("b1", "b").deserves(cpu=1).created(3),
        dept("b2", "b").deserves(cpu=4).created(4),
    ]
    jobs = [each for q in ("a1", "b1", "b2") for each in (*podgroup(q).queue(q).admitted().pods(9, cpu=1),)]
    assert per_job(outcome(cluster(NODE, tree, jobs), *TREE)) == {"a1": 5, "b1": 1, "b2": 4}


@pytest.mark.parametrize(("cpu", "phase"), [(3, "Inqueue"), (4, "Pending")])
def test_what_branches_hold_and_promise_counts_above_them(cpu: int, phase: str) -> None:
    """Below top, of 8 cpus: x holds 3 and may still ask for 2; y holds 2 more than its minimum, which keeps nobody out."""
    tree = [dept("top").capability(cpu=8), *(dept(name, "top") for name in "xyz")]
    running = [
        *podgroup("x").queue("x").needs(cpu=5).admitted().pods(3, on="n", cpu=1),
        *podgroup("y").queue("y").needs(cpu=0).admitted().pods(2, on="n", cpu=1),
    ]
    made = cluster(NODE, tree, running, podgroup("z").queue("z").needs(cpu=cpu))
    assert phases(outcome(made, *TREE))["z"] == phase


@pytest.mark.parametrize(("tiers", "top"), [(TIERS, ()), (TREE, (queue("root").capability(cpu=10),))])
@pytest.mark.parametrize(("cpu", "phase"), [(7, "Inqueue"), (8, "Pending")])
def test_a_queue_may_hold_its_own_guarantee_and_what_is_guaranteed_to_nobody(tiers: Any, top: Any, cpu: int, phase: str) -> None:
    queues = [*top, dept("x").guarantees(cpu=4), dept("y").guarantees(cpu=3)]
    made = cluster(NODE, queues, podgroup("a").queue("x").needs(cpu=cpu))
    assert phases(outcome(made, *tiers)) == {"a": phase}


def test_how_full_a_leaf_is_matters_only_among_its_siblings() -> None:
    tree = [dept("a").deserves(cpu=10), dept("b").deserves(cpu=10).created(1)]
    tree += [dept("a1", "a").deserves(cpu=1).created(2), dept("b1", "b").deserves(cpu=10).created(3)]
    jobs = [each for q in ("a1", "b1") for each in (*podgroup(q).queue(q).admitted().pods(9, cpu=1),)]
    assert per_job(outcome(cluster(NODE, tree, jobs), *TREE)) == {"a1": 5, "b1": 5}


def test_priority_comes_before_shares_in_a_tree() -> None:
    tree = [dept("a").deserves(cpu=9), dept("b").priority(1)]
    jobs = [each for q in "ab" for each in (*podgroup(q).queue(q).admitted().pods(10, cpu=1),)]
    assert per_job(outcome(cluster(NODE, tree, jobs), *TREE)) == {"b": 10}


def test_leaves_come_before_inner_queues() -> None:
    made = cluster(NODE, dept("top"), dept("x", "top"), dept("fine").created(9))
    with opened(made, *TREE) as session:
        assert session.orders.queue_before(made.queues["fine"], made.queues["top"])
        assert not session.orders.queue_before(made.queues["top"], made.queues["fine"])


UNSOUND: list[tuple[str, list[Builder], set[str]]] = [
    (
        "a job in an inner queue stops its subtree",
        [dept("top"), dept("x", "top"), podgroup("bad").queue("top").admitted(), dept("fine")],
        {"fine"},
    ),
    (
        "a finished job there does not",
        [dept("top"), dept("x", "top"), podgroup("old").queue("top").phase("Completed"), dept("fine")],
        {"fine", "x"},
    ),
    ("a missing parent stops what is below", [dept("top", "nowhere"), dept("x", "top"), dept("fine")], {"fine"}),
    ("a circle stops its members", [dept("x", "y"), dept("y", "x"), dept("fine")], {"fine"}),
    ("jobs in the root stop everything", [dept("x"), podgroup("bad").queue("root").admitted(), dept("fine")], set()),
]


@pytest.mark.parametrize(("what", "tree", "served"), UNSOUND, ids=[row[0] for row in UNSOUND])
def test_only_what_is_wrong_waits(what: str, tree: list[Builder], served: set[str]) -> None:
    names = ["fine", "x"]
    made = cluster(
        NODE,
        tree,
        [each for q in names for each in (podgroup(q).queue(q).admitted(), pod(f"{q}-0").gang(q).cpu(1), podgroup(f"{q}-new").queue(q))],
    )
    result = outcome(made, *TREE)
    assert set(per_job(result)) == served


def test_unsound_queues_neither_take_nor_give() -> None:
    tree = [dept("top", "nowhere"), dept("x", "top"), dept("fine").deserves(cpu=10)]
    made = cluster(
        NODE,
        tree,
        podgroup("x", 0).queue("x").admitted().pods(10, on="n", cpu=1),
        podgroup("f").queue("fine").admitted(),
        pod("f").gang("f").cpu(1),
        podgroup("w").queue("x").admitted(),
        pod("w").gang("w"),
    )
    with opened(made, *TREE) as session:
        queues, tasks = made.queues, list(made.jobs["default/x"].tasks.values())
        assert session.evictable.permitted("reclaimable", made.tasks["default/f"], tasks) == []
        assert session.evictable.permitted("reclaimable", made.tasks["default/w"], tasks) == []
        assert not session.preemptive(queues["x"], [made.tasks["default/w"]])
        assert not session.job_enqueueable(made.jobs["default/w"])


# -- reclaim


def reclaiming(loser: QueueBuilder, taker: QueueBuilder) -> list[str]:
    """Who goes for one pod of a queue without anything, when another queue holds the whole node."""
    running = podgroup("l", 0).queue("loser").phase("Running").pods(10, on="n", cpu=1, memory="1Gi")
    waiting = [podgroup("t").queue("taker").admitted(), pod("t").gang("t").asks(cpu=1, memory="1Gi")]
    return evicted(outcome(cluster(NODE, loser.created(1), running, taker.created(2), waiting), *TIERS, actions=RECLAIM))


RECLAIM_ROWS: list[tuple[str, QueueBuilder, QueueBuilder, int]] = [
    ("above deserved gives", queue("loser").deserves(cpu=9), queue("taker").deserves(cpu=5), 1),
    ("at deserved keeps", queue("loser").deserves(cpu=10), queue("taker").deserves(cpu=5), 0),
    ("above in one dimension gives", queue("loser").deserves(cpu=10, memory="9Gi"), queue("taker").deserves(cpu=5), 1),
    ("what is not deserved at all goes", queue("loser").deserves(**{"nvidia.com/gpu": 9}), queue("taker").deserves(cpu=5), 1),
    ("what is guaranteed to another is not deserved", queue("loser").deserves(cpu=10), queue("taker").guarantees(cpu=10), 1),
    ("a guarantee is kept", queue("loser").deserves(cpu=1).guarantees(cpu=10), queue("taker").deserves(cpu=5), 0),
    ("a guarantee is kept though", queue("loser").deserves(memory="1Gi").guarantees(cpu=10), queue("taker").deserves(cpu=5), 0),
    ("one that deserves just that takes it", queue("loser").deserves(cpu=1), queue("taker").deserves(cpu=1), 1),
    ("one that deserves less takes nothing", queue("loser").deserves(cpu=1), queue("taker").deserves(cpu="500m"), 0),
    ("one that deserves nothing takes nothing", queue("loser").deserves(cpu=1), queue("taker"), 0),
    ("one whose limit is short takes nothing", queue("loser").deserves(cpu=1), queue("taker").capability(cpu="500m").deserves(cpu=5), 0),
    ("deserving one of the dimensions is enough", queue("loser").deserves(cpu=1), queue("taker").deserves(memory="5Gi"), 1),
    ("not reclaimable", queue("loser").deserves(cpu=1).having("spec", "reclaimable", value=False), queue("taker").deserves(cpu=5), 0),
]


@pytest.mark.parametrize(("what", "loser", "taker", "gone"), RECLAIM_ROWS, ids=[row[0] for row in RECLAIM_ROWS])
def test_who_gives_back(what: str, loser: QueueBuilder, taker: QueueBuilder, gone: int) -> None:
    assert len(reclaiming(loser, taker)) == gone


def test_deserving_none_of_a_resource_is_not_the_same_as_saying_nothing_of_it() -> None:
    def gone(deserved: Thing) -> int:
        nodes = node("n").has(cpu=10, memory="100Gi", gpu=4)
        loser = [queue("loser").deserves(**deserved), *podgroup("l", 0).queue("loser").admitted().pods(4, on="n", cpu=1, gpu=1)]
        taker = [queue("taker").deserves(gpu=4), podgroup("t").queue("taker").admitted(), pod("t").gang("t").asks(cpu=1, gpu=1)]
        return len(evicted(outcome(cluster(nodes, loser, taker), *TIERS, actions=RECLAIM)))

    assert gone({"cpu": 10, "gpu": 0}) == 1
    assert gone({"cpu": 10}) == 0


@pytest.mark.parametrize(("lender", "gone"), [("top", ["l-3"]), ("other", [])])
def test_where_the_parent_is_full_a_sister_gives_though_nodes_have_room_and_nobody_else_does(lender: str, gone: list[str]) -> None:
    full = [dept("filler", "top").deserves(cpu=4), *podgroup("f", 4).queue("filler").admitted().pods(4, on="n", cpu=1)]
    lent = [dept("lender", lender).deserves(cpu=2), *podgroup("l", 0).queue("lender").admitted().pods(4, on="n", cpu=1)]
    taker = [dept("taker", "top").deserves(cpu=2), podgroup("t").queue("taker").admitted(), pod("t").gang("t").cpu(1)]
    tree = [dept("top").capability(cpu=4), dept("other").deserves(cpu=1)]
    made = cluster(NODE, tree, lent, taker, full if lender == "other" else [])
    assert evicted(outcome(made, *TREE, actions=RECLAIM)) == gone


def test_victims_share_a_dimension_with_the_reclaimer() -> None:
    loser = [
        queue("loser"),
        podgroup("l", 0).queue("loser").admitted(),
        pod("l-0").gang("l").on("n").memory("99Gi"),
        pod("l-1").gang("l").on("n").cpu(10),
    ]
    taker = [queue("taker").deserves(cpu=5), podgroup("t").queue("taker").admitted(), pod("t").gang("t").cpu(1)]
    with opened(cluster(NODE, loser, taker), *TIERS) as session:
        tasks = session.cluster.tasks
        named = session.evictable.permitted("reclaimable", tasks["default/t"], [tasks["default/l-0"], tasks["default/l-1"]])
    assert [task.name for task in named] == ["l-1"]


def test_a_queue_gives_only_until_it_has_what_it_deserves() -> None:
    loser = [queue("loser").deserves(cpu=8), *podgroup("l", 0).queue("loser").admitted().pods(10, on="n", cpu=1)]
    taker = [queue("taker").deserves(cpu=9), *podgroup("t", 3).queue("taker").admitted().pods(3, cpu=1)]
    assert evicted(outcome(cluster(NODE, loser, taker), *TIERS, actions=RECLAIM)) == []
    taker = [queue("taker").deserves(cpu=9), *podgroup("t", 2).queue("taker").admitted().pods(2, cpu=1)]
    assert len(evicted(outcome(cluster(NODE, loser, taker), *TIERS, actions=RECLAIM))) == 2


def forest(deserved: dict[str, Any]) -> list[QueueBuilder]:
    """root > a > (a1, a2), root > b > b1, root > c; each deserves so many cpus."""
    parents = {"a": "root", "b": "root", "c": "root", "a1": "a", "a2": "a", "b1": "b"}
    return [dept(name, parent).deserves(**{"cpu": deserved[name]} if name in deserved else {}) for name, parent in parents.items()]


ANCESTOR_ROWS: list[tuple[str, int, dict[str, Any], str, bool]] = [
    ("without levels only the queue itself counts", 0, {"a": 10, "a1": 1, "b": 5, "b1": 5}, "b1", True),
    ("an ancestor within its deserved keeps it", 1, {"a": 10, "a1": 1, "b": 5, "b1": 5}, "b1", False),
    ("an ancestor above its deserved gives", 1, {"a": 9, "a1": 1, "b": 5, "b1": 5}, "b1", True),
    ("an ancestor that deserves none of it gives", 1, {"a1": 1, "b": 5, "b1": 5}, "b1", True),
    ("a common ancestor is not asked", 1, {"a": 10, "a1": 1, "a2": 5}, "a2", True),
    ("an ancestor's deserved lets a queue take", 1, {"a": 9, "a1": 1, "b": 5}, "b1", True),
    ("without levels it does not", 0, {"a": 9, "a1": 1, "b": 5}, "b1", False),
    ("nor with less than none", -1, {"a": 9, "a1": 1, "b": 5}, "b1", False),
    ("a queue right below the root has no ancestors to compare", 1, {"a": 9, "a1": 1, "c": 5}, "c", True),
    ("nor is it spared an ancestor that keeps", 1, {"a": 10, "a1": 1, "c": 5}, "c", False),
    ("kin that deserves nothing does not take the undeserved", 1, {"a": 99}, "a2", False),
    ("strangers do", 1, {"b": 5}, "b1", True),
]


@pytest.mark.parametrize(("what", "count", "deserved", "taker", "gives"), ANCESTOR_ROWS, ids=[row[0] for row in ANCESTOR_ROWS])
def test_levels_of_ancestors(what: str, count: int, deserved: dict[str, Any], taker: str, gives: bool) -> None:
    running = [*podgroup("l", 0).queue("a1").admitted().pods(10, on="n", cpu=1)]
    made = cluster(NODE, forest(deserved), running, podgroup("t").queue(taker).admitted(), pod("t").gang("t").cpu(1))
    assert bool(evicted(outcome(made, *levels(count), actions=RECLAIM))) == gives


def test_unless_it_is_said_otherwise_no_ancestors_are_compared() -> None:
    running = [*podgroup("l", 0).queue("a1").admitted().pods(10, on="n", cpu=1)]
    made = cluster(NODE, forest({"a": 10, "a1": 1, "b1": 5}), running, podgroup("t").queue("b1").admitted(), pod("t").gang("t").cpu(1))
    assert len(evicted(outcome(made, *TREE, actions=RECLAIM))) == 1


def test_the_nearest_relatives_give_first() -> None:
    made = cluster(
        NODE,
        forest({}),
        [each for q in ("a1", "b1") for each in (podgroup(q, 0).queue(q).admitted(), pod(f"{q}-0").gang(q).on("n").cpu(1))],
        podgroup("t").queue("a2").admitted(),
    )
    with opened(made, *TREE) as session:
        made_of = made.tasks
        queues = made.queues
        assert session.orders.victim_queue_before(queues["a1"], queues["b1"], queues["a2"])
        assert not session.orders.victim_queue_before(queues["b1"], queues["a1"], queues["a2"])
        assert len(victim_order(session, made_of["default/a1-0"], made_of.values())) == 2


def test_what_goes_is_booked_at_once_at_every_level() -> None:
    """Both gangs may take from a1; what the first took counts for a and a1 when the second asks."""
    tree = forest({"a": 8, "a1": 8, "b": 9, "b1": 9})
    running = [*podgroup("l", 0).queue("a1").admitted().pods(10, on="n", cpu=1)]
    made = cluster(
        NODE, tree, running, [each for name in ("t", "u") for each in (*podgroup(name, 2).queue("b1").admitted().pods(2, cpu=1),)]
    )
    assert len(evicted(outcome(made, *levels(1), actions=RECLAIM))) == 2


class Context:
    """What the gang actions tell plugins."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


def test_gangs_take_from_other_queues_what_those_do_not_deserve_and_anything_from_their_own() -> None:
    queues = [queue("loser").deserves(cpu=8), queue("kept").deserves(cpu=1).guarantees(cpu=1)]
    running = [
        *podgroup("l", 0).queue("loser").admitted().pods(9, on="n", cpu=1),
        podgroup("k").queue("kept").admitted(),
        pod("k-0").gang("k").on("n").cpu(1),
        pod("stray").gang("none").on("n").cpu(1),
    ]
    made = cluster(node("n").cpu(20), queues, running, priority_class("high", 1))
    with opened(made, *TIERS) as session:
        plugin, tasks = session.plugin("capacity"), list(made.tasks.values())
        assert len(plugin.unified_evictable(Context("gangreclaim"), tasks)) == 1
        assert plugin.unified_evictable(Context("gangpreempt"), tasks) == tasks
