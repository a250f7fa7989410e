"""Who watches a cycle, without a part in it: metrics, score tables, records. The cycle itself has no clock.

An observer sees what begins and what ends, and each pod when its turn has come; it may ask rules in its own way. It changes nothing.
This one, the base of all others, looks away.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from pumice.scheduler.engine.rules import PLAINLY, Asking
from pumice.scheduler.model.task import Task


class Stage(Enum):
    """What begins and ends, and what is told with it."""

    SESSION = "session"  #: the session. A cycle that is decided again begins a second one
    OPEN = "open"  #: a plugin
    ACTION = "action"  #: an action
    ATTEMPTS = "attempts"  #: kube-scheduler's loop, within its action
    CLOSE = "close"  #: a plugin


class Observer:
    """Base of those who watch a cycle."""

    asking: Asking = PLAINLY
    watches = True  #: it wants to see every cycle take place, even one whose outcome is known
    asks_why = True  #: somebody will read why pods wait

    def begins(self, stage: Stage, subject: Any) -> None: ...
    def ends(self, stage: Stage, subject: Any) -> None: ...

    def turn(self, task: Task) -> None:
        """An action looks for a node for the task."""

    def attempt(self, task: Task) -> None:
        """kube-scheduler's loop is about to try the pod."""


class Together(Observer):
    """Several as one. The first asks the rules."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers
        self.asking = observers[0].asking
        self.watches = any(observer.watches for observer in observers)
        self.asks_why = any(observer.asks_why for observer in observers)

    def begins(self, stage: Stage, subject: Any) -> None:
        for observer in self._observers:
            observer.begins(stage, subject)

    def ends(self, stage: Stage, subject: Any) -> None:
        for observer in self._observers:
            observer.ends(stage, subject)

    def turn(self, task: Task) -> None:
        for observer in self._observers:
            observer.turn(task)

    def attempt(self, task: Task) -> None:
        for observer in self._observers:
            observer.attempt(task)


class Silent(Observer):
    watches = False


SILENT = Silent()
