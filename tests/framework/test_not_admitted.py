"""What a job hears that enqueue does not let in: which queue and resource, what was asked, held and allowed, whether it can ever run."""

from __future__ import annotations

import pytest

from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import GroupCondition
from pumice.scheduler.framework.hook_answers import Vote
from pumice.scheduler.framework.plugin import Plugin
from pumice.testing import cluster, node, pod, podgroup, queue
from pumice.testing.builders import PodGroupBuilder, QueueBuilder
from pumice.testing.scene import NOW, policy

NUMBERS = "5 cpu asked for, 0 held or promised, 4 allowed; it can never run within this limit"


class Naysayer(Plugin):
    """Lets nobody in, and does not say why."""

    name = "naysayer"

    def job_enqueueable(self, job: object) -> Vote:
        return Vote.REJECT


def waiting(minimum_cpu: int = 5) -> PodGroupBuilder:
    return podgroup("g", 2).queue("q").phase("Pending").needs(cpu=minimum_cpu)


@pytest.mark.parametrize(
    ("plugin", "given", "why"),
    [
        ("proportion", queue("q").capability(cpu=4), f"queue resource quota insufficient: insufficient cpu. Queue q: {NUMBERS}"),
        ("capacity", queue("q").capability(cpu=4), f"queue resource quota insufficient: insufficient cpu. Queue q: {NUMBERS}"),
        ("proportion", queue("q").state("Closed"), "queue q is Closed: it lets no job in until it is open"),
        ("capacity", queue("q").having("status", "state", value="Closing"), "queue q is Closing: it lets no job in until it is open"),
        (Naysayer, queue("q"), "a plugin does not let it in, and does not say why"),
    ],
)
def test_a_group_without_pods_has_the_reason_as_its_condition(plugin: str | type[Plugin], given: QueueBuilder, why: str) -> None:
    made = cluster(node("n").cpu(9), given, waiting())
    decided = cycle(made, policy("enqueue, allocate", ["gang", plugin]), NOW)
    assert [group.condition for group in decided.groups] == [GroupCondition("Unschedulable", "NotEnoughResources", why)]
    assert [(event.reason, event.message) for event in decided.events] == [("Unschedulable", why)]


def test_pods_and_gang_of_a_group_that_has_some_hear_it_too() -> None:
    made = cluster(node("n").cpu(9), queue("q").capability(cpu=4), waiting(), *pod("p").cpu(2).gang("g").times(2))
    decided = cycle(made, policy("enqueue, allocate", ["gang", "proportion"]), NOW)
    condition = decided.groups[0].condition
    assert condition is not None and condition.message.startswith("2/2 tasks in gang unschedulable: ")
    assert all(NUMBERS in text for text in (condition.message, *(waits.message for waits in decided.waiting)))


def test_what_could_run_once_others_have_left_is_not_called_hopeless() -> None:
    running = [podgroup("o").queue("q").needs(cpu=3), pod("o").cpu(3).gang("o").on("n")]
    made = cluster(node("n").cpu(9), queue("q").capability(cpu=4), *running, waiting(2))
    decided = cycle(made, policy("enqueue, allocate", ["gang", "proportion"]), NOW)
    assert decided.events[0].message.endswith("Queue q: 2 cpu asked for, 3 held or promised, 4 allowed")


def test_the_gates_that_hold_pods_are_named_at_the_job() -> None:
    made = cluster(
        node("n").cpu(9),
        podgroup("g", 2),
        *pod("p").cpu(1).gang("g").having("spec", "schedulingGates", value=[{"name": "example.com/wait"}]).times(2),
    )
    decided = cycle(made, policy("enqueue, allocate", ["gang"]), NOW)
    assert decided.groups[0].condition is not None
    assert decided.groups[0].condition.message.endswith("Held by scheduling gates: 2 example.com/wait")


def test_a_job_that_was_let_in_and_has_no_pods_yet_hears_nothing() -> None:
    made = cluster(node("n").cpu(9), queue("q"), waiting(2))
    decided = cycle(made, policy("enqueue, allocate", ["gang", "proportion"]), NOW)
    assert [(group.phase, group.condition) for group in decided.groups] == [("Inqueue", None)] and not decided.events
