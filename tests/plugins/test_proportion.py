"""proportion: queues share by weight what they ask for; what one does not ask for is lent to the others."""

from __future__ import annotations

from typing import Any

import pytest
from scene import binds, evicted, opened, outcome, per_job, phases

from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.resources import CPU
from pumice.testing import Builder, QueueBuilder, cluster, node, pod, podgroup, queue

TIERS = ("gang", "proportion, predicates")


def filled(total: int, *queues: tuple[QueueBuilder, int]) -> list[float]:
    """What q0, q1 and so on deserve, in cores, if each asks for so many pods of one core."""
    jobs = [each for at, (_, count) in enumerate(queues) for each in podgroup(f"j{at}").queue(f"q{at}").admitted().pods(count, cpu=1)]
    with opened(cluster(node("n").has(cpu=total, pods=1000), [each for each, _ in queues], jobs), *TIERS) as session:
        shares = session.plugin("proportion")._shares
        return [round(float(shares[f"q{at}"].deserved[0])) / 1000 for at in range(len(queues))]


FILL_ROWS: list[tuple[str, int, list[tuple[QueueBuilder, int]], list[float]]] = [
    ("what one does not ask for the other gets", 10, [(queue("q0").weight(1), 2), (queue("q1").weight(3), 20)], [2, 8]),
    ("by weight if all ask for more", 12, [(queue("q0").weight(1), 20), (queue("q1").weight(3), 20)], [3, 9]),
    ("a capability caps", 12, [(queue("q0").weight(1), 20), (queue("q1").weight(3).capability(cpu=4), 20)], [8, 4]),
    ("a capability of no cpu does not", 12, [(queue("q0").weight(1), 20), (queue("q1").weight(1).capability(cpu=0), 20)], [6, 6]),
    ("a guarantee is given though nobody asks", 12, [(queue("q0").weight(1), 20), (queue("q1").weight(1).guarantees(cpu=4), 0)], [8, 4]),
    ("others' guarantees limit", 12, [(queue("q0").weight(9), 20), (queue("q1").weight(1).guarantees(cpu=6), 20)], [6, 6]),
    (
        "more guaranteed than there is",
        4,
        [(queue("q0").weight(1).guarantees(cpu=3), 9), (queue("q1").weight(1).guarantees(cpu=3), 9)],
        [3, 3],
    ),
    ("weights of nothing deserve nothing", 12, [(queue("q0").weight(0), 20), (queue("q1").weight(0), 20)], [0, 0]),
    ("three rounds", 12, [(queue("q0").weight(1), 1), (queue("q1").weight(1), 4), (queue("q2").weight(1), 20)], [1, 4, 7]),
]


@pytest.mark.parametrize(("what", "total", "queues", "deserved"), FILL_ROWS, ids=[row[0] for row in FILL_ROWS])
def test_water_filling(what: str, total: int, queues: list[tuple[QueueBuilder, int]], deserved: list[float]) -> None:
    assert filled(total, *queues) == pytest.approx(deserved)


def test_the_last_crumb_is_dealt_out() -> None:
    """In the first round the light queue gets less than a thousandth of a gpu. That does not mean that it has enough."""
    heavy = [queue("a").weight(65535), *podgroup("a").queue("a").admitted().pods(9, cpu=2), pod("a-g").gang("a").gpu(2)]
    made = cluster(node("n").has(cpu=16, gpu=8), heavy, queue("b").weight(1), podgroup("b").queue("b").admitted().pods(9, gpu=1))
    with opened(made, *TIERS) as session:
        assert session.plugin("proportion")._shares["b"].deserved[made.dimensions.columns["nvidia.com/gpu"]] == 6000


def test_it_tells_what_each_queue_deserves_and_may_hold() -> None:
    queues = [queue("a").weight(1), queue("b").weight(3).capability(cpu=9), queue("empty")]
    made = cluster(node("n").cpu(12), queues, [each for q in "ab" for each in (*podgroup(q).queue(q).admitted().pods(20, cpu=1),)])
    with opened(made, *TIERS) as session:
        told = session.plugin("proportion").entitlements()
    assert {name: (deserved[0], limit[0]) for name, (deserved, limit) in told.items()} == {"a": (3000, 12000), "b": (9000, 9000)}


