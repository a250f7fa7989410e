"""Which node's victims matter least: six rules, each applied to the best of the one before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pumice.actions.kube.residents import Numbers
from pumice.engine.view import Scores
from pumice.model.resources import Rows
from pumice.model.task import Task

SHIFT = 2**31  #: makes every priority count as positive, so that more victims never weigh less


class Candidate(NamedTuple):
    """A node on which evictions would make room."""

    row: int
    victims: list[Task]  #: the most important first
    violations: int  #: victims that go against a budget


class Costs(NamedTuple):
    """What the victims of each of some candidates cost; one entry a candidate."""

    violations: Numbers
    highest: Numbers  #: priority of the most important victim
    total: Numbers  #: sum of priorities, each shifted to be positive
    numbers: Numbers
    started: Scores  #: earliest start among the victims of the highest priority

    def at(self, rows: Rows) -> Costs:
        return Costs(self.violations[rows], self.highest[rows], self.total[rows], self.numbers[rows], self.started[rows])


def costs(candidates: Sequence[Candidate], now: float) -> Costs:
    def column(values: list[int]) -> Numbers:
        return np.array(values, np.int64)

    return Costs(
        column([c.violations for c in candidates]),
        column([c.victims[0].pod_priority for c in candidates]),
        column([sum(v.pod_priority + SHIFT for v in c.victims) for c in candidates]),
        column([len(c.victims) for c in candidates]),
        np.array([_start(c, now) for c in candidates]),
    )


def _start(candidate: Candidate, now: float) -> float:
    highest = candidate.victims[0].pod_priority
    return min(now if v.started is None else v.started for v in candidate.victims if v.pod_priority == highest)


def cheapest(costs: Costs) -> int:
    """The position of the best candidate: least violations, highest priority, sum, number; latest start; first of equals."""
    left: NDArray[np.intp] = np.arange(len(costs.violations))
    for part in (costs.violations, costs.highest, costs.total, costs.numbers, -costs.started):
        values = part[left]
        left = left[values == values.min()]
        if len(left) == 1:
            break
    return int(left[0])


def searched(clean: NDArray[np.bool_], success: NDArray[np.bool_], wanted: int) -> NDArray[np.intp]:
    """Positions of the candidates that a search in order finds, those without violations first.

    It ends when it has `wanted` candidates, but not before one of them is clean; of each kind it keeps at most `wanted`.
    """
    found, fine = np.cumsum(success), np.cumsum(success & clean)
    done = (found >= wanted) & (fine > 0)
    end = int(np.argmax(done)) + 1 if done.any() else len(success)
    positions = np.flatnonzero(success[:end])
    is_clean = clean[positions]
    return np.concatenate([positions[is_clean][:wanted], positions[~is_clean][:wanted]])
