"""RequestedToCapacityRatio: the score of a node follows from how full it would be, by a shape that the user draws."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pumice.api.problems import Path, Problems
from pumice.api.strict_decoding import Conf
from pumice.scheduler.engine import MAX_SCORE, Scores, View
from pumice.scheduler.plugins.kube.resource_allocation import ResourceScorer


class RequestedToCapacityRatio(ResourceScorer):
    """Scores by a curve over the utilization, given as points (utilization 0..100, score 0..100)."""

    def __init__(self, shape: Sequence[tuple[int, int]], resources: dict[str, int] | None = None, weight: float = 1) -> None:
        super().__init__(resources, weight)
        self.shape = tuple(shape)

    def score(self, template: Any, nodes: View) -> Scores:
        """The weighted mean of the resources' scores. A resource that scores 0 is left out of the mean, so it does not lower it."""
        total, weights = np.zeros(len(nodes)), np.zeros(len(nodes))
        for column, weight, requested in self.demands(template, nodes):
            capacity = nodes.allocatable[column]
            has = capacity > 0
            rating = self.rate(requested, np.where(has, capacity, 1.0))
            counts = has & (rating > 0)
            total += np.where(counts, rating, 0.0) * weight
            weights += counts * weight
        return np.floor(np.divide(total, weights, out=np.zeros(len(nodes)), where=weights > 0) + 0.5)

    def rate(self, requested: Scores, capacity: Scores) -> Scores:
        return self.curve(np.where(requested > capacity, MAX_SCORE, np.floor(requested * MAX_SCORE / capacity)))

    def curve(self, utilization: Scores) -> Scores:
        """The curve's value at each utilization: linear between the points, in integers truncated toward zero."""
        first_s = self.shape[0][1]
        result = np.full(len(utilization), float(first_s))
        for (u0, s0), (u1, s1) in zip(self.shape, self.shape[1:], strict=False):
            part = s0 + np.trunc((s1 - s0) * (utilization - u0) / (u1 - u0))
            result = np.where((utilization > u0) & (utilization <= u1), part, result)
        return np.where(utilization > self.shape[-1][0], float(self.shape[-1][1]), result)


class ShapePoint(Conf, frozen=True):
    utilization: int = 0
    score: int = 0


class RatioShape(Conf, frozen=True):
    shape: list[ShapePoint] | None = None


def check_shape(shape: Sequence[ShapePoint], path: Path, problems: Problems) -> None:
    if not shape:
        problems.required(path, "at least one point must be specified")
    unsorted = next((i for i in range(1, len(shape)) if shape[i].utilization <= shape[i - 1].utilization), None)
    if unsorted is not None:
        problems.invalid((*path, unsorted, "utilization"), shape[unsorted].utilization, "values must be sorted in increasing order")
    for index, point in enumerate(shape):
        problems.within((*path, index, "utilization"), point.utilization, 0, 100)
        problems.within((*path, index, "score"), point.score, 0, 10)
