"""What the tasks of one node sum up to, exactly, however much they ask for.

Nodes keep their sums in float64, which is exact as long as none is above EXACT. A row that outgrows it is tallied in 64-bit integers; what
the columns of the node table then hold is cut to EXACT, far more than any node has, and cut by itself for those that stay and for those
that leave: so what will be idle once they have left is exact all the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pumice.model import status
from pumice.model.resources import Dimensions, Sum, Vector
from pumice.model.task import Task

EXACT = 2**51  #: integers up to twice as much, and their differences, are exact in float64


class Sums(NamedTuple):
    """As the columns of the same names in `Nodes`."""

    used: Vector
    releasing: Vector
    pipelined: Vector
    seen: Vector
    scoring: Vector


class Tally:
    def __init__(self, dimensions: Dimensions) -> None:
        self._staying, self._releasing, self._pipelined = dimensions.nothing(), dimensions.nothing(), dimensions.nothing()
        self._seen: Sum = dimensions.nothing()
        self._scoring: Sum = np.zeros(2, np.int64)

    def widen(self, dimensions: Dimensions) -> None:
        self._staying, self._releasing = dimensions.fitted(self._staying), dimensions.fitted(self._releasing)
        self._pipelined, self._seen = dimensions.fitted(self._pipelined), dimensions.fitted(self._seen)

    def count(self, task: Task, sign: int) -> None:
        if not task.evicted:
            self.show(task, sign)
        parts = {status.PIPELINED: self._pipelined, status.RELEASING: self._releasing}
        part = parts.get(task.status, self._staying)
        part += task.template.exactly * sign

    def show(self, task: Task, sign: int) -> None:
        """Among those that filters and scores see."""
        template = task.template
        self._seen += template.exactly * sign
        self._scoring += np.array((template.scoring_cpu, template.scoring_memory), np.int64) * sign

    def sums(self) -> Sums:
        stay, leave, come, seen, scoring = map(_cut, (self._staying, self._releasing, self._pipelined, self._seen, self._scoring))
        return Sums(stay + leave, leave, come, seen, scoring)


def _cut(total: Sum) -> Vector:
    cut: Vector = np.minimum(total, EXACT).astype(float)
    return cut
