"""The score of binpack and resource-strategy-fit: how full a node would be in the resources that a pod requests, by their weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pumice.scheduler.engine import MAX_SCORE, Reach, Scorer, Scores, View
from pumice.scheduler.model import Template


class ScorePart(NamedTuple):
    """One requested resource in a score: its weight, and whether the room left counts instead of the room used (`least`)."""

    column: int
    amount: float
    weight: float
    least: bool


class ResourceFullness(Scorer):
    """The weighted mean of how full (or empty) a node would be, from 0 to 1; 0 if one of the resources would overflow."""

    reach = Reach.NODE
    plannable = True

    def __init__(self, strategies: dict[str, tuple[float, bool]], weight: float, names: Sequence[str]) -> None:
        """`strategies`: by resource its weight, and whether the room left counts. `names`: those of the resources, by column."""
        self.strategies = strategies
        self.weight = weight * MAX_SCORE
        self.names = names

    def parts(self, template: Template, strategy: Callable[[str], tuple[float, bool] | None]) -> list[ScorePart]:
        """The parts of a request that count. `strategy`: from a resource to its weight and `least`; None if it does not count."""
        amounts = zip(template.columns.tolist(), template.amounts.tolist(), strict=True)
        return [ScorePart(column, amount, *found) for column, amount in amounts if (found := strategy(self.names[column])) is not None]

    def score(self, parts: Any, nodes: View) -> Scores:
        total, overflow, weights = np.zeros(len(nodes)), nodes.nothing(), 0.0
        for column, amount, weight, least in parts:
            weights += weight
            room = nodes.allocatable[column]
            full = nodes.used[column] + amount
            if weight:
                overflow |= (full > room) & (room > 0)
                total += np.divide((room - full if least else full) * weight, room, out=np.zeros(len(nodes)), where=room > 0)
        return np.where(overflow, 0.0, total / weights) if weights else total
