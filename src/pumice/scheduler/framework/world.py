"""What a cycle needs from its caller, as small protocols, so that the cycle stays pure: the world outside, and which pods to try.

The live loop passes measurements, HTTP extenders and a scheduling queue; files and simulations pass what they have, by default nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from typing import Any, Protocol, TypeVar

import numpy as np
from msgspec import Struct

from pumice.scheduler.model.nodes import Nodes
from pumice.scheduler.model.resources import Mask, NDArray
from pumice.scheduler.model.task import Task

FRESH_S = 300.0


class Usage(Struct, frozen=True):
    """The measured use of a node, in percent."""

    cpu: float
    memory: float
    measured_at: float  #: seconds since 1970

    def is_fresh(self, now: float) -> bool:
        """Whether the measurement is recent enough (FRESH_S) to be used."""
        return now - self.measured_at <= FRESH_S


class ExtenderService(Protocol):
    """A connection to an extender over HTTP. `call` raises OSError or ValueError if the extender cannot answer."""

    def call(self, verb: str, arguments: dict[str, Any]) -> Any: ...


class World(Protocol):
    def usage(self, node: str) -> Usage | None:
        """The node's measured use; None if there is no measurement."""

    def extender(self, url: str, timeout_s: float, options: dict[str, Any]) -> ExtenderService | None:
        """A connection to an extender; None if this world has no extenders."""


class Nowhere:
    """A world without measurements and extenders."""

    def usage(self, node: str) -> Usage | None:
        return None

    def extender(self, url: str, timeout_s: float, options: dict[str, Any]) -> ExtenderService | None:
        return None


NOWHERE = Nowhere()


def measured(world: World, nodes: Nodes, now: float) -> tuple[Mask, NDArray[np.float64]]:
    """A mask of the nodes with a fresh measurement, and [cpu and memory, n]: the measured use of each node, 0..1, and 0 without one."""
    known, fractions = np.zeros(len(nodes), bool), np.zeros((2, len(nodes)))
    for row in nodes:
        found = world.usage(nodes.names[row])
        if found is not None and found.is_fresh(now):
            known[row] = True
            fractions[:, row] = found.cpu / 100, found.memory / 100
    return known, fractions


# Which pods of kube-scheduler's profiles a cycle tries.
#
# The live loop passes a scheduling queue, which remembers between cycles which pods wait for which events, and which back off
# (`scheduler/kube/scheduling_queue.py`). Files and tests run one cycle, in which all pods are tried (`EVERYBODY`).


class WaitingGroup(Protocol):
    """A group of pods that is tried as a whole, with its pending members. `uid`: unique among groups and pods."""

    @property
    def uid(self) -> str: ...
    @property
    def tasks(self) -> Sequence[Task]: ...


class GroupOutcome(Enum):
    """The outcome of an attempt to place a group."""

    PLACED = "at least its minimum has nodes"
    REFUSED = "it does not fit"
    FAILED = "the attempt ended in an error"


G = TypeVar("G", bound=WaitingGroup)


class WaitingPods(Protocol):
    def due(self, ready: list[Task], now: float) -> list[Task]:
        """The pods to be tried now, out of the pods without a node in `ready`, in the same order."""

    def placed(self, task: Task) -> None:
        """Called when the pod has got a node."""

    def refused(self, task: Task, by: frozenset[str], now: float) -> None:
        """Called when no node fits the pod. `by`: names of the rules that refused it."""

    def failed(self, task: Task, now: float) -> None:
        """Called when the attempt to place the pod ended in an error."""

    def nomination_ended(self, task: Task) -> None:
        """Called when the room held for the pod becomes free for others, while the pod still has its nominated node."""

    def due_groups(self, ready: list[G], present: Collection[str], now: float) -> list[G]:
        """The groups to be tried now, out of those in `ready`, in the same order. `present`: the uids of all groups that wait."""

    def group_tried(self, group: WaitingGroup, outcome: GroupOutcome, left: Sequence[Task], now: float) -> None:
        """Called when a group was tried. `left`: its members that still have no node."""

    def tries(self, task: Task) -> tuple[int, float]:
        """How often a pending member of a group was tried, and when the last time."""


class Everybody:
    """A scheduling queue that remembers nothing: all pods are tried."""

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

    def due_groups(self, ready: list[G], present: Collection[str], now: float) -> list[G]:
        return ready

    def group_tried(self, group: WaitingGroup, outcome: GroupOutcome, left: Sequence[Task], now: float) -> None:
        pass

    def tries(self, task: Task) -> tuple[int, float]:
        return 0, 0.0


EVERYBODY = Everybody()


class Only(Everybody):
    """A scheduling queue in which only these pods of kube-scheduler's profiles are tried."""

    def __init__(self, tasks: list[Task]) -> None:
        self._tasks = set(tasks)

    def due(self, ready: list[Task], now: float) -> list[Task]:
        return [task for task in ready if task in self._tasks]

    def due_groups(self, ready: list[G], present: Collection[str], now: float) -> list[G]:
        return [group for group in ready if not self._tasks.isdisjoint(group.tasks)]
