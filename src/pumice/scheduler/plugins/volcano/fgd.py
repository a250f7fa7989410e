"""fgd: fragmentation gradient descent (USENIX ATC'23): the node whose fragments grow least, and of its cards the best one.

Typical pods are the most frequent kinds among those that have come so far; `typicalPods` gives them instead, as lists of CPU in
thousandths, cards, thousandths of each card, and how many there are.
"""

from bisect import bisect_left
from collections import Counter
from math import inf, log

import numpy as np
from msgspec import field

from pumice.scheduler.engine import Scores, View
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import CPU, Nodes, Task
from pumice.scheduler.model.fragment_growth import FragmentGrowth
from pumice.scheduler.model.fragmentation import PodShape, TypicalPods
from pumice.scheduler.model.gpu_cards import Ask
from pumice.scheduler.plugins.shared_gpu_packing import Packing, PackingArgs, shown

SCALE = 1000.0
#: A rating is 100 / (1 + exp(growth / SCALE)) without its fraction. The greatest growth with which it is 99, 98, ... 1:
ENDS = [SCALE * log((100 - rating) / rating) for rating in range(99, 0, -1)]
AS_ARRAY = np.array(ENDS)


class FgdArgs(PackingArgs):
    typical_pods: list[tuple[float, int, float, int]] = field(name="typicalPods", default_factory=list)


class Fgd(Packing):
    name = "fgd"
    Args = FgdArgs

    def open(self, session: Session) -> None:
        super().open(session)
        given = self.args.typical_pods
        if given:
            counts = Counter({PodShape(cpu, Ask(cards, milli)): count for cpu, cards, milli, count in given})
        else:
            counts = self._met(session)
        self.typical = TypicalPods(counts)
        self._growth = FragmentGrowth(self.typical, self.cards.lists)

    def _met(self, session: Session) -> Counter[PodShape]:
        """The kinds of the pods that have come so far, each pod counted once."""
        memory = session.memory(self.name)
        counts: Counter[PodShape] = memory.setdefault("counts", Counter())
        last = newest = memory.get("last", 0)
        for job in session.cluster.waiting.values():
            for task in job.pending.values():
                if task.number > last:
                    counts[PodShape(float(task.template.request[CPU]), self.cards.ask(task.template))] += 1
                    newest = max(newest, task.number)
        memory["last"] = newest
        return counts

    def rate(self, task: Task, ask: Ask, nodes: View) -> Scores:
        growth = self._growth.of(shown(nodes, self.cards.states), nodes.idle[CPU], float(task.template.request[CPU]), ask)
        return (99 - AS_ARRAY.searchsorted(growth)).astype(float)

    def rate_one(self, task: Task, ask: Ask, table: Nodes, row: int) -> float:
        state, idle = int(self.cards.states[row]), table.idle_cells[CPU][row]
        return float(_rating(self._growth.of_one(state, idle, float(task.template.request[CPU]), ask)))

    def card(self, row: int, ask: Ask, task: Task) -> int:
        request = float(task.template.request[CPU])
        idle = self.session.nodes.idle_cells[CPU][row] + request  # the pod is already counted there
        by_card = self._growth.by_card(self.cards.left[row].tolist(), idle, request, ask.milli)
        ratings = [-1 if growth == inf else _rating(growth) for growth in by_card]
        return ratings.index(max(ratings))


def _rating(growth: float) -> int:
    return 99 - bisect_left(ENDS, growth)
