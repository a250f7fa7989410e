"""binpack: prefer the nodes that are fullest in the resources the task asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct, field

from pumice.engine.rules import Reach, Scorer
from pumice.engine.view import Scores, View
from pumice.framework.plugin import Plugin
from pumice.model.task import Task

MAX_SCORE = 100.0


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
        weights = {"cpu": self.args.cpu, "memory": self.args.memory} | {name: self.args.named.get(name, 1) for name in listed}
        return [Fullness({name: weight if weight >= 0 else 1 for name, weight in weights.items()}, self.args.weight)]


class Fullness(Scorer):
    """Weighted mean of how full a node would be in what the task asks for; nothing if it would overflow."""

    name = "binpack"
    reach = Reach.NODE
    foresees = True

    def __init__(self, weights: dict[str, int], weight: float) -> None:
        self.weights = weights
        self.weight = weight * MAX_SCORE

    def prepare(self, task: Task) -> Any:
        return task.template

    def score(self, template: Any, nodes: View) -> Scores:
        total, overflow, weights = np.zeros(len(nodes)), nodes.nothing(), 0
        names = nodes.table.dimensions.names
        for column, amount in zip(template.columns, template.amounts, strict=True):
            weight = self.weights.get(names[column])
            if weight is None:
                continue
            weights += weight
            room = nodes.allocatable[column]
            full = nodes.used[column] + amount
            if weight:
                overflow |= (full > room) & (room > 0)
                total += np.divide(full * weight, room, out=np.zeros(len(nodes)), where=room > 0)
        if not weights:
            return np.zeros(len(nodes))
        return np.where(overflow, 0.0, total / weights)
