"""How full nodes would be in what a pod asks for, each resource by its weight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pumice.scheduler.engine.view import Scores, View
from pumice.scheduler.model.template import Template


class Part(NamedTuple):
    """One requested resource in a score: how it weighs, and whether room left counts instead of room used."""

    column: int
    amount: float
    weight: float
    least: bool = False


def parts_of(template: Template, weigh: Callable[[int], tuple[float, bool] | None]) -> list[Part]:
    """The parts of a request that count, by a function from column to weight and kind."""
    amounts = zip(template.columns.tolist(), template.amounts.tolist(), strict=True)
    return [Part(column, amount, *found) for column, amount in amounts if (found := weigh(column)) is not None]


def weighted_mean(parts: Sequence[Part], nodes: View) -> Scores:
    """0..1: how full (or empty) a node would be in what is asked for, by weight; 0 if it would overflow in any of it."""
    total, overflow, weights = np.zeros(len(nodes)), nodes.nothing(), 0.0
    for column, amount, weight, least in parts:
        weights += weight
        room = nodes.allocatable[column]
        full = nodes.used[column] + amount
        if weight:
            overflow |= (full > room) & (room > 0)
            total += np.divide((room - full if least else full) * weight, room, out=np.zeros(len(nodes)), where=room > 0)
    return np.where(overflow, 0.0, total / weights) if weights else total
