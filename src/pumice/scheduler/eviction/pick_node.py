"""Which node's victims matter least, by the rules of kube-scheduler: of one candidate, and of many nodes as arrays.

Least violations of budgets, then the lowest first victim, the lowest sum of priorities, the fewest victims, the latest start of the
most important ones; the first of equals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from pumice.scheduler.engine.view import Scores
from pumice.scheduler.model.resources import NDArray, Rows
from pumice.scheduler.model.task import Task

Numbers = NDArray[np.int64]

SHIFT = 2**31  #: makes every priority count as positive, so that more victims never weigh less


class Candidate(Struct, frozen=True):
    """A node on which evictions would make room."""

    row: int
    victims: list[Task]  #: the most important first
    violations: int = 0  #: victims that go against a budget


def cost(candidate: Candidate, now: float) -> tuple[Any, ...]:
    """Lower is better. Who has no start counts as started just now."""
    victims = candidate.victims
    return weight(candidate.violations, [victim.pod_priority for victim in victims], [start(victim, now) for victim in victims])


def weight(violations: int, priorities: Sequence[int], starts: Sequence[float]) -> tuple[Any, ...]:
    """The same of victims of which these are the priorities and starts, the most important first."""
    highest = max(priorities)
    started = min(each for each, priority in zip(starts, priorities, strict=True) if priority == highest)
    return violations, priorities[0], sum(p + SHIFT for p in priorities), len(priorities), -started


def start(task: Task, now: float) -> float:
    return now if task.started is None else task.started


class Costs(Struct, frozen=True):
    """The same for many nodes; one entry a node."""

    violations: Numbers
    highest: Numbers  #: priority of the most important victim
    total: Numbers  #: sum of priorities, each shifted to be positive
    numbers: Numbers
    started: Scores  #: earliest start among the victims of the highest priority

    def at(self, rows: Rows) -> Costs:
        return Costs(self.violations[rows], self.highest[rows], self.total[rows], self.numbers[rows], self.started[rows])


def cheapest(costs: Costs) -> int:
    """The position of the best."""
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
