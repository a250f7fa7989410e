"""resourcequota: a job's minimum must fit into the quotas of its namespace."""

from __future__ import annotations

import pytest
from scene import Thing, conf, cycle_on, outcome, phases

from pumice.testing import Builder, cluster, manifest, node, podgroup

TIERS = "gang, resourcequota"


def quota(hard: Thing, used: Thing, namespace: str = "default") -> Builder:
    return manifest("ResourceQuota", "rq", namespace, spec={"hard": hard}, status={"hard": hard, "used": used})


ROWS: list[tuple[str, Thing, Thing, Thing | None, str]] = [
    ("fits exactly", {"cpu": 10}, {"cpu": 6}, {"cpu": 4}, "Inqueue"),
    ("does not fit", {"cpu": 10}, {"cpu": 6}, {"cpu": "4001m"}, "Pending"),
    ("another spelling is another name", {"requests.cpu": 1}, {}, {"cpu": 4}, "Inqueue"),
    ("the spelling of the quota counts", {"requests.cpu": 1}, {}, {"requests.cpu": 4}, "Pending"),
    ("no minimum", {"cpu": 1}, {"cpu": 1}, None, "Inqueue"),
    ("nothing used yet", {"cpu": 4}, {}, {"cpu": 4}, "Inqueue"),
]


@pytest.mark.parametrize(("what", "hard", "used", "needs", "phase"), ROWS, ids=[row[0] for row in ROWS])
def test_the_minimum_is_held_against_the_quota(what: str, hard: Thing, used: Thing, needs: Thing | None, phase: str) -> None:
    a = podgroup("a").needs(**needs) if needs else podgroup("a")
    assert phases(outcome(cluster(node("n").cpu(64), quota(hard, used), a), TIERS)) == {"a": phase}


def test_jobs_let_in_before_count_and_refused_ones_do_not() -> None:
    jobs = [podgroup(name).needs(cpu=cpu).created(number) for number, (name, cpu) in enumerate([("a", 5), ("b", 4), ("c", 1)])]
    result = outcome(cluster(node("n").cpu(64), quota({"cpu": 10}, {"cpu": 6}), jobs), TIERS)
    assert phases(result) == {"a": "Pending", "b": "Inqueue", "c": "Pending"}


def test_a_job_refused_by_another_plugin_takes_nothing_of_the_quota() -> None:
    jobs = [podgroup("a").needs(cpu=4, memory="1Ti").created(1), podgroup("b").needs(cpu=4).created(2)]
    made = cluster(node("n").cpu(64), quota({"cpu": 4}, {}), jobs)
    assert phases(outcome(made, f"{TIERS}, overcommit")) == {"a": "Pending", "b": "Inqueue"}


def test_a_namespace_without_quota_is_free() -> None:
    made = cluster(node("n").cpu(64), quota({"cpu": 1}, {}, "other"), podgroup("a").needs(cpu=4))
    assert phases(outcome(made, TIERS)) == {"a": "Inqueue"}


def test_the_refusal_says_what_was_asked_used_and_allowed() -> None:
    made = cluster(node("n").cpu(64), quota({"cpu": 10}, {"cpu": 6}), podgroup("a").needs(cpu=5))
    (message,) = (event.message for event in cycle_on(made, conf(TIERS, actions="enqueue")).events)
    assert message == "resource quota insufficient, requested: cpu=5, used: cpu=6, limited: cpu=10 (ResourceQuota default/rq)"
