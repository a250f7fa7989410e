"""sla: deadlines order jobs, and a job whose time is up is let in whatever later tiers say."""

from __future__ import annotations

from typing import Any

import pytest
from queued import bound, cluster, job, node, opened, outcome, phases, pod
from scene import Thing

FULL = ("sla, gang", "overcommit")
BIG = {"cpu": 9}


def waiting(name: str, time: str = "", born: int = 0, **rest: Any) -> Thing:
    return job(name, born=born, annotations={"sla-waiting-time": time} if time else {}, **rest)


def test_a_job_whose_waiting_time_is_up_is_let_in_against_overcommit() -> None:
    late, early = (waiting(name, "10m", minute * 60, phase="Pending", needs=BIG) for name, minute in (("late", 40), ("early", 55)))
    assert phases(outcome(cluster(node("n", cpu=1), late, early), *FULL)) == {"late": "Inqueue", "early": "Pending"}


@pytest.mark.parametrize(
    ("argument", "phase"),
    [("30m", "Inqueue"), ("1h", "Inqueue"), ("3601s", "Pending"), ("2h", "Pending"), ("0s", "Pending"), ("soon", "Pending")],
)
def test_the_argument_is_the_waiting_time_of_all_jobs(argument: str, phase: str) -> None:
    tiers = (f"{{name: sla, arguments: {{sla-waiting-time: {argument}}}}}", "overcommit")
    assert phases(outcome(cluster(node("n", cpu=1), waiting("a", phase="Pending", needs=BIG)), *tiers)) == {"a": phase}


@pytest.mark.parametrize(("own", "phase"), [("2h", "Pending"), ("0s", "Inqueue"), ("-1h", "Inqueue"), ("soon", "Inqueue")])
def test_a_jobs_own_waiting_time_wins_over_the_argument_if_it_is_one(own: str, phase: str) -> None:
    tiers = ("{name: sla, arguments: {sla-waiting-time: 30m}}", "overcommit")
    assert phases(outcome(cluster(node("n", cpu=1), waiting("a", own, phase="Pending", needs=BIG)), *tiers)) == {"a": phase}


def test_the_earlier_deadline_is_served_first_and_jobs_without_one_last() -> None:
    jobs = [waiting("none", born=1), waiting("far", "2h", 2), waiting("near", "1h", 60), waiting("same", "59m", 120)]
    tasks = [pod(f"{name}-1", name, cpu=1) for name in ("none", "far", "near", "same")]
    served = ([], ["near-1"], ["near-1", "same-1"], ["far-1", "near-1", "same-1"])
    for room, names in enumerate(served):
        assert bound(outcome(cluster(node("n", cpu=room), jobs, tasks), "sla, gang", "predicates")) == names


def test_a_gang_whose_time_is_up_keeps_what_it_could_reserve() -> None:
    made = cluster(node("n", cpu=2), waiting("a", "10m", least=3), [pod(f"a-{i}", "a", cpu=1) for i in range(3)])
    with opened(made, "sla", "gang") as session:
        assert session.job_pipelined(made.jobs["default/a"])
    with opened(made, "gang, sla") as session:
        assert not session.job_pipelined(made.jobs["default/a"])
