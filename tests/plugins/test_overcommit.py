"""overcommit: jobs are let in as long as what they promise to ask fits into the cluster times a factor."""

from __future__ import annotations

import pytest
from scene import Thing, opened, outcome, phases

from pumice.testing import Builder, cluster, node, pod, podgroup

NODES = [node("n1").has(cpu=2, memory="8Gi"), node("n2").has(cpu=4, memory="8Gi")]


def factor(value: object) -> str:
    return f"{{name: overcommit, arguments: {{overcommit-factor: {value}}}}}"


ROWS: list[tuple[str, str, Thing | None, str]] = [
    ("fits", factor(1.2), {"cpu": 2}, "Inqueue"),
    ("a factor below one is 1.2", factor(0.8), {"cpu": "7200m"}, "Inqueue"),
    ("a factor of one is one", factor(1), {"cpu": 6}, "Inqueue"),
    ("and no more", factor(1), {"cpu": "6001m"}, "Pending"),
    ("exactly the factor", "overcommit", {"cpu": "7200m"}, "Inqueue"),
    ("a bit more", "overcommit", {"cpu": "7201m"}, "Pending"),
    ("far too much", factor(1.2), {"cpu": 20}, "Pending"),
    ("no minimum", factor(1.2), None, "Inqueue"),
    ("a resource that nobody has", factor(9), {"gpu": 1}, "Pending"),
    ("the number of pods does not matter", "overcommit", {"cpu": 1, "pods": 9999}, "Inqueue"),
]


@pytest.mark.parametrize(("what", "plugin", "needs", "phase"), ROWS, ids=[row[0] for row in ROWS])
def test_a_job_is_let_in_if_its_minimum_fits(what: str, plugin: str, needs: Thing | None, phase: str) -> None:
    a = podgroup("a").needs(**needs) if needs else podgroup("a")
    assert phases(outcome(cluster(NODES, a), "gang", plugin)) == {"a": phase}


def test_what_runs_and_what_was_promised_count() -> None:
    """40 cores, 30 in use, factor 1.2: 18 are left; a job of 10 passes, then one of 9 does not, one of 8 does."""
    running = [*podgroup("r").admitted().pods(30, on="n", cpu=1)]
    waiting = [podgroup(name).needs(cpu=cpu).created(number) for number, (name, cpu) in enumerate([("a", 10), ("b", 9), ("c", 8)])]
    result = outcome(cluster(node("n").cpu(40), running, waiting), "gang", "overcommit")
    assert phases(result) == {"r": "Running", "a": "Inqueue", "b": "Pending", "c": "Inqueue"}


PROMISE_ROWS: list[tuple[str, list[Builder], str]] = [
    ("a job that was let in counts whole", [podgroup("x").needs(cpu=6).admitted(), pod("x").gang("x").on("n").cpu(3)], "Pending"),
    (
        "one that runs counts what is still to come",
        [podgroup("x").needs(cpu=6).phase("Running"), pod("x").gang("x").on("n").cpu(3)],
        "Inqueue",
    ),
    (
        "one that runs short of its minimum counts nothing",
        [podgroup("x", 2).needs(cpu=9).phase("Running"), pod("x").gang("x").on("n").cpu(3)],
        "Inqueue",
    ),
    ("a job of a queue that does not exist is promised nothing", [podgroup("x").queue("nowhere").needs(cpu=9).admitted()], "Inqueue"),
    (
        "gated pods do not count",
        [podgroup("x").needs(cpu=6).admitted(), pod("x").gang("x").cpu(6).having("spec", "schedulingGates", value=[{"name": "g"}])],
        "Inqueue",
    ),
]


@pytest.mark.parametrize(("what", "before", "phase"), PROMISE_ROWS, ids=[row[0] for row in PROMISE_ROWS])
def test_what_counts_as_promised(what: str, before: list[Builder], phase: str) -> None:
    made = cluster(node("n").cpu(10), before, podgroup("a").needs(cpu=5).created(9))
    assert phases(outcome(made, "gang", "overcommit", actions="enqueue"))["a"] == phase


def test_a_cluster_that_shrank_below_what_runs_lets_nothing_more_in() -> None:
    made = cluster(node("n").cpu(1), podgroup("r").admitted(), pod("r").gang("r").on("n").cpu(8), podgroup("a").needs(cpu="1m"))
    assert phases(outcome(made, "gang", "overcommit"))["a"] == "Pending"


def test_the_refusal_names_what_is_short() -> None:
    made = cluster(node("n").has(cpu=1, memory="1Gi"), podgroup("a").needs(cpu=9, memory="9Gi"))
    with opened(made, "overcommit") as session:
        assert not session.job_enqueueable(made.jobs["default/a"])
        assert session.not_admitted["default/a"] == (
            "resource in cluster is overused: overused cpu, overused memory. 1.2 times the cluster: 9 cpu asked for, 0 held or promised, "
            "1.2 allowed; 9Gi memory asked for, 0 held or promised, 1.2Gi allowed; it can never run within this limit"
        )


def test_a_job_without_minimum_is_let_in() -> None:
    made = cluster(node("n").cpu(1), podgroup("a"))
    with opened(made, "overcommit") as session:
        assert session.job_enqueueable(made.jobs["default/a"])
