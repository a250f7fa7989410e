"""random-node: any node that will do, and any card, by `seed` and the pod's name."""

import numpy as np

from pumice.scheduler.engine import Scores, View
from pumice.scheduler.model import Task
from pumice.scheduler.model.gpu_cards import Ask
from pumice.scheduler.plugins.shared_gpu_packing import Packing


class RandomNode(Packing):
    name = "random-node"

    def rate(self, task: Task, ask: Ask, nodes: View) -> Scores:
        return np.zeros(len(nodes))

    def best_node(self, task: Task, totals: Scores) -> int:
        rows = np.flatnonzero(np.isfinite(totals))
        return int(rows[self.draw(task, len(rows))])

    def card(self, row: int, ask: Ask, task: Task) -> int:
        cards = np.flatnonzero(self.cards.left[row] >= ask.milli)
        return int(cards[self.draw(task, len(cards), "card")])
