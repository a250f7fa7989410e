"""proportion: queues share by weight what they ask for; what one does not ask for is lent to the others."""

from __future__ import annotations

from typing import Any

import pytest
from queued import bound, cluster, evicted, job, node, opened, outcome, per_job, phases, pod, pods, queue
from scene import Thing

TIERS = ("gang", "proportion, predicates")


def filled(total: int, *queues: tuple[int, int, Thing]) -> list[float]:
    """What queues deserve, in cores, by (weight, pods of one core asked for, spec)."""
    things = [
        each
        for number, (weight, count, spec) in enumerate(queues)
        for each in (queue(f"q{number}", weight=weight, **spec), job(f"j{number}", f"q{number}"), *pods(f"j{number}", count, cpu=1))
    ]
    with opened(cluster(node("n", cpu=total, pods=1000), things), *TIERS) as session:
        shares = session.plugin("proportion")._shares
        return [round(float(shares[f"q{number}"].deserved[0])) / 1000 for number in range(len(queues))]


FILL_ROWS: list[tuple[str, int, list[tuple[int, int, Thing]], list[float]]] = [
    ("what one does not ask for the other gets", 10, [(1, 2, {}), (3, 20, {})], [2, 8]),
    ("by weight if all ask for more", 12, [(1, 20, {}), (3, 20, {})], [3, 9]),
    ("a capability caps", 12, [(1, 20, {}), (3, 20, {"capability": {"cpu": 4}})], [8, 4]),
    ("a capability of no cpu does not", 12, [(1, 20, {}), (1, 20, {"capability": {"cpu": 0}})], [6, 6]),
    ("a guarantee is given though nobody asks", 12, [(1, 20, {}), (1, 0, {"guarantee": {"cpu": 4}})], [8, 4]),
    ("others' guarantees limit", 12, [(9, 20, {}), (1, 20, {"guarantee": {"cpu": 6}})], [6, 6]),
    ("more guaranteed than there is", 4, [(1, 9, {"guarantee": {"cpu": 3}}), (1, 9, {"guarantee": {"cpu": 3}})], [3, 3]),
    ("weights of nothing deserve nothing", 12, [(0, 20, {}), (0, 20, {})], [0, 0]),
    ("three rounds", 12, [(1, 1, {}), (1, 4, {}), (1, 20, {})], [1, 4, 7]),
]


@pytest.mark.parametrize(("what", "total", "queues", "deserved"), FILL_ROWS, ids=[row[0] for row in FILL_ROWS])
def test_water_filling(what: str, total: int, queues: list[tuple[int, int, Thing]], deserved: list[float]) -> None:
    assert filled(total, *queues) == pytest.approx(deserved)


def test_the_last_crumb_is_dealt_out() -> None:
    """In the first round the light queue gets less than a thousandth of a gpu. That does not mean that it has enough."""
    heavy = [queue("a", weight=65535), job("a", "a"), *pods("a", 9, cpu=2), pod("a-g", "a", gpu=2)]
    made = cluster(node("n", cpu=16, gpu=8), heavy, queue("b", weight=1), job("b", "b"), *pods("b", 9, gpu=1))
    with opened(made, *TIERS) as session:
        assert session.plugin("proportion")._shares["b"].deserved[made.dimensions.columns["nvidia.com/gpu"]] == 6000


def test_it_tells_what_each_queue_deserves_and_may_hold() -> None:
    queues = [queue("a", weight=1), queue("b", weight=3, capability={"cpu": 9}), queue("empty")]
    made = cluster(node("n", cpu=12), queues, [each for q in "ab" for each in (job(q, q), *pods(q, 20, cpu=1))])
    with opened(made, *TIERS) as session:
        told = session.plugin("proportion").entitlements()
    assert {name: (deserved[0], limit[0]) for name, (deserved, limit) in told.items()} == {"a": (3000, 12000), "b": (9000, 9000)}


def test_each_queue_gets_what_it_deserves_and_no_more() -> None:
    things = [queue("a", 1, weight=1), queue("b", 2, weight=3), job("a", "a"), *pods("a", 9, cpu=1), job("b", "b"), *pods("b", 9, cpu=1)]
    assert per_job(outcome(cluster(node("n", cpu=8), things), *TIERS)) == {"a": 2, "b": 6}


