"""dot-product: the node where what is free and what is asked for point least in the same direction, so that much stays where much is."""

import numpy as np

from pumice.scheduler.engine import Scores, View
from pumice.scheduler.model import CPU, Task
from pumice.scheduler.model.gpu_cards import Ask
from pumice.scheduler.plugins.shared_gpu_packing import CPU_MILLI, GPU_MILLI, Packing, shown


class DotProduct(Packing):
    name = "dot-product"

    def rate(self, task: Task, ask: Ask, nodes: View) -> Scores:
        cpu = nodes.idle[CPU] * task.template.request[CPU] / CPU_MILLI**2
        gpu = shown(nodes, self.cards.left).sum(axis=1) * ask.cards * ask.milli / GPU_MILLI**2
        rating: Scores = np.trunc(100.0 * (1.0 - (cpu + gpu) / 2))
        return rating
