"""MostAllocated: prefer the nodes of which the most would be allocated."""

import numpy as np

from pumice.scheduler.engine import MAX_SCORE, Scores
from pumice.scheduler.plugins.kube.resource_allocation import ResourceScorer


class MostAllocated(ResourceScorer):
    """Prefers fuller nodes."""

    def rate(self, requested: Scores, capacity: Scores) -> Scores:
        return np.floor(np.minimum(requested, capacity) * MAX_SCORE / capacity)
