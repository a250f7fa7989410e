"""binpack: prefer the nodes that are fullest in the resources the task asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, field

from pumice.scheduler.engine.rules import MAX_SCORE, Reach, Scorer
from pumice.scheduler.engine.view import Scores, View
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.model.task import Task
from pumice.scheduler.model.template import Template


class BinpackArgs(Struct):
    weight: int = field(name="binpack.weight", default=1)
    cpu: int = field(name="binpack.cpu", default=1)
    memory: int = field(name="binpack.memory", default=1)
    resources: str = field(name="binpack.resources", default="")
    named: dict[str, int] = field(default_factory=dict)  #: binpack.resources.<name>


class Binpack(Plugin):
    name = "binpack"
    Args = BinpackArgs
    wildcard_args = ("binpack.resources.",)

    def scorers(self) -> list[Scorer]:
        if self.args.weight == 0:
            return []
        listed = [name.strip() for name in self.args.resources.split(",") if name.strip()]
        weights = {name: self.args.named.get(name, 1) for name in listed} | {"cpu": self.args.cpu, "memory": self.args.memory}
        weights = {name: weight if weight >= 0 else 1 for name, weight in weights.items()}
        return [Fullness(weights, self.args.weight, self.session.cluster.dimensions.names)]


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


class Fullness(Scorer):
    """Weighted mean of how full a node would be in what the task asks for; nothing if it would overflow."""

    name = "binpack"
    reach = Reach.NODE
    plannable = True

    def __init__(self, weights: dict[str, int], weight: float, names: Sequence[str]) -> None:
        self.weights = weights
        self.weight = weight * MAX_SCORE
        self.names = names

    def prepare(self, task: Task) -> Any:
        return parts_of(task.template, self._weigh)

    def _weigh(self, column: int) -> tuple[float, bool] | None:
        weight = self.weights.get(self.names[column])
        return None if weight is None else (weight, False)

    def score(self, parts: Any, nodes: View) -> Scores:
        return weighted_mean(parts, nodes)
