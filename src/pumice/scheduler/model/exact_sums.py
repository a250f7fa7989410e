"""The exact sums of the tasks of one node, however much they request.

Nodes keep their sums in float64, which is exact as long as none is above EXACT. A row with greater sums is tallied here. The columns of
the node table then hold sums cut to EXACT, which is far more than any node has. They are cut separately for the tasks that stay and for
those that are Releasing, so that what will be idle afterwards is exact all the same. Amounts that reach MOST_OF_ONE are not added but
counted: one of them is enough to make the node full.
"""

import numpy as np
from msgspec import Struct

from pumice.scheduler.model import status
from pumice.scheduler.model.resources import MOST_OF_ONE, Dimensions, NDArray, Rows, Sum, Vector, as_sum, as_vector
from pumice.scheduler.model.task import Task

EXACT = 2**51  #: integers up to twice this, and their differences, are exact in float64
FILL = EXACT // MOST_OF_ONE  #: the number of immense amounts that makes EXACT


class Sums(Struct, frozen=True):
    """The sums of one row, for the columns of the same names in `Nodes`."""

    used: Vector
    releasing: Vector
    pipelined: Vector
    used_for_filters: Vector
    nonzero_used: Vector


class PartialSum:
    """One sum, and for each dimension the number of immense amounts that it leaves out."""

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
        """Count a task (sign 1), or no longer count it (-1), in the sums that filters and scores see."""
        template = task.template
        self._used_for_filters.add(template.exactly, template.immense, sign)
        scoring = np.array((template.scoring_cpu, template.scoring_memory))
        self._nonzero_used.add(as_sum(np.where(scoring < MOST_OF_ONE, scoring, 0.0)), np.flatnonzero(scoring >= MOST_OF_ONE), sign)

    def sums(self) -> Sums:
        parts = (self._staying, self._releasing, self._pipelined, self._used_for_filters, self._nonzero_used)
        stay, leave, come, used_for_filters, nonzero_used = (part.cut() for part in parts)
        return Sums(stay + leave, leave, come, used_for_filters, nonzero_used)