def test_each_queue_gets_what_it_deserves_and_no_more() -> None:
    things = [
        queue("a").weight(1).created(1),
        queue("b").weight(3).created(2),
        *podgroup("a").queue("a").admitted().pods(9, cpu=1),
        *podgroup("b").queue("b").admitted().pods(9, cpu=1),
    ]
    assert per_job(outcome(cluster(node("n").cpu(8), things), *TIERS)) == {"a": 2, "b": 6}


def test_the_queue_that_has_less_of_what_it_deserves_is_served_first() -> None:
    queues = [queue("a").weight(3).created(1), queue("b").weight(1).created(2)]
    running = [*podgroup("ra").queue("a").admitted().pods(2, on="n", cpu=1), *podgroup("rb").queue("b").admitted().pods(1, on="n", cpu=1)]
    made = cluster(
        node("n").cpu(8),
        queues,
        running,
        podgroup("a").queue("a").admitted().pods(9, cpu=1),
        podgroup("b").queue("b").admitted().pods(9, cpu=1),
    )
    with opened(made, *TIERS) as session:  # 2 of 6 and 1 of 2
        assert session.orders.queue_key(made.queues["a"]) < session.orders.queue_key(made.queues["b"])
        two = made.dimensions.nothing()
        two[0, CPU] = 2000
        made.queues["a"].holding += two
        assert session.orders.queue_key(made.queues["a"]) > session.orders.queue_key(made.queues["b"])
        made.queues["a"].holding -= two


def test_a_more_important_queue_is_served_first() -> None:
    queues = [queue("a").created(1), queue("b").priority(1).created(2)]
    jobs = [*podgroup("a").queue("a").admitted().pods(1, cpu=3), *podgroup("b").queue("b").admitted().pods(1, cpu=3)]
    tiers = ("gang", "{name: proportion, enabledAllocatable: false}, predicates")
    assert sorted(binds(outcome(cluster(node("n").cpu(4), queues, jobs), *tiers))) == ["b-0"]


def full(*more: Builder, state: str = "Open") -> Cluster:
    """Two nodes of 2 cores and 2 GB; q1 holds 1 core and 2 GB of 2 and 2, q2 2 cores and 1 GB of 3 and 3."""
    nodes = [node("n1").has(cpu=2, memory="2G"), node("n2").has(cpu=2, memory="2G")]
    queues = [queue("q1").capability(cpu=2, memory="2G").state(state), queue("q2").capability(cpu=3, memory="3G")]
    running = [
        podgroup("r1").queue("q1").needs(cpu=1, memory="2G").admitted(),
        pod("r1").gang("r1").on("n1").asks(cpu=1, memory="2G"),
        podgroup("r2").queue("q2").needs(cpu=2, memory="1G").admitted(),
        pod("r2").gang("r2").on("n2").asks(cpu=2, memory="1G"),
    ]
    return cluster(nodes, queues, running, more)


def asking(of: str, **amounts: Any) -> list[Builder]:
    return [podgroup("a").queue(of).needs(**amounts), pod("a").gang("a").asks(**amounts)]


ADMISSION_ROWS: list[tuple[str, list[Builder], list[str], str]] = [
    ("only cpu in the queue whose memory is used up", asking("q1", cpu=1), ["a"], "Inqueue"),
    ("only memory in the queue whose cpu is used up", asking("q2", memory="1G"), ["a"], "Inqueue"),
    ("both, of which one is used up", asking("q1", cpu=1, memory="1G"), [], "Pending"),
]


@pytest.mark.parametrize(("what", "things", "placed", "phase"), ADMISSION_ROWS, ids=[row[0] for row in ADMISSION_ROWS])
def test_only_what_is_asked_for_is_held_against_the_limit(what: str, things: list[Builder], placed: list[str], phase: str) -> None:
    result = outcome(full(*things), *TIERS)
    assert (sorted(binds(result)), phases(result)["a"]) == (placed, phase)


def test_a_job_let_in_before_is_still_held_against_what_the_queue_deserves() -> None:
    waiting, task = asking("q1", cpu=1, memory="1G")
    assert sorted(binds(outcome(full(waiting.having("status", "phase", value="Inqueue"), task), *TIERS))) == []


@pytest.mark.parametrize(("state", "placed"), [("Closed", []), ("Closing", ["b"])])
def test_queues_that_are_not_open_let_nobody_in_and_closing_ones_finish(state: str, placed: list[str]) -> None:
    result = outcome(full(*asking("q1", cpu=1), podgroup("b").queue("q1").admitted(), pod("b").gang("b").cpu(1), state=state), *TIERS)
    assert (sorted(binds(result)), phases(result)["a"]) == (placed, "Pending")


