"""capacity: queues borrow up to their limit, share by what they deserve, and give back what they do not."""

from __future__ import annotations

from typing import Any

import pytest
from queued import bound, cluster, evicted, job, node, opened, outcome, per_job, phases, pod, pods, priority_class, queue
from scene import Thing

from pumice.scheduler.eviction.victims import victim_order

FIRST = "priority, {name: gang, enableReclaimable: false}"
TIERS = (FIRST, "capacity, predicates")
TREE = (FIRST, "{name: capacity, enableHierarchy: true}, predicates")
RECLAIM = "enqueue, allocate, reclaim"
NODE = node("n", cpu=10, memory="100Gi", gpu=8)


def levels(count: int) -> tuple[str, ...]:
    return (FIRST, f"{{name: capacity, enableHierarchy: true, arguments: {{ancestorReclaimLevel: {count}}}}}, predicates")


# -- allocation


def test_a_queue_borrows_beyond_what_it_deserves_up_to_its_capability() -> None:
    made = cluster(NODE, queue("q", deserved={"cpu": 2}, capability={"cpu": 6}), job("a", "q"), pods("a", 9, cpu=1))
    assert per_job(outcome(made, *TIERS)) == {"a": 6}


def test_what_others_are_guaranteed_is_not_lent() -> None:
    made = cluster(NODE, queue("q"), queue("other", guarantee={"cpu": 3}), job("a", "q"), pods("a", 10, cpu=1))
    assert per_job(outcome(made, *TIERS)) == {"a": 7}


def test_the_limit_binds_only_what_is_asked_for() -> None:
    full = [queue("q", capability={"cpu": 2, "memory": "4Gi"}), job("r", "q"), pod("r", "r", "n", cpu=1, memory="8Gi")]
    made = cluster(NODE, full, job("a", "q"), pod("a-cpu", "a", cpu=1), job("b", "q"), pod("b-memory", "b", cpu=1, memory="1Gi"))
    assert bound(outcome(made, *TIERS)) == ["a-cpu"]


def test_the_emptier_queue_by_what_it_deserves_is_served_first() -> None:
    queues = [queue("a", 1, deserved={"cpu": 8}), queue("b", 2, deserved={"cpu": 2})]
    made = cluster(NODE, queues, job("a", "a"), pods("a", 10, cpu=1), job("b", "b"), pods("b", 10, cpu=1))
    assert per_job(outcome(made, *TIERS)) == {"a": 8, "b": 2}


def test_a_queue_that_deserves_nothing_is_served_last_and_priority_goes_before_shares() -> None:
    queues = [queue("none", 1), queue("full", 2, deserved={"cpu": 1}), queue("high", 3, priority=5)]
    running = [job("r", "full"), pod("r", "r", "n", cpu=1)]
    with opened(cluster(NODE, queues, running, job("none", "none")), *TIERS) as session:
        by_name = session.cluster.queues
        assert session.queue_key(by_name["full"]) < session.queue_key(by_name["none"])
    jobs = [each for name in ("none", "full", "high") for each in (job(name, name), *pods(name, 6, cpu=1))]
    assert per_job(outcome(cluster(NODE, queues, running, jobs), *TIERS)) == {"high": 6, "full": 1, "none": 2}


@pytest.mark.parametrize(("state", "placed"), [("Closed", []), ("Closing", ["p"]), ("Unknown", [])])
def test_queues_that_are_not_open_let_nobody_in_and_closing_ones_finish(state: str, placed: list[str]) -> None:
    made = cluster(NODE, queue("q", state=state), job("a", "q", phase="Pending", needs={"cpu": 1}), job("b", "q"), pod("p", "b", cpu=1))
    result = outcome(made, *TIERS)
    assert (bound(result), phases(result)["a"]) == (placed, "Pending")


def test_a_closing_queue_does_not_place_who_comes_late_even_if_he_reserves_nothing() -> None:
    made = cluster(NODE, queue("q", state="Closing"), job("late", "q", phase="Pending"), pod("p", "late", cpu=1))
    result = outcome(made, *TIERS)
    assert (bound(result), phases(result)["late"]) == ([], "Pending")