def test_the_queue_that_has_less_of_what_it_deserves_is_served_first() -> None:
    queues = [queue("a", 1, weight=3), queue("b", 2, weight=1)]
    running = [job("ra", "a"), *pods("ra", 2, "n", cpu=1), job("rb", "b"), *pods("rb", 1, "n", cpu=1)]
    made = cluster(node("n", cpu=8), queues, running, job("a", "a"), pods("a", 9, cpu=1), job("b", "b"), pods("b", 9, cpu=1))
    with opened(made, *TIERS) as session:  # 2 of 6 and 1 of 2
        assert session.queue_key(made.queues["a"]) < session.queue_key(made.queues["b"])
        made.queues["a"].holding[0] += 2000
        assert session.queue_key(made.queues["a"]) > session.queue_key(made.queues["b"])
        made.queues["a"].holding[0] -= 2000


def test_a_more_important_queue_is_served_first() -> None:
    queues = [queue("a", 1), queue("b", 2, priority=1)]
    jobs = [job("a", "a"), *pods("a", 1, cpu=3), job("b", "b"), *pods("b", 1, cpu=3)]
    tiers = ("gang", "{name: proportion, enabledAllocatable: false}, predicates")
    assert bound(outcome(cluster(node("n", cpu=4), queues, jobs), *tiers)) == ["b-w-0"]


def full(*more: Thing, **states: str) -> Any:
    """Two nodes of 2 cores and 2 GB; q1 holds 1 core and 2 GB of 2 and 2, q2 2 cores and 1 GB of 3 and 3."""
    nodes = [node("n1", cpu=2, memory="2G"), node("n2", cpu=2, memory="2G")]
    queues = [queue("q1", capability={"cpu": 2, "memory": "2G"}, **states), queue("q2", capability={"cpu": 3, "memory": "3G"})]
    running = [
        job("r1", "q1", needs={"cpu": 1, "memory": "2G"}),
        pod("r1", "r1", "n1", cpu=1, memory="2G"),
        job("r2", "q2", needs={"cpu": 2, "memory": "1G"}),
        pod("r2", "r2", "n2", cpu=2, memory="1G"),
    ]
    return cluster(nodes, queues, running, more)


def asking(queue: str, **amounts: Any) -> list[Thing]:
    return [job("a", queue, phase="Pending", needs=amounts), pod("a", "a", **amounts)]


ADMISSION_ROWS: list[tuple[str, list[Thing], list[str], str]] = [
    ("only cpu in the queue whose memory is used up", asking("q1", cpu=1), ["a"], "Inqueue"),
    ("only memory in the queue whose cpu is used up", asking("q2", memory="1G"), ["a"], "Inqueue"),
    ("both, of which one is used up", asking("q1", cpu=1, memory="1G"), [], "Pending"),
]


@pytest.mark.parametrize(("what", "things", "placed", "phase"), ADMISSION_ROWS, ids=[row[0] for row in ADMISSION_ROWS])
def test_only_what_is_asked_for_is_held_against_the_limit(what: str, things: list[Thing], placed: list[str], phase: str) -> None:
    result = outcome(full(*things), *TIERS)
    assert (bound(result), phases(result)["a"]) == (placed, phase)


def test_a_job_let_in_before_is_still_held_against_what_the_queue_deserves() -> None:
    waiting, task = asking("q1", cpu=1, memory="1G")
    waiting["status"]["phase"] = "Inqueue"
    assert bound(outcome(full(waiting, task), *TIERS)) == []


@pytest.mark.parametrize(("state", "placed"), [("Closed", []), ("Closing", ["b"])])
def test_queues_that_are_not_open_let_nobody_in_and_closing_ones_finish(state: str, placed: list[str]) -> None:
    result = outcome(full(*asking("q1", cpu=1), job("b", "q1"), pod("b", "b", cpu=1), state=state), *TIERS)
    assert (bound(result), phases(result)["a"]) == (placed, "Pending")


def test_a_pod_that_its_queue_may_not_take_is_told_why() -> None:
    inside = job("b", "q1"), pod("b", "b", cpu=1, memory="2G")
    closed = outcome(full(*inside, state="Closed"), *TIERS)["pending"]["default/b"]["message"]
    assert closed.endswith("queue q1 is Closed")
    too_much = outcome(full(*inside), *TIERS)["pending"]["default/b"]["message"]
    assert too_much.endswith("queue q1 holds 1.863Gi of the 1.863Gi memory it deserves, 1.863Gi more is asked for")


@pytest.mark.parametrize(("state", "cpu", "takes"), [("Open", 1, True), ("Open", 2, False), ("Closing", 1, False), ("Closed", 1, False)])
def test_an_open_queue_may_take_back_what_it_deserves(state: str, cpu: int, takes: bool) -> None:
    made = full(job("b", "q1"), pod("b", "b", cpu=cpu), state=state)
    with opened(made, *TIERS) as session:
        assert session.preemptive(made.queues["q1"], [made.tasks["default/b"]]) is takes


