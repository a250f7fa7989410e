"""Which pods of kube-scheduler's profiles a cycle tries.

A loop that runs for long gives its own queue, which remembers between cycles who waits for what, and who backs off
(`scheduler/kube/scheduling_queue.py`). Files and tests decide once: there everybody is tried (`EVERYBODY`).
"""

from __future__ import annotations

from typing import Protocol

from pumice.scheduler.model.task import Task


class WaitingPods(Protocol):
    def due(self, ready: list[Task], now: float) -> list[Task]:
        """Those of the pods without a node that are to be tried now, in the order given."""

    def placed(self, task: Task) -> None:
        """It has a node."""

    def refused(self, task: Task, by: frozenset[str], now: float) -> None:
        """No node will do; the rules of these names refused it."""

    def failed(self, task: Task, now: float) -> None:
        """Its attempt ended in an error."""

    def nomination_ended(self, task: Task) -> None:
        """The room that was held for it is free for others. Told while it still says where that was."""


class Everybody:
    """A queue that remembers nothing."""

    def due(self, ready: list[Task], now: float) -> list[Task]:
        return ready

    def placed(self, task: Task) -> None:
        pass

    def refused(self, task: Task, by: frozenset[str], now: float) -> None:
        pass

    def failed(self, task: Task, now: float) -> None:
        pass

    def nomination_ended(self, task: Task) -> None:
        pass


EVERYBODY = Everybody()


class Only(Everybody):
    """Of the pods of kube-scheduler's profiles only these are tried."""

    def __init__(self, tasks: list[Task]) -> None:
        self._tasks = set(tasks)

    def due(self, ready: list[Task], now: float) -> list[Task]:
        return [task for task in ready if task in self._tasks]
