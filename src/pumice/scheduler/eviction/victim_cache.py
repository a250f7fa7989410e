"""The victims that plugins permitted, node by node: so that of many tasks that find no room only the first asks about every node.

An answer holds for tasks with the same `eviction_cache_key`, and as long as no task moves, or all moves were undone. It only saves
questions: which tasks are evicted is decided by fresh answers.
"""

from collections.abc import Hashable, Iterable

import numpy as np

from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import EPSILON, Mask, Nodes, Table, Task

MOST_CLASSES = 16  #: of evictors, remembered at a time


def held_by(tasks: Iterable[Task], width: int) -> list[float]:
    """The amounts that the tasks hold together, one for each of the `width` dimensions."""
    held = [0.0] * width
    for task in tasks:
        for column, amount in task.template.needs:
            held[column] += amount
    return held


class PermittedVictims:
    """What all permitted victims hold together, node by node, for one class of evictors."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._asked: Mask = np.zeros(len(nodes), bool)
        self._sums: Table = np.zeros_like(nodes.used)

    def note(self, row: int, victims: Iterable[Task]) -> None:
        """Note all tasks that may be evicted from a node."""
        self._asked[row] = True
        self._sums[:, row] = held_by(victims, len(self._sums))

    def hopeful(self, task: Task) -> Mask:
        """The nodes that were not asked about, or that have room for the task once all permitted victims have gone."""
        enough: Mask = np.ones(len(self._nodes), bool)
        for column, amount in task.template.needs:
            enough &= self._nodes.future_idle_in(column) + self._sums[column] > amount - EPSILON
        return ~self._asked | enough


Known = dict[Hashable, PermittedVictims]


class VictimCache:
    """The permitted victims by class of evictors, for victims of one queue, or of all other queues."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: Known = {}
        self._position = 0

    def of(self, evictors: Hashable) -> PermittedVictims:
        known = self.now()
        if evictors not in known:
            if len(known) == MOST_CLASSES:
                del known[next(iter(known))]
            known[evictors] = PermittedVictims(self._session.nodes)
        return known[evictors]

    def now(self) -> Known:
        """The answers that hold in the present state; none if anything has moved since they were given."""
        if len(self._session.cluster.log) != self._position or not self._session.policy.shortcuts:
            self.undone_to({})
        return self._known

    def undone_to(self, known: Known) -> None:
        """Go back to these answers: the cluster is again in the state in which they were given."""
        self._known, self._position = known, len(self._session.cluster.log)
