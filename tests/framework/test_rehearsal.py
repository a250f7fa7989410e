"""A rehearsed cycle decides as a real one does, and leaves no trace."""

from __future__ import annotations

from pumice.scheduler.framework.cycle import cycle, rehearse
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.session import Session
from pumice.testing import cluster, node, pod, podgroup
from pumice.testing.scene import NOW, policy
from tests.kube_scheduler import stage
from tests.topology.racks import ACTIONS, PLUGINS, assert_same, part, racks, state


def test_parts_of_a_gang_have_no_hypernode_after_a_rehearsal() -> None:
    group = podgroup("a", 4).parts("part", 2, 2, 1)
    made, chosen = cluster(*racks(2, 2), group, *part("a", "0", 2), *part("a", "1", 2)), policy(ACTIONS, PLUGINS)
    before = state(made)
    rehearsed = rehearse(made, chosen, NOW)
    assert_same(before, state(made))
    made.check()
    assert {bind.task.name for bind in rehearsed.binds} == {"a-0-0", "a-0-1", "a-1-0", "a-1-1"}
    assert cycle(made, chosen, NOW).binds == rehearsed.binds
    assert [bool(each.allocated_hypernode) for each in made.jobs["default/a"].subjobs] == [True, True]


def test_after_a_rehearsed_preemption_nobody_leaves_and_nobody_is_nominated() -> None:
    chosen = stage.policy()
    made = stage.cluster(chosen, stage.machine("n", 1), stage.existing("low", "n"), stage.waiting("high", priority=9))
    low, high = made.tasks["default/low"], made.tasks["default/high"]
    rehearsed = rehearse(made, chosen, NOW)
    assert (low.deleting, low.disrupted, high.nominated) == (False, False, "")
    made.check()
    real = cycle(made, chosen, NOW)
    assert [each.task for each in rehearsed.evictions] == [each.task for each in real.evictions] == [low]
    assert (rehearsed.nominations, high.nominated) == (real.nominations, "n")


class Diary(Plugin):
    """It keeps what it has seen, deep in its memory."""

    name = "diary"

    def close(self, session: Session) -> None:
        pages = session.memory(self.name).setdefault("pages", {"days": []})
        pages["days"].append(session.now)


def test_memory_of_plugins_is_as_before_after_a_rehearsal_however_deep() -> None:
    made, chosen = cluster(node("a").cpu(1), podgroup("g"), pod("p").cpu(9).gang("g")), policy("allocate", ["gang", Diary])
    cycle(made, chosen, NOW)
    rehearse(made, chosen, NOW + 1)
    assert made.memory["diary"] == {"pages": {"days": [NOW]}}
