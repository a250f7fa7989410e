"""LeastAllocated: prefer the nodes of which the least would be allocated."""

from math import floor
from typing import Any

import numpy as np

from pumice.scheduler.engine import MAX_SCORE, Scores
from pumice.scheduler.engine.best_by_bounds import SLACK
from pumice.scheduler.engine.rules import Bound, Bounds
from pumice.scheduler.engine.view import at_least
from pumice.scheduler.model import CPU, MEMORY, Nodes, Template
from pumice.scheduler.plugins.kube.resource_allocation import DEFAULT_RESOURCES, ResourceScorer


class LeastAllocated(ResourceScorer):
    """Prefers emptier nodes."""

    def rate(self, requested: Scores, capacity: Scores) -> Scores:
        room = np.subtract(capacity, requested, out=requested)
        at_least(room, 0.0)
        room *= MAX_SCORE
        room /= capacity
        return np.floor(room, out=room)

    def score_one(self, template: Any, table: Nodes, row: int) -> float:
        if self.resources != DEFAULT_RESOURCES:
            return super().score_one(template, table, row)
        total = counted = 0
        for column, amount in ((CPU, template.newcomer_cpu), (MEMORY, template.newcomer_memory)):
            capacity = table.allocatable_cells[column][row]
            if capacity > 0:
                room = capacity - (table.nonzero_cells[column][row] + amount)
                if room > 0:
                    total += floor(room * MAX_SCORE / capacity)
                counted += 1
        return float(total // (counted or 1))

    def bounds(self, table: Nodes) -> Bounds | None:
        is_plain = self.resources == DEFAULT_RESOURCES and table.least(CPU) > 0 and table.least(MEMORY) > 0
        return LeastAllocatedBounds(table) if is_plain else None


class LeastAllocatedBounds(Bounds):
    """The bounds of LeastAllocated with cpu and memory at equal weight."""

    def __init__(self, table: Nodes) -> None:
        self._table = table
        self._part = (MAX_SCORE / table.allocatable[: MEMORY + 1]).astype(np.float32)  #: how much one more unit lowers the rate
        self._rates = np.empty_like(self._part)  #: the rates without the task
        self.update()

    def update(self, rows: int | slice = slice(None)) -> None:
        used, capacity = self._table.nonzero_used, self._table.allocatable
        for resource in (CPU, MEMORY):  # for a single row these are numbers
            self._rates[resource, rows] = MAX_SCORE + SLACK - MAX_SCORE * used[resource, rows] / capacity[resource, rows]

    def of(self, template: Template) -> Bound:
        rates = self._part * np.array([[template.newcomer_cpu], [template.newcomer_memory]], np.float32)
        np.subtract(self._rates, rates, out=rates)
        at_least(rates.reshape(-1), 0.0)
        most, memory = np.floor(rates)
        most += memory
        most *= 0.5
        return Bound(np.floor(most, out=most), rates)
