"""What the tasks of one node sum up to, exactly, however much they ask for.

Nodes keep their sums in float64, which is exact as long as none is above EXACT. A row that outgrows it is tallied here; what the columns of
the node table then hold is cut to EXACT, far more than any node has, and cut by itself for those that stay and for those that leave: so
what will be idle once they have left is exact all the same. Amounts beyond MOST_OF_ONE are not added but counted: one is enough to make
the node full.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from pumice.scheduler.model import status
from pumice.scheduler.model.resources import MOST_OF_ONE, Dimensions, NDArray, Rows, Sum, Vector, as_sum, as_vector
from pumice.scheduler.model.task import Task

EXACT = 2**51  #: integers up to twice as much, and their differences, are exact in float64
FILL = EXACT // MOST_OF_ONE  #: so many immense amounts are EXACT


class Sums(Struct, frozen=True):
    """As the columns of the same names in `Nodes`."""

    used: Vector
    releasing: Vector
    pipelined: Vector
    used_for_filters: Vector
    nonzero_used: Vector


class PartialSum:
    """One sum, and how many immense amounts it leaves out in each dimension."""

    def __init__(self, width: int) -> None:
        self._total: Sum = np.zeros((2, width), np.int64)
        self._immense: NDArray[np.int64] = np.zeros(width, np.int64)

    def widen(self, dimensions: Dimensions) -> None:
        self._total, self._immense = dimensions.fitted(self._total), dimensions.fitted(self._immense)

    def add(self, amounts: Sum, immense: Rows, sign: int) -> None:
        self._total += amounts * sign
        self._immense[immense] += sign

    def cut(self) -> Vector:
        total = as_vector(self._total) + np.minimum(self._immense, FILL) * MOST_OF_ONE
        cut: Vector = np.minimum(total, EXACT)
        return cut


class Tally:
    def __init__(self, dimensions: Dimensions) -> None:
        self._staying, self._releasing, self._pipelined, self._used_for_filters = (PartialSum(dimensions.width) for _ in range(4))
        self._nonzero_used = PartialSum(2)

    def widen(self, dimensions: Dimensions) -> None:
        for part in (self._staying, self._releasing, self._pipelined, self._used_for_filters):
            part.widen(dimensions)

    def count(self, task: Task, sign: int) -> None:
        if not task.evicted:
            self.show(task, sign)
        parts = {status.PIPELINED: self._pipelined, status.RELEASING: self._releasing}
        parts.get(task.status, self._staying).add(task.template.exactly, task.template.immense, sign)

    def show(self, task: Task, sign: int) -> None:
        """Among those that filters and scores see."""
        template = task.template
        self._used_for_filters.add(template.exactly, template.immense, sign)
        scoring = np.array((template.scoring_cpu, template.scoring_memory))
        self._nonzero_used.add(as_sum(np.where(scoring < MOST_OF_ONE, scoring, 0.0)), np.flatnonzero(scoring >= MOST_OF_ONE), sign)

    def sums(self) -> Sums:
        parts = (self._staying, self._releasing, self._pipelined, self._used_for_filters, self._nonzero_used)
        stay, leave, come, used_for_filters, nonzero_used = (part.cut() for part in parts)
        return Sums(stay + leave, leave, come, used_for_filters, nonzero_used)
