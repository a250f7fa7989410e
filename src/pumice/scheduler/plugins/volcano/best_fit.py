"""best-fit: the node with the least CPU and GPU left once the pod is there."""

import numpy as np

from pumice.scheduler.engine import Scores, View
from pumice.scheduler.model import CPU, Task
from pumice.scheduler.model.gpu_cards import Ask
from pumice.scheduler.plugins.shared_gpu_packing import CPU_MILLI, GPU_MILLI, Packing, shown


class BestFit(Packing):
    name = "best-fit"

    def rate(self, task: Task, ask: Ask, nodes: View) -> Scores:
        cpu = nodes.idle[CPU] - task.template.request[CPU]
        gpu = shown(nodes, self.cards.left).sum(axis=1) - ask.cards * ask.milli
        rating: Scores = np.trunc(100.0 * (1.0 - cpu / CPU_MILLI / 2 - gpu / GPU_MILLI / 2))
        return rating