# -- admission

ENQUEUE_ROWS: list[tuple[str, Thing, Thing | None, str]] = [
    ("fits", {"capability": {"cpu": 5}}, {"cpu": 3}, "Inqueue"),
    ("does not fit", {"capability": {"cpu": 5}}, {"cpu": "3001m"}, "Pending"),
    ("another dimension", {"capability": {"cpu": 1}}, {"memory": "1Gi"}, "Inqueue"),
    ("a dimension that no capability names is bound by the cluster", {"capability": {"cpu": 5}}, {"memory": "101Gi"}, "Pending"),
    ("a capability of no cpu is none", {"capability": {"cpu": 0}}, {"cpu": 8}, "Inqueue"),
    ("no minimum", {"capability": {"cpu": 1}}, None, "Inqueue"),
]


@pytest.mark.parametrize(("what", "spec", "needs", "phase"), ENQUEUE_ROWS, ids=[row[0] for row in ENQUEUE_ROWS])
def test_a_job_is_let_in_if_its_minimum_fits(what: str, spec: Thing, needs: Thing | None, phase: str) -> None:
    waiting = job("a", "q", phase="Pending", **({"needs": needs} if needs else {}))
    made = cluster(NODE, queue("q", **spec), job("r", "q", needs={"cpu": 2}), pod("r", "r", "n", cpu=2, memory="1Gi"), waiting)
    assert phases(outcome(made, *TIERS))["a"] == phase


def test_promises_count_and_what_runs_above_a_minimum_does_not() -> None:
    elastic = [job("r", "q", phase="Running", needs={"cpu": 1}), *pods("r", 4, "n", cpu=1)]
    waiting = [job(name, "q", number, phase="Pending", needs={"cpu": 4}) for number, name in enumerate("abc")]
    made = cluster(NODE, queue("q", capability={"cpu": 9}), elastic, waiting)
    result = outcome(made, *TIERS)
    assert [phases(result)[name] for name in "abc"] == ["Inqueue", "Inqueue", "Pending"]


def test_the_refusal_names_what_is_short() -> None:
    made = cluster(
        NODE, queue("q", capability={"cpu": 1, "memory": "1Gi"}), job("a", "q", phase="Pending", needs={"cpu": 2, "memory": "2Gi"})
    )
    with opened(made, *TIERS) as session:
        assert not session.job_enqueueable(made.jobs["default/a"])
        assert session.not_admitted["default/a"] == (
            "queue resource quota insufficient: insufficient cpu, memory. Queue q: 2 cpu asked for, 0 held or promised, 1 allowed; "
            "2Gi memory asked for, 0 held or promised, 1Gi allowed; it can never run within this limit"
        )


def test_a_job_without_minimum_is_welcome() -> None:
    made = cluster(NODE, queue("q", capability={"cpu": 1}), job("a", "q", phase="Pending"))
    with opened(made, *TIERS) as session:
        assert session.job_enqueueable(made.jobs["default/a"])


@pytest.mark.parametrize("tiers", [TIERS, ("gang", "{name: capacity, enableHierarchy: true}")])
def test_it_tells_what_each_queue_deserves_and_may_hold(tiers: Any) -> None:
    queues = [queue("root", capability={"cpu": 10}), queue("q", parent="root", deserved={"cpu": 2}, capability={"cpu": 6})]
    with opened(cluster(NODE, queues, job("a", "q")), *tiers) as session:
        deserved, limit = session.plugin("capacity").entitlements()["q"]
    assert (deserved[0], limit[0]) == (2000, 6000)


# -- trees


def dept(name: str, parent: str = "root", born: int = 0, **spec: Any) -> Thing:
    return queue(name, born, parent=parent, **spec)


def test_the_limits_of_all_ancestors_bind() -> None:
    tree = [
        dept("top", capability={"cpu": 7}),
        dept("mid", "top", capability={"cpu": 5}),
        dept("x", "mid"),
        dept("y", "mid"),
        dept("z", "top"),
    ]
    made = cluster(NODE, tree, [each for q in "xyz" for each in (job(q, q), *pods(q, 6, cpu=1))])
    counts = per_job(outcome(made, *TREE))
    assert counts["x"] + counts.get("y", 0) <= 5
    assert sum(counts.values()) == 7


