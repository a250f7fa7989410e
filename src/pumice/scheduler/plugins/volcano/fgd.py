"""fgd: fragmentation gradient descent (USENIX ATC'23): the node whose fragments grow least, and of its cards the best one.

Typical pods are the most frequent kinds among those that have come so far; `typicalPods` gives them instead, as lists of CPU in
thousandths, cards, thousandths of each card, and how many there are.
"""

from collections import Counter

import numpy as np
from msgspec import field

from pumice.scheduler.engine import Scores, View
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import CPU, Task
from pumice.scheduler.model.fragmentation import Column, PodShape, TypicalPods
from pumice.scheduler.model.gpu_cards import Ask, Lefts
from pumice.scheduler.plugins.shared_gpu_packing import Packing, PackingArgs, shown

SCALE = 1000.0


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
        cpu, left = nodes.idle[CPU], shown(nodes, self.cards.left)
        best: Scores = self._gradient(task, ask, cpu, left).max(axis=1, initial=0.0)
        return best

    def card(self, row: int, ask: Ask, task: Task) -> int:
        idle = self.session.nodes.idle[CPU, row] + task.template.request[CPU]  # the pod is already counted there
        return int(self._gradient(task, ask, np.array([idle]), self.cards.left[row : row + 1])[0].argmax())

    def _gradient(self, task: Task, ask: Ask, cpu: Column, left: Lefts) -> Lefts:
        """The ratings: [n, card] by the card of which a part is taken; [n, 1] for whole cards, or none."""
        before = self.typical.fragments(cpu, left)[:, None]
        rest = cpu - task.template.request[CPU]
        if not ask.cards or not ask.is_share:
            return _rated(before - self.typical.after_whole(rest, left, ask)[:, None])
        rated = _rated(before - self.typical.after_share(rest, left, ask.milli))
        return np.where(left >= ask.milli, rated, -1.0)


def _rated(gain: Lefts) -> Lefts:
    found: Lefts = np.floor(100.0 / (1.0 + np.exp(-gain / SCALE)))
    return found
