"""What the scorers by resources share: how much of each resource a node would have allocated.

cpu and memory count in scores as `Template.scoring_cpu`, `newcomer_cpu` and their like: a container that names none counts a little.
A scalar resource that the pod does not ask for, or any that a node does not have, is left out for it.
"""

from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np

from pumice.scheduler.engine import Reach, Scorer, Scores, View
from pumice.scheduler.engine.normalize_score import weighted
from pumice.scheduler.model import CPU, MEMORY, Task

DEFAULT_RESOURCES = {"cpu": 1, "memory": 1}
STORAGE = "ephemeral-storage"  #: upstream does not treat it as a scalar resource


class ResourceScorer(Scorer):
    """The base of the strategies: a score of 0..100 per resource, combined by weight."""

    name = "NodeResourcesFit"
    reach = Reach.NODE
    plannable = True

    def __init__(self, resources: dict[str, int] | None = None, weight: float = 1) -> None:
        self.resources = resources or DEFAULT_RESOURCES
        self.weight = weight

    def prepare(self, task: Task) -> Any:
        return task.template

    def demands(self, template: Any, nodes: View) -> Iterator[tuple[int, int, Scores]]:
        """Column, weight and requested amounts of each resource that counts for this pod."""
        for name, weight in self.resources.items():
            column = nodes.column(name)
            if column == CPU:
                yield CPU, weight, nodes.nonzero_used[CPU] + template.newcomer_cpu
            elif column == MEMORY:
                yield MEMORY, weight, nodes.nonzero_used[MEMORY] + template.newcomer_memory
            elif column is not None and (template.request[column] > 0 or name == STORAGE):
                yield column, weight, nodes.used_for_filters[column] + template.request[column]

    def score(self, template: Any, nodes: View) -> Scores:
        rates: list[Scores] = []
        weights: Any = 0.0  #: one number for all nodes, or an array where some nodes lack a resource
        for column, weight, requested in self.demands(template, nodes):
            capacity = nodes.allocatable[column]
            if nodes.have_all(column):
                rates.append(weighted(self.rate(requested, capacity), weight))
                weights = weights + weight
            else:
                has = capacity > 0
                rates.append(np.where(has, self.rate(requested, np.where(has, capacity, 1.0)), 0.0) * weight)
                weights = weights + has * weight
        if isinstance(weights, np.ndarray):
            weights[weights == 0] = 1.0
        else:
            weights = weights or 1.0
        total = reduce(np.add, rates) if rates else np.zeros(len(nodes))
        total /= weights
        return np.floor(total, out=total)

    def rate(self, requested: Scores, capacity: Scores) -> Scores:
        """The scores of 0..100 for one resource. May overwrite `requested`."""
        raise NotImplementedError
