"""How full nodes would be in the resources that a pod requests, each resource by its weight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pumice.scheduler.engine.view import Scores, View
from pumice.scheduler.model import Template


class ScorePart(NamedTuple):
    """One requested resource in a score: its weight, and whether the room left counts instead of the room used (`least`)."""

    column: int
    amount: float
    weight: float
    least: bool = False


def parts_of(template: Template, weigh: Callable[[int], tuple[float, bool] | None]) -> list[ScorePart]:
    """The parts of a request that count in a score. `weigh`: from a column to its weight and `least`; None if it does not count."""
    amounts = zip(template.columns.tolist(), template.amounts.tolist(), strict=True)
    return [ScorePart(column, amount, *found) for column, amount in amounts if (found := weigh(column)) is not None]


def weighted_mean(parts: Sequence[ScorePart], nodes: View) -> Scores:
    """For each node 0..1: how full (or empty) it would be in the requested resources, by weight; 0 if any of these would overflow."""
    total, overflow, weights = np.zeros(len(nodes)), nodes.nothing(), 0.0
    for column, amount, weight, least in parts:
        weights += weight
        room = nodes.allocatable[column]
        full = nodes.used[column] + amount
        if weight:
            overflow |= (full > room) & (room > 0)
            total += np.divide((room - full if least else full) * weight, room, out=np.zeros(len(nodes)), where=room > 0)
    return np.where(overflow, 0.0, total / weights) if weights else total
