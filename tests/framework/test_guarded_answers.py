"""Answers that a guard lets through as they are, faults of Pumice's own plugins, and what plugins from outside may not answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.scheduler.config import config_text, read_configurations
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.hook_answers import Vote
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.plugin_guard import Failure, Guard
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.registry import PLUGINS
from pumice.testing import cluster, node, pod, podgroup, session
from pumice.testing.scene import NOW, policy

PROFILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {filter: {enabled: [{name: lost}]}, score: {enabled: [{name: lost}]}}}]
"""


class Lost(Plugin):
    """Cannot score."""

    name = "lost"

    def score(self, task: Any, nodes: Any) -> Any:
        raise ZeroDivisionError("of the author")


class Vague(Plugin):
    """Answers with numbers where booleans belong."""

    name = "lost"

    def filter(self, task: Any, nodes: Any) -> Any:
        return np.zeros(len(nodes))


class Shut(Plugin):
    """Cannot open."""

    name = "lost"

    def open(self, session: Any) -> None:
        raise ZeroDivisionError("of the author")


class NoFilters(Plugin):
    """Cannot give its filters."""

    name = "lost"

    def filters(self) -> Any:
        raise ZeroDivisionError("of the author")


class NoScorers(Plugin):
    """Cannot give its scorers."""

    name = "lost"

    def scorers(self) -> Any:
        return 7


@pytest.mark.parametrize(
    ("hook", "answer", "question"),
    [
        ("victim_queue_order", -1, ("left", "right", "preemptor")),
        ("explain_not_allocatable", "short", ("queue", "task")),
        ("hyper_node_order", [1.0, 2.0], ("part", ["a", "b"])),
        ("preemptable", None, ("evictor", [])),
        ("reclaimable", Vote.REJECT, ("evictor", [])),
    ],
)
def test_a_right_answer_passes_unchanged(hook: str, answer: Any, question: tuple[Any, ...]) -> None:
    told: list[Failure] = []
    guard = Guard(Lost(), lambda failure, about: told.append(failure))
    asked = guard.hook(hook, lambda *_: answer)
    assert asked(*question) == answer and not told


def test_a_filter_that_answers_no_booleans_is_named_in_the_reason() -> None:
    made = cluster(node("a").cpu(1), podgroup("g"), pod("p").cpu(1).gang("g"))
    decided = cycle(made, policy("enqueue, allocate", ["gang", Vague]), NOW)
    assert not decided.binds and "it must be an array of booleans" in decided.waiting[0].message


def test_own_plugin_that_cannot_open_ends_a_cycle_and_is_named_by_a_guarded_one() -> None:
    class Ours(Plugin):
        name = "ours"

        def open(self, session: Any) -> None:
            raise ZeroDivisionError("of ours")

    Ours.__module__ = "pumice.scheduler.plugins.volcano.ours"
    made = cluster(node("a").cpu(1), podgroup("g"), pod("p").cpu(1).gang("g"))
    with pytest.raises(ZeroDivisionError):
        cycle(made, policy("enqueue, allocate", ["gang", Ours]), NOW)
    made.check()
    decided = cycle(made, policy("enqueue, allocate", ["gang", Ours]), NOW, guarded=True)
    assert [(failure.plugin, failure.hook) for failure in decided.failures] == [("ours", "open")] and not decided.binds
    made.check()


@pytest.mark.parametrize(
    ("kind", "reason", "told"),
    [
        (Lost, "SchedulerError", "plugin lost failed in score"),
        (Vague, "Unschedulable", "plugin lost failed in filter"),
        (Shut, "Unschedulable", "plugin lost failed in open"),
        (NoFilters, "Unschedulable", "plugin lost failed in filters"),
        (NoScorers, "Unschedulable", "plugin lost failed in scorers"),
    ],
)
def test_a_plugin_of_a_profile_that_fails_refuses_the_pod_and_is_named(kind: type[Plugin], reason: str, told: str) -> None:
    found, _ = read_configurations([config_text(PROFILE, "test")], {**PLUGINS, "lost": kind})
    made = Cluster(("default-scheduler",))
    for one in (node("a").cpu(1), node("b").cpu(1), pod("p").cpu(1).scheduler("default-scheduler")):
        made.put(*one.build())
    decided = cycle(made, found, NOW)
    assert not decided.binds and [waits.reason for waits in decided.waiting] == [reason]
    assert told in decided.waiting[0].message and len(decided.failures) == 1
    made.check()


@pytest.mark.parametrize(("kind", "hook"), [(Shut, "open"), (NoScorers, "scorers")])
def test_a_plugin_that_a_profile_names_for_its_scores_alone_refuses_as_well(kind: type[Plugin], hook: str) -> None:
    scores_only = PROFILE.replace("filter: {enabled: [{name: lost}]}, ", "")
    found, _ = read_configurations([config_text(scores_only, "test")], {**PLUGINS, "lost": kind})
    made = Cluster(("default-scheduler",))
    for one in (node("a").cpu(1), node("b").cpu(1), pod("p").cpu(1).scheduler("default-scheduler")):
        made.put(*one.build())
    decided = cycle(made, found, NOW)
    assert not decided.binds and f"plugin lost failed in {hook}" in decided.waiting[0].message


@pytest.mark.parametrize("kind", [NoFilters, NoScorers])
def test_a_plugin_of_a_tier_that_cannot_give_its_rules_refuses_the_pod_and_is_named(kind: type[Plugin]) -> None:
    made = cluster(node("a").cpu(1), podgroup("g"), pod("p").cpu(1).gang("g"))
    decided = cycle(made, policy("enqueue, allocate", ["gang", kind]), NOW)
    assert not decided.binds and "plugin lost failed in" in decided.waiting[0].message and len(decided.failures) == 1


def test_which_policies_read_volcanos_kinds() -> None:
    gangs = policy("enqueue, allocate", ["gang"])
    plain, _ = read_configurations([config_text(PROFILE.partition("profiles")[0], "test")], PLUGINS)
    own, _ = read_configurations([config_text(PROFILE, "test")], {**PLUGINS, "lost": Lost})
    assert [each.reads_volcano for each in (gangs, plain, own)] == [True, False, True]


def test_what_waits_since_others_gather_is_told_nothing_and_looked_at_again_when_that_ends() -> None:
    made = cluster(node("a").cpu(5), podgroup("g", 1).phase("Pending"), *pod("p").cpu(1).gang("g").times(3))
    gathers = replace(policy("enqueue, allocate", ["gang"]), gathering_s=1.0)
    decided = cycle(made, gathers, NOW)
    assert len(decided.binds) == 1 and not decided.waiting
    assert len(cycle(made, gathers, NOW + 2).binds) == 2


def test_a_pipelined_task_that_was_taken_back_is_not_decided() -> None:
    made = cluster(node("a").cpu(1), podgroup("o"), pod("o").cpu(1).gang("o").on("a").leaving(), podgroup("g"), pod("p").cpu(1).gang("g"))
    with session(made, "gang") as opened:
        task = made.tasks["default/p"]
        with opened.statement() as statement:
            statement.pipeline(task, 0)
            statement.displace(task)
            statement.commit()
        assert not opened.undecided or all(each.task.status != task.status for each in opened.undecided)
        assert not opened.decisions.binds and task.node_name == ""
    made.check()