def test_a_guarantee_of_a_sibling_is_kept_free() -> None:
    tree = [dept("top", capability={"cpu": 6}), dept("x", "top"), dept("y", "top", guarantee={"cpu": 2})]
    assert per_job(outcome(cluster(NODE, tree, job("x", "x"), pods("x", 9, cpu=1)), *TREE)) == {"x": 4}


def test_the_root_bounds_nothing_unless_it_says_so() -> None:
    def made(*root: Thing) -> Any:
        return cluster(NODE, root, dept("x"), job("a", "x", phase="Pending", needs={"cpu": 99}))

    assert phases(outcome(made(), *TREE)) == {"a": "Inqueue"}
    assert phases(outcome(made(queue("root", capability={"cpu": 9})), *TREE)) == {"a": "Pending"}


def test_admission_counts_for_all_levels() -> None:
    tree = [dept("top", capability={"cpu": 5}), dept("x", "top"), dept("y", "top")]
    waiting = [job(name, name, number, phase="Pending", needs={"cpu": 3}) for number, name in enumerate("xy")]
    assert sorted(phases(outcome(cluster(NODE, tree, waiting), *TREE)).values()) == ["Inqueue", "Pending"]


def test_branches_are_compared_where_they_part_by_live_shares() -> None:
    tree = [dept("a", deserved={"cpu": 5}), dept("b", born=1, deserved={"cpu": 5})]
    tree += [dept("a1", "a", 2, deserved={"cpu": 5}), dept("b1", "b", 3, deserved={"cpu": 1}), dept("b2", "b", 4, deserved={"cpu": 4})]
    jobs = [each for q in ("a1", "b1", "b2") for each in (job(q, q), *pods(q, 9, cpu=1))]
    assert per_job(outcome(cluster(NODE, tree, jobs), *TREE)) == {"a1": 5, "b1": 1, "b2": 4}


@pytest.mark.parametrize(("cpu", "phase"), [(3, "Inqueue"), (4, "Pending")])
def test_what_branches_hold_and_promise_counts_above_them(cpu: int, phase: str) -> None:
    """Below top, of 8 cpus: x holds 3 and may still ask for 2; y holds 2 more than its minimum, which keeps nobody out."""
    tree = [dept("top", capability={"cpu": 8}), *(dept(name, "top") for name in "xyz")]
    running = [job("x", "x", needs={"cpu": 5}), *pods("x", 3, "n", cpu=1), job("y", "y", needs={"cpu": 0}), *pods("y", 2, "n", cpu=1)]
    made = cluster(NODE, tree, running, job("z", "z", phase="Pending", needs={"cpu": cpu}))
    assert phases(outcome(made, *TREE))["z"] == phase


@pytest.mark.parametrize(("tiers", "top"), [(TIERS, ()), (TREE, (queue("root", capability={"cpu": 10}),))])
@pytest.mark.parametrize(("cpu", "phase"), [(7, "Inqueue"), (8, "Pending")])
def test_a_queue_may_hold_its_own_guarantee_and_what_is_guaranteed_to_nobody(tiers: Any, top: Any, cpu: int, phase: str) -> None:
    queues = [*top, dept("x", guarantee={"cpu": 4}), dept("y", guarantee={"cpu": 3})]
    made = cluster(NODE, queues, job("a", "x", phase="Pending", needs={"cpu": cpu}))
    assert phases(outcome(made, *tiers)) == {"a": phase}


def test_how_full_a_leaf_is_matters_only_among_its_siblings() -> None:
    tree = [dept("a", deserved={"cpu": 10}), dept("b", born=1, deserved={"cpu": 10})]
    tree += [dept("a1", "a", 2, deserved={"cpu": 1}), dept("b1", "b", 3, deserved={"cpu": 10})]
    jobs = [each for q in ("a1", "b1") for each in (job(q, q), *pods(q, 9, cpu=1))]
    assert per_job(outcome(cluster(NODE, tree, jobs), *TREE)) == {"a1": 5, "b1": 5}


