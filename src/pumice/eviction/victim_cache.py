"""Whom plugins agreed to evict, node by node: so that of many tasks that wait in vain only the first asks about every node.

It holds for tasks to which the plugins answer alike (hook `evictor_kind`), and for as long as nothing moves, or everything that moved was
undone. It saves asking; who is evicted is decided on fresh answers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from pumice.framework.session import Session
from pumice.model.nodes import Nodes, Table
from pumice.model.resources import EPSILON, Mask
from pumice.model.task import Task

MOST_CLASSES = 16  #: remembered at a time


class PermittedVictims:
    """What all who may go hold, node by node, for one class of evictors."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._asked: Mask = np.zeros(len(nodes), bool)
        self._sums: Table = np.zeros_like(nodes.used)

    def note(self, row: int, victims: Iterable[Task]) -> None:
        """All who may go from a node."""
        self._asked[row] = True
        self._sums[:, row] = 0.0
        for task in victims:
            self._sums[task.template.columns, row] += task.template.amounts

    def hopeful(self, task: Task) -> Mask:
        """Nodes that were not asked about, or have room for the task without those who may go."""
        enough: Mask = np.ones(len(self._nodes), bool)
        room = self._nodes.future_idle + self._sums
        for column, amount in zip(task.template.columns, task.template.amounts, strict=True):
            enough &= room[column] > amount - EPSILON
        return ~self._asked | enough


Known = dict[Hashable, PermittedVictims]


class VictimCache:
    """By class of evictor, for the victims of one queue, or of all the others."""

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
        """All that holds as things are."""
        if len(self._session.cluster.log) != self._position:
            self.undone_to({})
        return self._known

    def undone_to(self, known: Known) -> None:
        """Things are again as they were when this was known."""
        self._known, self._position = known, len(self._session.cluster.log)
