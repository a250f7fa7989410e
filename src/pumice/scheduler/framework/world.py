"""What a cycle may ask of those who call it, through small protocols so that it stays pure: the world outside, and whose turn it is.

The live loop passes measurements, HTTP extenders and a queue; files and simulations pass what they have, by default nothing.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from msgspec import Struct

from pumice.scheduler.model.nodes import Nodes
from pumice.scheduler.model.resources import Mask, NDArray
from pumice.scheduler.model.task import Task

FRESH_S = 300.0


class Usage(Struct, frozen=True):
    """Measured use of a node, in percent."""

    cpu: float
    memory: float
    measured_at: float  #: seconds since 1970

    def is_fresh(self, now: float) -> bool:
        """Whether it still tells something: what is older is not acted upon."""
        return now - self.measured_at <= FRESH_S


class ExtenderService(Protocol):
    """A service that is asked over HTTP. Raises OSError or ValueError if it cannot answer."""

    def call(self, verb: str, arguments: dict[str, Any]) -> Any: ...


class World(Protocol):
    def usage(self, node: str) -> Usage | None:
        """The node's measured use, if there is any."""

    def extender(self, url: str, timeout_s: float, options: dict[str, Any]) -> ExtenderService | None:
        """A connection to an extender; None where there are none."""


class Nowhere:
    """No measurements, no extenders."""

    def usage(self, node: str) -> Usage | None:
        return None

    def extender(self, url: str, timeout_s: float, options: dict[str, Any]) -> ExtenderService | None:
        return None


NOWHERE = Nowhere()


def measured(world: World, nodes: Nodes, now: float) -> tuple[Mask, NDArray[np.float64]]:
    """Nodes with a fresh measurement, and [cpu and memory, n] of all, 0..1."""
    known, fractions = np.zeros(len(nodes), bool), np.zeros((2, len(nodes)))
    for row in nodes:
        found = world.usage(nodes.names[row])
        if found is not None and found.is_fresh(now):
            known[row] = True
            fractions[:, row] = found.cpu / 100, found.memory / 100
    return known, fractions


# Which pods of kube-scheduler's profiles a cycle tries.
#
# A loop that runs for long gives its own queue, which remembers between cycles who waits for what, and who backs off
# (`scheduler/kube/scheduling_queue.py`). Files and tests decide once: there everybody is tried (`EVERYBODY`).


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