@pytest.mark.parametrize(("cpu", "phase"), [(7, "Inqueue"), (8, "Pending")])
def test_a_queue_is_bounded_by_what_is_not_guaranteed_and_its_own_guarantee(cpu: int, phase: str) -> None:
    queues = [queue("q", guarantee={"cpu": 4}), queue("other", guarantee={"cpu": 3})]
    made = cluster(node("n", cpu=10), queues, job("a", "q", phase="Pending", needs={"cpu": cpu}))
    assert phases(outcome(made, *TIERS)) == {"a": phase}


@pytest.mark.parametrize(("cpu", "phase"), [(3, "Inqueue"), (4, "Pending")])
def test_what_a_job_holds_above_its_minimum_does_not_keep_others_out(cpu: int, phase: str) -> None:
    running = [job("r", "q", needs={"cpu": 1}), *pods("r", 3, "n", cpu=1)]
    made = cluster(node("n", cpu=10), queue("q", capability={"cpu": 4}), running, job("a", "q", phase="Pending", needs={"cpu": cpu}))
    assert phases(outcome(made, *TIERS))["a"] == phase


def test_promises_count_until_they_are_kept() -> None:
    jobs = [job(name, "q", born, phase="Pending", needs={"cpu": cpu}) for name, born, cpu in (("big", 1, 99), ("a", 2, 3), ("b", 3, 3))]
    made = cluster(node("n", cpu=100), queue("q", capability={"cpu": 5}), jobs)
    assert phases(outcome(made, *TIERS)) == {"big": "Pending", "a": "Inqueue", "b": "Pending"}


def test_another_plugins_refusal_promises_nothing() -> None:
    jobs = [job("a", "q", 1, phase="Pending", needs={"cpu": 3, "memory": "1Ti"}), job("b", "q", 2, phase="Pending", needs={"cpu": 3})]
    made = cluster(node("n", cpu=9, memory="1Gi"), queue("q", capability={"cpu": 5}), jobs)
    assert phases(outcome(made, "gang", "proportion, overcommit")) == {"a": "Pending", "b": "Inqueue"}


def test_a_job_without_minimum_is_let_in() -> None:
    made = cluster(node("n", cpu=1), queue("q", capability={"cpu": 1}), job("a", "q", phase="Pending"))
    with opened(made, *TIERS) as session:
        assert session.job_enqueueable(made.jobs["default/a"])
    assert phases(outcome(made, *TIERS)) == {"a": "Inqueue"}


def test_room_is_reclaimed_up_to_what_both_deserve() -> None:
    def gone(wanted: int) -> int:
        losers = [queue("a", 1), job("a", "a", least=0), *pods("a", 8, "n", cpu=1)]
        takers = [queue("b", 2), job("b", "b", least=wanted), *pods("b", wanted, cpu=1)]
        made = cluster(node("n", cpu=8), losers, takers, pod("stray", "", "n"))
        return len(evicted(outcome(made, "{name: gang, enableReclaimable: false}", "proportion, predicates", actions="reclaim")))

    assert [gone(wanted) for wanted in (1, 4, 5)] == [1, 4, 0]


def test_a_queue_names_victims_until_it_holds_what_it_deserves() -> None:
    made = cluster(node("n", cpu=8), queue("a"), job("a", "a"), pods("a", 8, "n", cpu=1), queue("b"), job("b", "b"), pods("b", 8, cpu=1))
    with opened(made, *TIERS) as session:
        candidates = list(made.jobs["default/a"].tasks.values())
        named = session.plugin("proportion").reclaimable(made.tasks["default/b-w-0"], candidates)
    assert [task.name for task in named] == [f"a-w-{number}" for number in range(4)]


def test_who_holds_all_it_deserves_is_overused() -> None:
    made = cluster(
        node("n", cpu=4, pods=4), queue("a"), job("a", "a"), pods("a", 4, "n", cpu=1), queue("b"), job("b", "b"), pods("b", 1, cpu=1)
    )
    with opened(made, *TIERS) as session:
        assert session.overused(made.queues["a"])
        assert not session.overused(made.queues["b"])


def test_victims_of_no_job_or_unknown_queue_are_passed_over() -> None:
    made = cluster(node("n", cpu=4), queue("a"), job("a", "a"), pod("p", "a", cpu=1), pod("stray", "", "n", cpu=1))
    with opened(made, *TIERS) as session:
        assert session.reclaimable(made.tasks["default/p"], [made.tasks["default/stray"]]) == []
