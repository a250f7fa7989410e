"""gpu-clustering: pods that ask for the same number of GPUs together. A kind is a part of a card, or so many whole ones."""

import numpy as np

from pumice.scheduler.engine import Scores, View
from pumice.scheduler.model import Task
from pumice.scheduler.model.gpu_cards import Ask
from pumice.scheduler.plugins.shared_gpu_packing import GPU_MILLI, Packing, shown


class GpuClustering(Packing):
    name = "gpu-clustering"

    def rate(self, task: Task, ask: Ask, nodes: View) -> Scores:
        """The ratings: 75 where only pods of its kind have GPUs, 50 where others do too, 25 where none has; plus how full cards are."""
        if not ask.cards:
            return np.zeros(len(nodes))
        kinds = shown(nodes, self.cards.by_kind)
        full = 25.0 * (GPU_MILLI - shown(nodes, self.cards.left).sum(axis=1)) // GPU_MILLI
        same = kinds[:, self.cards.kind(ask)] > 0
        others = kinds.sum(axis=1) > kinds[:, self.cards.kind(ask)]
        found: Scores = full + np.select([same & ~others, same, ~others], [75.0, 50.0, 25.0], 0.0)
        return found