def test_priority_comes_before_shares_in_a_tree() -> None:
    tree = [dept("a", deserved={"cpu": 9}), dept("b", priority=1)]
    jobs = [each for q in "ab" for each in (job(q, q), *pods(q, 10, cpu=1))]
    assert per_job(outcome(cluster(NODE, tree, jobs), *TREE)) == {"b": 10}


def test_leaves_come_before_inner_queues() -> None:
    made = cluster(NODE, dept("top"), dept("x", "top"), dept("fine", born=9))
    with opened(made, *TREE) as session:
        assert session.queue_before(made.queues["fine"], made.queues["top"])
        assert not session.queue_before(made.queues["top"], made.queues["fine"])


UNSOUND: list[tuple[str, list[Thing], set[str]]] = [
    ("a job in an inner queue stops its subtree", [dept("top"), dept("x", "top"), job("bad", "top"), dept("fine")], {"fine"}),
    ("a finished job there does not", [dept("top"), dept("x", "top"), job("old", "top", phase="Completed"), dept("fine")], {"fine", "x"}),
    ("a missing parent stops what is below", [dept("top", "nowhere"), dept("x", "top"), dept("fine")], {"fine"}),
    ("a circle stops its members", [dept("x", "y"), dept("y", "x"), dept("fine")], {"fine"}),
    ("jobs in the root stop everything", [dept("x"), job("bad", "root"), dept("fine")], set()),
]


@pytest.mark.parametrize(("what", "tree", "served"), UNSOUND, ids=[row[0] for row in UNSOUND])
def test_only_what_is_wrong_waits(what: str, tree: list[Thing], served: set[str]) -> None:
    names = ["fine", "x"]
    made = cluster(
        NODE, tree, [each for q in names for each in (job(q, q), pod(f"{q}-w-0", q, cpu=1), job(f"{q}-new", q, phase="Pending"))]
    )
    result = outcome(made, *TREE)
    assert set(per_job(result)) == served


def test_unsound_queues_neither_take_nor_give() -> None:
    tree = [dept("top", "nowhere"), dept("x", "top"), dept("fine", deserved={"cpu": 10})]
    made = cluster(
        NODE, tree, job("x", "x", least=0), pods("x", 10, "n", cpu=1), job("f", "fine"), pod("f", "f", cpu=1), job("w", "x"), pod("w", "w")
    )
    with opened(made, *TREE) as session:
        queues, tasks = made.queues, list(made.jobs["default/x"].tasks.values())
        assert session.reclaimable(made.tasks["default/f"], tasks) == []
        assert session.reclaimable(made.tasks["default/w"], tasks) == []
        assert not session.preemptive(queues["x"], [made.tasks["default/w"]])
        assert not session.job_enqueueable(made.jobs["default/w"])


# -- reclaim


def reclaiming(
    spec_of_loser: Thing, spec_of_taker: Thing, *more: Thing, asked: Thing | None = None, count: int = 10, each: Any = 1
) -> list[str]:
    """Who goes for one pod of a queue without anything, when another queue holds the whole node."""
    loser = [
        queue("loser", 1, **spec_of_loser),
        job("l", "loser", least=0, phase="Running"),
        *pods("l", count, "n", cpu=each, memory="1Gi"),
    ]
    taker = [queue("taker", 2, **spec_of_taker), job("t", "taker"), pod("t", "t", **(asked or {"cpu": 1, "memory": "1Gi"}))]
    return evicted(outcome(cluster(NODE, loser, taker, *more), *TIERS, actions=RECLAIM))


