"""Observers of a cycle: metrics, score tables, records. The cycle itself has no clock.

An observer is called when a stage begins or ends, and for each pod when its turn has come. It does not change what is decided, but it says
how much work the cycle must do for it: whether every cycle runs in full (`needs_full_cycles`), whether reasons are put into words
(`reads_reasons`), and in which way rules are asked (`asking`). `Observer`, the base of all others, ignores all calls.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any

from pumice.scheduler.engine.rules import PLAINLY, Asking
from pumice.scheduler.model import Task


class Stage(Enum):
    """The stages of a cycle, each with the subject that observers are given when it begins and ends."""

    SESSION = "session"  #: the session. A cycle that is decided again begins a second one
    OPEN = "open"  #: a plugin
    ACTION = "action"  #: an action
    ATTEMPTS = "attempts"  #: kube-scheduler's loop, within its action
    GROUP = "group"  #: the attempt of one of Kubernetes' own groups; at its end, the GroupTry
    GROUP_ALGORITHM = "group algorithm"  #: of it, the search for places
    PLACEMENTS = "placements"  #: the placements of a PodGroup; at their end, the PlacementTries
    EVALUATION = "evaluation"  #: a search for victims; at its end, the PreemptionTry
    EXECUTION = "execution"  #: the decision to evict them: the PreemptionTry
    POINT = "point"  #: an extension point of groups; at its end, its name, the code of its status, and the profile
    CLOSE = "close"  #: a plugin


class Observer:
    """The base class of all observers of a cycle."""

    asking: Asking = PLAINLY
    needs_full_cycles = True  #: every cycle runs, even one whose outcome is known, and every job is tried, even one that is like another
    reads_reasons = True  #: whether the reasons why pods wait will be read
    reads_all = False  #: whether those of all pods will be read after each cycle, so that no job is at rest

    def begins(self, stage: Stage, subject: Any) -> None: ...
    def ends(self, stage: Stage, subject: Any) -> None: ...

    def turn(self, task: Task) -> None:
        """Called when an action looks for a node for the task."""

    def attempt(self, task: Task) -> None:
        """Called before kube-scheduler's loop tries the pod."""


class Together(Observer):
    """Several observers as one. The first of them asks the rules."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers
        self.asking = observers[0].asking
        self.needs_full_cycles = any(observer.needs_full_cycles for observer in observers)
        self.reads_reasons = any(observer.reads_reasons for observer in observers)
        self.reads_all = any(observer.reads_all for observer in observers)

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
    needs_full_cycles = False


class ReasonReader(Silent):
    """It reads why each pod waits after each cycle."""

    reads_all = True


SILENT = Silent()