def test_a_pod_that_its_queue_may_not_take_is_told_why() -> None:
    inside = podgroup("b").queue("q1").admitted(), pod("b").gang("b").asks(cpu=1, memory="2G")
    closed = outcome(full(*inside, state="Closed"), *TIERS)["pending"]["default/b"]["message"]
    assert closed.endswith("queue q1 is Closed")
    too_much = outcome(full(*inside), *TIERS)["pending"]["default/b"]["message"]
    assert too_much.endswith("queue q1 holds 1.863Gi of the 1.863Gi memory it deserves, 1.863Gi more is asked for")


@pytest.mark.parametrize(("state", "cpu", "takes"), [("Open", 1, True), ("Open", 2, False), ("Closing", 1, False), ("Closed", 1, False)])
def test_an_open_queue_may_take_back_what_it_deserves(state: str, cpu: int, takes: bool) -> None:
    made = full(podgroup("b").queue("q1").admitted(), pod("b").gang("b").cpu(cpu), state=state)
    with opened(made, *TIERS) as session:
        assert session.preemptive(made.queues["q1"], [made.tasks["default/b"]]) is takes


@pytest.mark.parametrize(("cpu", "phase"), [(7, "Inqueue"), (8, "Pending")])
def test_a_queue_is_bounded_by_what_is_not_guaranteed_and_its_own_guarantee(cpu: int, phase: str) -> None:
    queues = [queue("q").guarantees(cpu=4), queue("other").guarantees(cpu=3)]
    made = cluster(node("n").cpu(10), queues, podgroup("a").queue("q").needs(cpu=cpu))
    assert phases(outcome(made, *TIERS)) == {"a": phase}


@pytest.mark.parametrize(("cpu", "phase"), [(3, "Inqueue"), (4, "Pending")])
def test_what_a_job_holds_above_its_minimum_does_not_keep_others_out(cpu: int, phase: str) -> None:
    running = [*podgroup("r").queue("q").needs(cpu=1).admitted().pods(3, on="n", cpu=1)]
    made = cluster(node("n").cpu(10), queue("q").capability(cpu=4), running, podgroup("a").queue("q").needs(cpu=cpu))
    assert phases(outcome(made, *TIERS))["a"] == phase


def test_promises_count_until_they_are_kept() -> None:
    jobs = [podgroup(name).queue("q").needs(cpu=cpu).created(born) for name, born, cpu in (("big", 1, 99), ("a", 2, 3), ("b", 3, 3))]
    made = cluster(node("n").cpu(100), queue("q").capability(cpu=5), jobs)
    assert phases(outcome(made, *TIERS)) == {"big": "Pending", "a": "Inqueue", "b": "Pending"}


def test_another_plugins_refusal_promises_nothing() -> None:
    jobs = [podgroup("a").queue("q").needs(cpu=3, memory="1Ti").created(1), podgroup("b").queue("q").needs(cpu=3).created(2)]
    made = cluster(node("n").has(cpu=9, memory="1Gi"), queue("q").capability(cpu=5), jobs)
    assert phases(outcome(made, "gang", "proportion, overcommit")) == {"a": "Pending", "b": "Inqueue"}


def test_a_job_without_minimum_is_let_in() -> None:
    made = cluster(node("n").cpu(1), queue("q").capability(cpu=1), podgroup("a").queue("q"))
    with opened(made, *TIERS) as session:
        assert session.job_enqueueable(made.jobs["default/a"])
    assert phases(outcome(made, *TIERS)) == {"a": "Inqueue"}


def test_room_is_reclaimed_up_to_what_both_deserve() -> None:
    def gone(wanted: int) -> int:
        losers = [queue("a").created(1), *podgroup("a", 0).queue("a").admitted().pods(8, on="n", cpu=1)]
        takers = [queue("b").created(2), *podgroup("b", wanted).queue("b").admitted().pods(wanted, cpu=1)]
        made = cluster(node("n").cpu(8), losers, takers, pod("stray").on("n"))
        return len(evicted(outcome(made, "{name: gang, enableReclaimable: false}", "proportion, predicates", actions="reclaim")))

    assert [gone(wanted) for wanted in (1, 4, 5)] == [1, 4, 0]