RECLAIM_ROWS: list[tuple[str, Thing, Thing, int]] = [
    ("above deserved gives", {"deserved": {"cpu": 9}}, {"deserved": {"cpu": 5}}, 1),
    ("at deserved keeps", {"deserved": {"cpu": 10}}, {"deserved": {"cpu": 5}}, 0),
    ("above in one dimension gives", {"deserved": {"cpu": 10, "memory": "9Gi"}}, {"deserved": {"cpu": 5}}, 1),
    ("what is not deserved at all goes", {"deserved": {"nvidia.com/gpu": 9}}, {"deserved": {"cpu": 5}}, 1),
    ("a guarantee is kept", {"deserved": {"cpu": 1}, "guarantee": {"cpu": 10}}, {"deserved": {"cpu": 5}}, 0),
    ("a guarantee is kept though", {"deserved": {"memory": "1Gi"}, "guarantee": {"cpu": 10}}, {"deserved": {"cpu": 5}}, 0),
    ("one that deserves just that takes it", {"deserved": {"cpu": 1}}, {"deserved": {"cpu": 1}}, 1),
    ("one that deserves less takes nothing", {"deserved": {"cpu": 1}}, {"deserved": {"cpu": "500m"}}, 0),
    ("one that deserves nothing takes nothing", {"deserved": {"cpu": 1}}, {}, 0),
    ("one whose limit is short takes nothing", {"deserved": {"cpu": 1}}, {"deserved": {"cpu": 5}, "capability": {"cpu": "500m"}}, 0),
    ("deserving one of the dimensions is enough", {"deserved": {"cpu": 1}}, {"deserved": {"memory": "5Gi"}}, 1),
    ("not reclaimable", {"deserved": {"cpu": 1}, "reclaimable": False}, {"deserved": {"cpu": 5}}, 0),
]


@pytest.mark.parametrize(("what", "loser", "taker", "gone"), RECLAIM_ROWS, ids=[row[0] for row in RECLAIM_ROWS])
def test_who_gives_back(what: str, loser: Thing, taker: Thing, gone: int) -> None:
    assert len(reclaiming(loser, taker)) == gone


def test_deserving_none_of_a_resource_is_not_the_same_as_saying_nothing_of_it() -> None:
    def gone(deserved: Thing) -> int:
        nodes = node("n", cpu=10, memory="100Gi", gpu=4)
        loser = [queue("loser", deserved=deserved), job("l", "loser", least=0), *pods("l", 4, "n", cpu=1, gpu=1)]
        taker = [queue("taker", deserved={"gpu": 4}), job("t", "taker"), pod("t", "t", cpu=1, gpu=1)]
        return len(evicted(outcome(cluster(nodes, loser, taker), *TIERS, actions=RECLAIM)))

    assert gone({"cpu": 10, "gpu": 0}) == 1
    assert gone({"cpu": 10}) == 0


@pytest.mark.parametrize(("lender", "gone"), [("top", ["l-w-3"]), ("other", [])])
def test_where_the_parent_is_full_a_sister_gives_though_nodes_have_room_and_nobody_else_does(lender: str, gone: list[str]) -> None:
    full = [dept("filler", "top", deserved={"cpu": 4}), job("f", "filler", least=4), *pods("f", 4, "n", cpu=1)]
    lent = [dept("lender", lender, deserved={"cpu": 2}), job("l", "lender", least=0), *pods("l", 4, "n", cpu=1)]
    taker = [dept("taker", "top", deserved={"cpu": 2}), job("t", "taker"), pod("t", "t", cpu=1)]
    tree = [dept("top", capability={"cpu": 4}), dept("other", deserved={"cpu": 1})]
    made = cluster(NODE, tree, lent, taker, full if lender == "other" else [])
    assert evicted(outcome(made, *TREE, actions=RECLAIM)) == gone


def test_victims_share_a_dimension_with_the_reclaimer() -> None:
    loser = [queue("loser"), job("l", "loser", least=0), pod("l-0", "l", "n", memory="99Gi"), pod("l-1", "l", "n", cpu=10)]
    taker = [queue("taker", deserved={"cpu": 5}), job("t", "taker"), pod("t", "t", cpu=1)]
    with opened(cluster(NODE, loser, taker), *TIERS) as session:
        tasks = session.cluster.tasks
        named = session.reclaimable(tasks["default/t"], [tasks["default/l-0"], tasks["default/l-1"]])
    assert [task.name for task in named] == ["l-1"]


