"""Which pods of kube-scheduler's profiles a cycle tries.

The live loop passes a scheduling queue, which remembers between cycles which pods wait for which events, and which back off
(`scheduler/kube/scheduling_queue.py`). Files and tests run one cycle, in which all pods are tried (`EVERYBODY`).
"""

from collections.abc import Collection, Sequence
from enum import Enum
from typing import Protocol, TypeVar

from pumice.scheduler.model import Task


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


class WaitingPods:
    """A scheduling queue. This one remembers nothing: all pods are tried."""

    def due(self, ready: list[Task], now: float) -> list[Task]:
        """The pods to be tried now, out of the pods without a node in `ready`, in the same order."""
        return ready

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
        return ready

    def group_tried(self, group: WaitingGroup, outcome: GroupOutcome, left: Sequence[Task], now: float) -> None:
        """Called when a group was tried. `left`: its members that still have no node."""

    def tries(self, task: Task) -> tuple[int, float]:
        """How often a pending member of a group was tried, and when the last time."""
        return 0, 0.0


EVERYBODY = WaitingPods()


class Only(WaitingPods):
    """A scheduling queue in which only these pods of kube-scheduler's profiles are tried."""

    def __init__(self, tasks: list[Task]) -> None:
        self._tasks = set(tasks)

    def due(self, ready: list[Task], now: float) -> list[Task]:
        return [task for task in ready if task in self._tasks]

    def due_groups(self, ready: list[G], present: Collection[str], now: float) -> list[G]:
        return [group for group in ready if not self._tasks.isdisjoint(group.tasks)]
