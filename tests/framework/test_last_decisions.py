"""A cycle in which nothing can have become otherwise says what the last one said; and what makes one look again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.scheduler.actions.giveback import PATIENCE_S
from pumice.scheduler.actions.preempt import Preempt, PreemptArgs
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.observer import Observer
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.plugins.volcano.gang import Gang
from pumice.testing import cluster, node, pod, podgroup, priority_class, queue
from pumice.testing.scene import NOW, policy

POLICY = policy("enqueue, allocate, backfill", ["gang", "predicates"])


def too_large() -> Cluster:
    return cluster(node("a").cpu(2).pods(9), podgroup("large", 2), *pod("large").cpu(2).gang("large").times(2))


def settled(made: Cluster, by: Policy = POLICY, now: float = NOW) -> Decisions:
    """What is said again and again: the first cycle may let jobs in, the second finds that nothing changes."""
    cycle(made, by, now)
    cycle(made, by, now)
    return cycle(made, by, now)


def test_nothing_has_changed() -> None:
    made = too_large()
    last = settled(made)
    assert cycle(made, POLICY, NOW + 1000) is last
    assert [waits.task.name for waits in last.waiting] == ["large-0", "large-1"]


def test_a_policy_without_plugins() -> None:
    made, by = too_large(), Policy(POLICY.actions[:1], ())
    last = settled(made, by)
    assert cycle(made, by, NOW) is last


CHANGES: dict[str, Callable[[Cluster], Any]] = {
    "a node came": lambda made: made.put(*node("b").cpu(2).pods(9).build()),
    "a node went": lambda made: made.remove("Node", "a"),
    "a queue changed": lambda made: made.put(*queue("default").weight(3).build()),
    "a pod came": lambda made: made.put(*pod("other").build()),
    "another phase": lambda made: made.set_phase(made.jobs["default/large"], "Pending"),
    "told again": lambda made: made.changed.update(made.jobs),
}


def test_a_pod_without_a_group_that_was_read_again_makes_it_look_again() -> None:
    made = cluster(node("a").cpu(2), pod("alone").cpu(4))
    last = settled(made)
    made.restore(pod("alone").cpu(1).build()[1])
    assert cycle(made, POLICY, NOW) is not last


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changes_make_it_look_again(change: Callable[[Cluster], Any]) -> None:
    made = too_large()
    last = settled(made)
    change(made)
    assert cycle(made, POLICY, NOW) is not last


def test_another_policy_a_watcher_and_an_earlier_time_make_it_look_again() -> None:
    made = too_large()
    last = settled(made)
    assert cycle(made, POLICY, NOW, observer=Observer()) is not last
    last = settled(made)
    assert cycle(made, POLICY, NOW - 1) is not last
    assert cycle(made, policy("enqueue, allocate", ["gang", "predicates"]), NOW) is not last


def test_what_was_told_of_a_job_only_because_it_had_changed_is_not_told_again() -> None:
    made = too_large()
    made.put(*podgroup("runs").phase("Running").build())
    made.put(*pod("runs").cpu(1).gang("runs").on("a").build())
    settled(made)
    made.changed["default/runs"] = made.jobs["default/runs"]
    assert {group.job.name for group in cycle(made, POLICY, NOW).groups} == {"large", "runs"}
    assert {group.job.name for group in cycle(made, POLICY, NOW).groups} == {"large"}


class Stranger(Plugin):
    name = "stranger"


class Related(Gang):
    name = "related"


@pytest.mark.parametrize("plugin", [Stranger, Related])
def test_plugins_that_do_not_say_what_they_read_are_asked_in_every_cycle(plugin: type[Plugin]) -> None:
    made, by = too_large(), policy("enqueue, allocate", ["gang", "predicates", plugin])
    last = settled(made, by)
    assert cycle(made, by, NOW) is not last


def test_time_is_looked_at_where_it_counts() -> None:
    made, by = too_large(), policy("enqueue, allocate", ["gang", "predicates", "sla"])
    made.put(*podgroup("large", 2).created("2026-01-01T00:00:00Z").annotation("sla-waiting-time", "60s").build())
    last = settled(made, by)
    assert cycle(made, by, NOW + 59) is last
    assert cycle(made, by, NOW + 60) is not last


def test_pods_of_nobody_are_told_once_they_have_waited() -> None:
    made = too_large()
    made.put(*pod("alone").created("2026-01-01T00:00:00Z").build())
    last = settled(made)
    assert cycle(made, POLICY, NOW + 4) is last
    assert "default/alone" in {waits.task.key for waits in cycle(made, POLICY, NOW + 5).waiting}


def test_patience_with_half_a_gang_ends() -> None:
    made = cluster(node("a").cpu(2).pods(9), podgroup("half", 2).phase("Running"), *pod("half").cpu(2).gang("half").times(2))
    first = made.tasks["default/half-0"]
    made.put(*pod("half").cpu(2).gang("half").times(2)[0].on("a").build())
    first.placed_at = NOW
    last = settled(made)
    assert cycle(made, POLICY, NOW + PATIENCE_S - 1) is last
    assert cycle(made, POLICY, NOW + PATIENCE_S) is not last


def waits_for_more_than_goes() -> Cluster:
    """A gang for whose first pod somebody could go, but not for the second."""
    made = cluster(node("a").cpu(4).pods(9), priority_class("high", 9), podgroup("large", 2).phase("Inqueue").priority_class("high"))
    for member in pod("large").cpu(2).gang("large").times(2):
        made.put(*member.build())
    made.put(*podgroup("low", 2).phase("Running").build())
    for member in pod("low").cpu(1).gang("low").times(4):
        made.put(*member.on("a").build())
    return made


@pytest.mark.parametrize(("args", "weighs"), [({}, False), ({"topology_aware": True}, True)])
def test_who_weighs_how_long_victims_have_run_looks_again(args: dict[str, bool], weighs: bool) -> None:
    made, by = waits_for_more_than_goes(), policy("enqueue, allocate", ["gang", "priority", "predicates"])
    evicting = Policy((*by.actions, Preempt(PreemptArgs(**args))), by.tiers)
    last = settled(made, evicting)
    assert (cycle(made, evicting, NOW) is last) is not weighs


def test_without_shortcuts_all_rows_count_as_changed() -> None:
    made, by = cluster(node("a").cpu(2).pods(9), pod("p").cpu(1).gang("g"), podgroup("g", 1)), POLICY
    cycle(made, replace(by, shortcuts=False), NOW)
    assert made.log.rows_since(made.log.position) is None
    cycle(made, by, NOW)
    assert made.log.rows_since(made.log.position) == set()
