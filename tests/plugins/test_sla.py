"""sla: deadlines order jobs, and a job whose time is up is let in whatever later tiers say."""

from __future__ import annotations

import pytest
from scene import binds, opened, outcome, phases

from pumice.testing import NOW, PodGroupBuilder, cluster, node, pod, podgroup

FULL = ("sla, gang", "overcommit")


def waiting(name: str, time: str = "", minutes: float = 60, minimum: int = 1) -> PodGroupBuilder:
    """Since so many minutes."""
    return podgroup(name, minimum).annotations({"sla-waiting-time": time} if time else {}).created(NOW - 60 * minutes)


def test_a_job_whose_waiting_time_is_up_is_let_in_against_overcommit() -> None:
    late, early = (waiting(name, "10m", minutes).needs(cpu=9) for name, minutes in (("late", 20), ("early", 5)))
    assert phases(outcome(cluster(node("n").cpu(1), late, early), *FULL)) == {"late": "Inqueue", "early": "Pending"}


@pytest.mark.parametrize(
    ("argument", "phase"),
    [("30m", "Inqueue"), ("1h", "Inqueue"), ("3601s", "Pending"), ("2h", "Pending"), ("0s", "Pending")],
)
def test_the_argument_is_the_waiting_time_of_all_jobs(argument: str, phase: str) -> None:
    tiers = (f"{{name: sla, arguments: {{sla-waiting-time: {argument}}}}}", "overcommit")
    assert phases(outcome(cluster(node("n").cpu(1), waiting("a").needs(cpu=9)), *tiers)) == {"a": phase}


@pytest.mark.parametrize(("own", "phase"), [("2h", "Pending"), ("0s", "Inqueue"), ("-1h", "Inqueue"), ("soon", "Inqueue")])
def test_a_jobs_own_waiting_time_wins_over_the_argument_if_it_is_one(own: str, phase: str) -> None:
    tiers = ("{name: sla, arguments: {sla-waiting-time: 30m}}", "overcommit")
    assert phases(outcome(cluster(node("n").cpu(1), waiting("a", own).needs(cpu=9)), *tiers)) == {"a": phase}


def test_the_earlier_deadline_is_served_first_and_jobs_without_one_last() -> None:
    jobs = [
        waiting("none", "", 59.9).admitted(),
        waiting("far", "2h", 59.8).admitted(),
        waiting("near", "1h", 59).admitted(),
        waiting("same", "59m", 58).admitted(),
    ]
    tasks = [pod(f"{name}-1").gang(name).cpu(1) for name in ("none", "far", "near", "same")]
    served = ([], ["near-1"], ["near-1", "same-1"], ["far-1", "near-1", "same-1"])
    for room, names in enumerate(served):
        assert sorted(binds(outcome(cluster(node("n").cpu(room), jobs, tasks), "sla, gang", "predicates"))) == names


def test_a_gang_whose_time_is_up_keeps_what_it_could_reserve() -> None:
    made = cluster(node("n").cpu(2), waiting("a", "10m", minimum=3).admitted(), pod("a").gang("a").cpu(1).times(3))
    with opened(made, "sla", "gang") as session:
        assert session.job_pipelined(made.jobs["default/a"])
    with opened(made, "gang, sla") as session:
        assert not session.job_pipelined(made.jobs["default/a"])
