"""Several observers as one."""

from __future__ import annotations

from typing import Any

from pumice.scheduler.engine.rules import Asking
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.observer import SILENT, Observer, Stage, Together
from pumice.testing import cluster, node, pod, podgroup
from pumice.testing.scene import NOW, policy
from tests.kube_scheduler import stage


class Recorder(Observer):
    """Keeps all that it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def begins(self, stage: Stage, subject: Any) -> None:
        self.told.append(("begins", stage))

    def ends(self, stage: Stage, subject: Any) -> None:
        self.told.append(("ends", stage))

    def turn(self, task: Any) -> None:
        self.told.append(("turn", task.name))

    def attempt(self, task: Any) -> None:
        self.told.append(("attempt", task.name))


def test_each_is_told_of_a_cycle_of_volcanos_actions() -> None:
    first, second = Recorder(), Recorder()
    made = cluster(node("n").cpu(4), podgroup("g"), pod("p").cpu(1).gang("g"))
    cycle(made, policy("allocate", ["gang"]), NOW, observer=Together([first, second]))
    assert first.told == second.told
    told = [each for each in first.told if each[0] == "turn" or each[1] is Stage.ACTION]
    giveback = [("begins", Stage.ACTION), ("ends", Stage.ACTION)]
    assert told == [("begins", Stage.ACTION), ("turn", "p"), ("ends", Stage.ACTION), *giveback]


def test_each_is_told_of_a_cycle_of_profiles() -> None:
    first, second = Recorder(), Recorder()
    chosen = stage.policy()
    made = stage.cluster(chosen, stage.machine("n", 4), stage.waiting("p"))
    cycle(made, chosen, NOW, observer=Together([first, second]))
    assert first.told == second.told
    assert ("attempt", "p") in first.told


def test_the_first_asks_and_who_wants_to_see_every_cycle_does() -> None:
    asker = Recorder()
    asker.asking = Asking()
    assert Together([asker, SILENT]).asking is asker.asking
    assert [Together(each).needs_full_cycles for each in ([SILENT, asker], [SILENT, SILENT])] == [True, False]
