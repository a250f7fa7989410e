"""Of jobs that wait for the same one is tried, and what it is told is told to all; until something changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import astuple

from pumice.api.annotations import QUEUE_GATE
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.job_classes import MEMORY, filled
from pumice.scheduler.framework.observer import Observer
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.task import Task
from pumice.testing import cluster, node, pod, podgroup, priority_class, queue
from pumice.testing.scene import NOW, policy

POLICY = policy("enqueue, allocate, backfill", ["gang", "predicates"])


def gangs(*names: str, size: int = 2, phase: str = "Inqueue", **asked: Any) -> list[Any]:
    groups = [podgroup(name, size).phase(phase) for name in names]
    pods = [member for name in names for member in pod(name).gang(name).cpu(asked.get("cpu", 2)).times(size)]
    return [*groups, *pods]


class Turns(Observer):
    """Which pods actions looked for nodes for, in a cycle that may treat jobs alike."""

    needs_full_cycles = False

    def __init__(self) -> None:
        self.names: list[str] = []

    def turn(self, task: Task) -> None:
        self.names.append(task.name)


def decided(made: Cluster, by: Policy = POLICY) -> tuple[Decisions, list[str]]:
    turns = Turns()
    return cycle(made, by, NOW, observer=turns), turns.names


def messages(decisions: Decisions) -> dict[str, str]:
    return {waits.task.name: waits.message for waits in decisions.waiting}


def test_the_others_are_refused_with_their_own_names() -> None:
    made = cluster(node("n").cpu(1).pods(9), *gangs("a", "b", "c"))
    decisions, turns = decided(made)
    assert turns == ["a-0"]
    assert [group.job.name for group in decisions.groups] == ["a", "b", "c"]
    told = messages(decisions)
    assert [*told] == ["a-0", "a-1", "b-0", "b-1", "c-0", "c-1"]
    assert "Origin reason is c-0: 0/1 nodes" in told["c-1"] and told["c-1"].replace("c-0", "a-0") == told["a-1"]
    assert [group.condition.message.count(f"{group.job.name}-0") for group in decisions.groups if group.condition] == [1, 1, 1]


def test_a_place_that_was_found_in_thought_is_told_with_the_pods_own_name() -> None:
    made = cluster(node("n").cpu(2).pods(9), *gangs("a", "b"))
    assert messages(decided(made)[0])["b-0"].startswith("Pod default/b-0 can possibly be assigned to n")


def test_after_a_change_the_next_is_tried_himself() -> None:
    made = cluster(node("n").cpu(9).pods(9), *gangs("a", "b", "c", "d"))
    decisions, turns = decided(made)
    assert [bind.task.job.name for bind in decisions.binds if bind.task.job] == ["a", "a", "b", "b"]
    assert "c-0" in turns and "d-0" not in turns
    assert [*messages(decisions)] == ["c-0", "c-1", "d-0", "d-1"]


@pytest.mark.parametrize("members", [["a", "b"], ["b", "a"]])
def test_only_jobs_that_changed_are_looked_at_again(members: list[str]) -> None:
    made = cluster(node("n").cpu(1).pods(9), *gangs(*members))
    decided(made)
    made.put(*podgroup("c", 2).phase("Inqueue").build())
    for member in pod("c").gang("c").cpu(2).times(2):
        made.put(*member.build())
    made.remove("PodGroup", "default/b")
    before = made.memory[MEMORY]
    decisions, turns = decided(made)
    assert made.memory[MEMORY] is before and turns == ["a-0"]
    assert [group.job.name for group in decisions.groups] == ["a", "c"]


def test_who_stands_otherwise_is_tried_himself() -> None:
    others = {
        "gated": pod("gated").gang("gated").cpu(2).annotation(QUEUE_GATE, "true"),
        "nominated": pod("nominated").gang("nominated").cpu(2).having("status", "nominatedNodeName", value="n"),
        "narrow": pod("narrow").gang("narrow").cpu(2),
    }
    groups = [podgroup(name, 1).phase("Inqueue") for name in others]
    groups[-1] = groups[-1].having("spec", "networkTopology", value={"mode": "soft"})
    made = cluster(node("n").cpu(1).pods(9), *gangs("a", "b", size=1), *groups, *others.values())
    assert set(decided(made)[1]) == {"a-0", *others}


def test_pods_that_ask_for_nothing_are_placed_one_by_one() -> None:
    made = cluster(node("n").cpu(1).pods(3), *(podgroup(name, 2).phase("Inqueue") for name in "ab"))
    for name in "ab":
        for member in pod(name).gang(name).times(2):
            made.put(*member.build())
    decisions, _ = decided(made)
    assert [bind.task.name for bind in decisions.binds] == ["a-0", "a-1", "b-0"]


def one_victim() -> Cluster:
    """preempt makes room for the first alone; the others were told otherwise by then, and allocate tells them more."""
    return cluster(
        *(priority_class("high", 9), priority_class("low", 1), queue("default")),
        *(node("n").cpu(2).pods(9), podgroup("old", 0).phase("Running").priority_class("low"), pod("old").gang("old").cpu(2).on("n")),
        *(podgroup(name, 1).phase("Inqueue").priority_class("high") for name in "abc"),
        *(pod(name).gang(name).cpu(2) for name in "abc"),
    )


def room_in_between() -> Cluster:
    """Those in front of the small gang are refused on a node with room, those behind it on a full one."""
    return cluster(node("n").cpu(4).pods(5), *gangs("a", "b", "d", "e", cpu=9), *gangs("c", size=4, cpu=1))


def half_a_gang() -> Cluster:
    """The first pod finds a place each time, and is put back."""
    return cluster(node("n").cpu(3).pods(5), *gangs("a", "b"), *gangs("c", size=1, cpu=1))


def roles_that_fail() -> Cluster:
    """A role that found no node is not tried again in its job: neither in those that part."""
    members = [pod(name).gang(name).cpu(3).times(2) for name in "abd"]
    large = [member.annotation("volcano.sh/task-spec", "large") for times in members for member in times]
    made = cluster(node("n").cpu(4).pods(5), *(podgroup(name, 2).phase("Inqueue") for name in "abd"), *large)
    for item in gangs("c", size=4, phase="Pending", cpu=1):
        made.put(*item.build())
    return made


def elastic() -> Cluster:
    """Who came after the first goes on with the tasks that were not tried in his first turn, not with those that found no node."""
    made = cluster(node("n").cpu(2).pods(9), node("m").cpu(2).pods(9).label("disk", "fast"))
    for name in "abc":
        members = [pod(f"{name}{number}").gang(name).cpu(1 + (number == 0)) for number in range(3)]
        for item in (podgroup(name, 1).phase("Inqueue"), members[0].selector("disk", "fast"), *members[1:]):
            made.put(*item.build())
    return made


@pytest.mark.parametrize("actions", ["allocate", "preempt, allocate, enqueue, allocate, backfill"])
@pytest.mark.parametrize("world", [elastic, one_victim, room_in_between, half_a_gang, roles_that_fail])
def test_all_is_told_as_if_each_was_tried(world: Callable[[], Cluster], actions: str) -> None:
    by = policy(actions, ["priority", "gang", "predicates"])
    together, apart = cycle(world(), by, NOW), cycle(world(), by, NOW, observer=Observer())
    assert messages(together) == messages(apart) and together.waiting[0].task.name == apart.waiting[0].task.name
    assert [astuple(group)[1:] for group in together.groups] == [astuple(group)[1:] for group in apart.groups]
    assert [bind.task.name for bind in together.binds] == [bind.task.name for bind in apart.binds]
    assert [each.task.name for each in together.evictions] == [each.task.name for each in apart.evictions]


def test_a_blank_is_filled_with_the_name_of_the_task_that_it_counts() -> None:
    made = cluster(*gangs("a"))
    assert filled("no \0001\000, nor \0000\000", [*made.tasks.values()]) == "no a-1, nor a-0"
    assert filled("nobody", []) == "nobody"