def test_a_queue_names_victims_until_it_holds_what_it_deserves() -> None:
    made = cluster(
        node("n").cpu(8),
        queue("a"),
        podgroup("a").queue("a").admitted().pods(8, on="n", cpu=1),
        queue("b"),
        podgroup("b").queue("b").admitted().pods(8, cpu=1),
    )
    with opened(made, *TIERS) as session:
        candidates = list(made.jobs["default/a"].tasks.values())
        named = session.plugin("proportion").reclaimable(made.tasks["default/b-0"], candidates)
    assert [task.name for task in named] == [f"a-{number}" for number in range(4)]


def test_who_holds_all_it_deserves_is_overused() -> None:
    made = cluster(
        node("n").has(cpu=4, pods=4),
        queue("a"),
        podgroup("a").queue("a").admitted().pods(4, on="n", cpu=1),
        queue("b"),
        podgroup("b").queue("b").admitted().pods(1, cpu=1),
    )
    with opened(made, *TIERS) as session:
        assert session.overused(made.queues["a"])
        assert not session.overused(made.queues["b"])


def test_victims_of_no_job_or_unknown_queue_are_passed_over() -> None:
    made = cluster(
        node("n").cpu(4), queue("a"), podgroup("a").queue("a").admitted(), pod("p").gang("a").cpu(1), pod("stray").on("n").cpu(1)
    )
    with opened(made, *TIERS) as session:
        assert session.evictable.permitted("reclaimable", made.tasks["default/p"], [made.tasks["default/stray"]]) == []


CHANGES: dict[str, Builder | list[Builder]] = {
    "nothing": [],
    "a weight": queue("a").weight(3),
    "a guarantee of a queue without jobs": queue("empty").guarantees(cpu=4),
    "a node": node("more").cpu(12),
    "the first job of a queue": podgroup("e").queue("empty").admitted().pods(20, cpu=1),
    "another resource": node("n").has(cpu=12, gpu=1),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_queues_deserve_follows_every_change_between_two_sessions(change: Builder | list[Builder]) -> None:
    jobs = [each for q in "ab" for each in podgroup(q).queue(q).admitted().pods(20, cpu=1)]
    before = [node("n").cpu(12), queue("a").weight(1), queue("b").weight(1), queue("empty"), *jobs]

    def deserved(made: Cluster) -> list[dict[str, list[float]]]:
        with opened(made, *TIERS) as session:
            told = session.plugin("proportion").entitlements()
        return [{name: part.tolist() for name, part in zip(told, parts, strict=True)} for parts in zip(*told.values(), strict=True)]

    kept = cluster(before)
    deserved(kept)
    for each in change if isinstance(change, list) else [change]:
        kept.put(*each.build())
    assert deserved(kept) == deserved(cluster(before, change))


def test_only_jobs_of_queues_that_hold_more_than_they_deserve_may_lose_tasks() -> None:
    rich, poor = podgroup("rich").queue("a").admitted(), podgroup("poor").queue("b").admitted()
    running = [pod(f"rich-{number}").gang("rich").cpu(1).on("n") for number in range(4)]
    lost = podgroup("lost").queue("nowhere").admitted().pods(1, cpu=1)
    made = cluster(node("n").cpu(4), queue("a"), queue("b"), rich, poor, running, poor.pods(4, cpu=1)[1:], lost)
    with opened(made, *TIERS) as session:
        assert [job.name for job in session.plugin("proportion").exposes()] == ["rich"]
    with opened(made, "{name: proportion}, predicates") as session:
        assert session.evictable.exposes_any("reclaimable") and session.evictable.exposed("reclaimable") == {made.jobs["default/rich"]}
        assert not session.evictable.exposes_any("preemptable")
        waits, runs = made.tasks["default/poor-1"], made.tasks["default/rich-0"]
        assert (
            session.evictable.unspared("reclaimable", waits, [runs]) == [runs]
            and session.evictable.spared_rows("reclaimable", waits) is False
        )
    made.remove("Pod", "default/rich-3")
    made.remove("Pod", "default/rich-2")
    with opened(made, *TIERS) as session:
        assert not [*session.plugin("proportion").exposes()]
    with opened(made, "{name: proportion}, predicates") as session:
        assert not session.evictable.exposes_any("reclaimable") and not session.evictable.unspared("reclaimable", waits, [runs])
        assert session.evictable.spared_rows("reclaimable", waits) is True
    with opened(made, "gang", "{name: proportion, enabledAllocatable: false}, predicates") as session:  # then it may come to hold more
        assert session.plugin("proportion").exposes() is None
