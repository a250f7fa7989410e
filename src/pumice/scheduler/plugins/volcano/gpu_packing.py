"""gpu-packing: cards in use before free ones, free ones of nodes in use before idle nodes."""

import numpy as np

from pumice.scheduler.engine import Scores, View
from pumice.scheduler.model import Task
from pumice.scheduler.model.gpu_cards import WHOLE, Ask
from pumice.scheduler.plugins.shared_gpu_packing import Packing, shown


class GpuPacking(Packing):
    name = "gpu-packing"

    def rate(self, task: Task, ask: Ask, nodes: View) -> Scores:
        if not ask.cards:
            return np.zeros(len(nodes))
        left = shown(nodes, self.cards.left)
        free = (left >= WHOLE).sum(axis=1)
        idle = np.maximum(33 - free, free)
        fresh = np.maximum(50 - ask.cards, 33)
        if not ask.is_share:
            rating: Scores = np.where(free == shown(nodes, self.cards.count), idle, fresh).astype(float)
            return rating
        fullest = np.where((left >= ask.milli) & (left < WHOLE), left, np.inf).min(axis=1, initial=np.inf)
        in_use = np.isfinite(fullest)
        used = np.maximum(50.0, 100.0 - np.floor(np.where(in_use, fullest, 0.0) / 10.0) // 10)
        return np.asarray(np.where(free == shown(nodes, self.cards.count), idle, np.where(in_use, used, fresh)), float)
