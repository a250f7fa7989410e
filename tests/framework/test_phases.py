"""What a PodGroup's phase is after a session, by where its pods stand; and what its pods are told while it is not let in."""

from __future__ import annotations

import pytest

from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import GroupCondition
from pumice.scheduler.framework.job_status import phase_of
from pumice.scheduler.model import status
from pumice.testing import cluster, node, pod, podgroup, queue, schedule
from pumice.testing.scene import NOW, policy

STATES = {
    "pending": status.PENDING,
    "placed": status.ALLOCATED,
    "binding": status.BINDING,
    "bound": status.BOUND,
    "running": status.RUNNING,
    "leaving": status.RELEASING,
    "succeeded": status.SUCCEEDED,
    "failed": status.FAILED,
}
OFF_NODE = ("pending", "succeeded", "failed")


@pytest.mark.parametrize(
    ("least", "before", "states", "after"),
    [
        (2, "Inqueue", "running running", "Running"),
        (2, "Inqueue", "running bound", "Running"),
        (2, "Inqueue", "bound bound", "Running"),
        (2, "Inqueue", "running binding", "Inqueue"),
        (2, "Inqueue", "running placed", "Inqueue"),
        (2, "Inqueue", "running failed", "Running"),
        (2, "Running", "running leaving", "Running"),
        (2, "Running", "failed leaving", "Running"),
        (2, "Running", "succeeded succeeded", "Completed"),
        (2, "Running", "succeeded failed", "Completed"),
        (2, "Running", "succeeded running", "Running"),
        (2, "Running", "running pending", "Pending"),
        (2, "Inqueue", "running pending", "Inqueue"),
        (2, "Inqueue", "pending pending", "Inqueue"),
        (2, "Pending", "pending pending", "Pending"),
        (2, "Unknown", "pending pending", "Pending"),
        (1, "Inqueue", "running pending", "Running"),
        (0, "Inqueue", "pending", "Inqueue"),
        (0, "Running", "pending", "Pending"),
        (0, "Running", "running", "Running"),
        (0, "Running", "succeeded", "Completed"),
        (0, "Running", "", "Completed"),
        (0, "Pending", "", "Pending"),
        (0, "Inqueue", "", "Inqueue"),
        (1, "Running", "", "Pending"),
    ],
)
def test_the_phase_follows_the_pods(least: int, before: str, states: str, after: str) -> None:
    wanted = states.split()
    made = cluster(node("n").cpu(9), podgroup("g", least).phase(before), *pod("p").cpu(1).gang("g").times(len(wanted)))
    for task, state in zip(list(made.tasks.values()), wanted, strict=True):
        if state != "pending":
            made.move(task, STATES[state], -1 if state in OFF_NODE else 0)
    made.check()
    job = made.jobs["default/g"]
    assert phase_of(job, unschedulable=False) == after
    assert phase_of(job, unschedulable=True) == ("Unknown" if "running" in wanted else after)


def test_a_pod_of_a_job_that_was_not_let_in_is_told_why_its_own_job_was_not() -> None:
    groups = [podgroup(name).needs(**needs) for name, needs in (("a", {"cpu": 99}), ("b", {"memory": "99Gi"}))]
    pods = [pod(name).cpu(1).gang(name) for name in "ab"]
    waiting = schedule(cluster(node("n").cpu(4).memory("4Gi"), *groups, *pods), "enqueue, allocate", "gang", "overcommit").waiting
    assert "Not let in: resource in cluster is overused: overused cpu. " in waiting["default/a"]
    assert "Not let in: resource in cluster is overused: overused memory. " in waiting["default/b"]


def test_a_pod_that_waits_for_those_who_leave_anyway_is_not_nominated() -> None:
    made = cluster(node("n").cpu(2), podgroup("o"), pod("old").cpu(2).gang("o").on("n").leaving(), podgroup("g"), pod("p").cpu(2).gang("g"))
    decided = cycle(made, policy("enqueue, allocate", ["gang", "predicates"]), NOW)
    assert [(place.task.name, place.node) for place in decided.pipelined] == [("p", "n")]
    assert decided.nominations == {}
    assert [group.condition for group in decided.groups if group.job.name == "g"] == [
        GroupCondition(
            "Unschedulable",
            "NotEnoughResources",
            "1/1 tasks in gang unschedulable: pod group is not ready, 1 Pipelined, 1 minAvailable",
        )
    ]


def test_the_phase_is_told_once_the_queue_is_known() -> None:
    made = cluster(node("n").cpu(9), podgroup("g").queue("late").phase("Inqueue"), pod("p").cpu(1).gang("g").on("n"))
    conf = policy("allocate", ("gang",))
    assert not cycle(made, conf, NOW).groups
    made.put(*queue("late").build())
    assert [(group.job.name, group.phase) for group in cycle(made, conf, NOW).groups] == [("g", "Running")]
