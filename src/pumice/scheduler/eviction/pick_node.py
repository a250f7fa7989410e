"""The node whose victims cost least, by the rules of kube-scheduler: for single candidates, and for many nodes as arrays.

The fewest violations of PodDisruptionBudgets, then the lowest priority of the most important victim, the lowest sum of priorities, the
fewest victims, the latest start of the most important victims; of equal nodes the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from pumice.scheduler.engine import Scores
from pumice.scheduler.model import NDArray, Nodes, Rows, Task

Numbers = NDArray[np.int64]

SHIFT = 2**31  #: makes every priority count as positive, so that more victims never weigh less


class Candidate(Struct, frozen=True):
    """A node on which evictions would make room."""

    row: int
    victims: list[Task]  #: the most important first
    violations: int = 0  #: the number of victims that violate a PodDisruptionBudget

    def text(self, nodes: Nodes) -> str:
        return f"found a potential placement for pod on node {nodes.names[self.row]}, preempting {len(self.victims)} victims"


def cost(candidate: Candidate, now: float) -> tuple[Any, ...]:
    """The cost of a candidate; lower is better. A victim without a start time counts as started just now."""
    victims = candidate.victims
    return weight(candidate.violations, [victim.pod_priority for victim in victims], [start(victim, now) for victim in victims])


def weight(violations: int, priorities: Sequence[int], starts: Sequence[float]) -> tuple[Any, ...]:
    """The cost of victims with these priorities and start times, the most important victim first."""
    highest = max(priorities)
    started = min(each for each, priority in zip(starts, priorities, strict=True) if priority == highest)
    return violations, priorities[0], sum(p + SHIFT for p in priorities), len(priorities), -started


def start(task: Task, now: float) -> float:
    return now if task.started is None else task.started


class Costs(Struct, frozen=True):
    """The costs of many nodes, one entry per node."""

    violations: Numbers
    highest: Numbers  #: priority of the most important victim
    total: Numbers  #: sum of priorities, each shifted to be positive
    numbers: Numbers
    started: Scores  #: earliest start among the victims of the highest priority

    def at(self, rows: Rows) -> Costs:
        return Costs(self.violations[rows], self.highest[rows], self.total[rows], self.numbers[rows], self.started[rows])


def cheapest(costs: Costs) -> int:
    """The index of the node that costs least."""
    left: NDArray[np.intp] = np.arange(len(costs.violations))
    for part in (costs.violations, costs.highest, costs.total, costs.numbers, -costs.started):
        values = part[left]
        left = left[values == values.min()]
        if len(left) == 1:
            break
    return int(left[0])


def searched(clean: NDArray[np.bool_], success: NDArray[np.bool_], wanted: int) -> NDArray[np.intp]:
    """The indices of the candidates that a search in order finds, those without violations (clean) first.

    The search ends when it has `wanted` candidates, but not before one of them is clean; it keeps at most `wanted` of each kind.
    """
    found, fine = np.cumsum(success), np.cumsum(success & clean)
    done = (found >= wanted) & (fine > 0)
    end = int(np.argmax(done)) + 1 if done.any() else len(success)
    positions = np.flatnonzero(success[:end])
    is_clean = clean[positions]
    return np.concatenate([positions[is_clean][:wanted], positions[~is_clean][:wanted]])