def test_a_queue_gives_only_until_it_has_what_it_deserves() -> None:
    loser = [queue("loser", deserved={"cpu": 8}), job("l", "loser", least=0), *pods("l", 10, "n", cpu=1)]
    taker = [queue("taker", deserved={"cpu": 9}), job("t", "taker", least=3), *pods("t", 3, cpu=1)]
    assert evicted(outcome(cluster(NODE, loser, taker), *TIERS, actions=RECLAIM)) == []
    taker = [queue("taker", deserved={"cpu": 9}), job("t", "taker", least=2), *pods("t", 2, cpu=1)]
    assert len(evicted(outcome(cluster(NODE, loser, taker), *TIERS, actions=RECLAIM))) == 2


def forest(deserved: dict[str, Any]) -> list[Thing]:
    """root > a > (a1, a2), root > b > b1, root > c; each deserves so many cpus."""
    parents = {"a": "root", "b": "root", "c": "root", "a1": "a", "a2": "a", "b1": "b"}
    return [dept(name, parent, deserved={"cpu": deserved[name]} if name in deserved else {}) for name, parent in parents.items()]


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
    running = [job("l", "a1", least=0), *pods("l", 10, "n", cpu=1)]
    made = cluster(NODE, forest(deserved), running, job("t", taker), pod("t", "t", cpu=1))
    assert bool(evicted(outcome(made, *levels(count), actions=RECLAIM))) == gives


def test_unless_it_is_said_otherwise_no_ancestors_are_compared() -> None:
    running = [job("l", "a1", least=0), *pods("l", 10, "n", cpu=1)]
    made = cluster(NODE, forest({"a": 10, "a1": 1, "b1": 5}), running, job("t", "b1"), pod("t", "t", cpu=1))
    assert len(evicted(outcome(made, *TREE, actions=RECLAIM))) == 1


def test_the_nearest_relatives_give_first() -> None:
    made = cluster(
        NODE, forest({}), [each for q in ("a1", "b1") for each in (job(q, q, least=0), pod(f"{q}-0", q, "n", cpu=1))], job("t", "a2")
    )
    with opened(made, *TREE) as session:
        made_of = made.tasks
        t = pod("t", "t", cpu=1)
        assert t["kind"] == "Pod"
        queues = made.queues
        assert session.victim_queue_before(queues["a1"], queues["b1"], queues["a2"])
        assert not session.victim_queue_before(queues["b1"], queues["a1"], queues["a2"])
        assert len(victim_order(session, made_of["default/a1-0"], made_of.values())) == 2


def test_what_goes_is_booked_at_once_at_every_level() -> None:
    """Both gangs may take from a1; what the first took counts for a and a1 when the second asks."""
    tree = forest({"a": 8, "a1": 8, "b": 9, "b1": 9})
    running = [job("l", "a1", least=0), *pods("l", 10, "n", cpu=1)]
    made = cluster(NODE, tree, running, [each for name in ("t", "u") for each in (job(name, "b1", least=2), *pods(name, 2, cpu=1))])
    assert len(evicted(outcome(made, *levels(1), actions=RECLAIM))) == 2


class Context:
    """What the gang actions tell plugins."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


def test_gangs_take_from_other_queues_what_those_do_not_deserve_and_anything_from_their_own() -> None:
    queues = [queue("loser", deserved={"cpu": 8}), queue("kept", deserved={"cpu": 1}, guarantee={"cpu": 1})]
    running = [
        job("l", "loser", least=0),
        *pods("l", 9, "n", cpu=1),
        job("k", "kept"),
        pod("k-w-0", "k", "n", cpu=1),
        pod("stray", "none", "n", cpu=1),
    ]
    made = cluster(node("n", cpu=20), queues, running, priority_class("high", 1))
    with opened(made, *TIERS) as session:
        plugin, tasks = session.plugin("capacity"), list(made.tasks.values())
        assert len(plugin.unified_evictable(Context("gangreclaim"), tasks)) == 1
        assert plugin.unified_evictable(Context("gangpreempt"), tasks) == tasks
