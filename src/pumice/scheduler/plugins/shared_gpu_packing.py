"""The base of the plugins that pack shared GPUs: a node must have the cards, and its rating depends on the pod and the node alone.

Of nodes with equal ratings the first wins, which has the smallest name if nodes are sorted by name. With `tieBreak: best-fit` the node with
the least CPU and GPU left wins; with `tieBreak: random` a draw by `seed` and the pod's name decides.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeVar
from zlib import crc32

import numpy as np
from msgspec import Struct, field

from pumice.api.annotations import ALIBABA_GPU_INDEX
from pumice.scheduler.engine import Filter, Reach, Reason, Refused, Scorer, Scores, View
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import CPU, NDArray, Nodes, Task, status
from pumice.scheduler.model.gpu_cards import NOTHING, Ask, GpuCards

V = TypeVar("V", bound=np.generic)

CPU_MILLI, GPU_MILLI = 128_000.0, 8_000.0  #: the amounts of the largest node, by which amounts are scaled


class PackingArgs(Struct):
    tie_break: Literal["name", "best-fit", "random"] = field(name="tieBreak", default="name")
    seed: int = 0


class Packing(Plugin):
    """Base of the plugins that pack shared GPUs."""

    Args = PackingArgs

    def open(self, session: Session) -> None:
        super().open(session)
        self.cards = session.cluster.index(GpuCards)
        self.cards.choose = self.card

    def filters(self) -> list[Filter]:
        return [HasCards(self.cards)]

    def scorers(self) -> list[Scorer]:
        return [Rating(self)]

    def rate(self, task: Task, ask: Ask, nodes: View) -> Scores:
        """The rating of each node, 0..100, in whole numbers."""
        raise NotImplementedError

    def rate_one(self, task: Task, ask: Ask, table: Nodes, row: int) -> float:
        """The rating of one node: the same number as by `rate`."""
        return float(self.rate(task, ask, View(table, slice(row, row + 1)))[0])

    def card(self, row: int, ask: Ask, task: Task) -> int:
        """The card on a row for a pod that requests a part of a card."""
        return self.cards.fullest(row, ask, task)

    def best_node(self, task: Task, totals: Scores) -> int | None:
        if self.args.tie_break == "name":
            return None
        best = np.flatnonzero(totals == totals.max())
        if self.args.tie_break == "random":
            return int(best[self.draw(task, len(best))])
        idle = self.session.nodes.idle[CPU, best] / CPU_MILLI + self.cards.left[best].sum(axis=1) / GPU_MILLI
        return int(best[idle.argmin()])

    def draw(self, task: Task, among: int, what: str = "node") -> int:
        """A number below `among` that only the seed, the pod's name and `what` decide."""
        return crc32(f"{self.args.seed}/{what}/{task.key}".encode()) * 2654435761 % 2**32 * among >> 32

    def on_allocate(self, task: Task) -> None:
        held = self.cards.held.get(task.uid)
        if held and task.status & (status.ALLOCATED | status.PIPELINED):
            self.session.annotations.setdefault(task.uid, {})[ALIBABA_GPU_INDEX] = "-".join(map(str, held))

    def on_deallocate(self, task: Task) -> None:
        self.session.annotations.get(task.uid, {}).pop(ALIBABA_GPU_INDEX, None)


def shown(nodes: View, column: NDArray[V]) -> NDArray[V]:
    """The part of a per-node array that a view shows."""
    return column if nodes.rows is None else column[nodes.rows]


class HasCards(Filter):
    """Admits nodes with as many cards, and as much left on each, as the pod requests."""

    name = "gpu-cards"
    reach = Reach.NODE
    reason = Reason("node(s) have no card with enough left")

    def __init__(self, cards: GpuCards) -> None:
        self._cards = cards

    def prepare(self, task: Task) -> Any:
        ask = self._cards.ask(task.template)
        return None if ask is NOTHING else ask

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        return [Refused(~self._cards.enough(state)[shown(nodes, self._cards.states)], self.reason)]

    def refuses(self, state: Any, table: Nodes, row: int) -> bool:
        return not self._cards.enough(state)[self._cards.states[row]]


class Rating(Scorer):
    """The scorer that gives the plugin's rating."""

    reach = Reach.NODE

    def __init__(self, plugin: Packing) -> None:
        self.name = plugin.name
        self._plugin = plugin

    def prepare(self, task: Task) -> tuple[Task, Ask]:
        return task, self._plugin.cards.ask(task.template)

    def score(self, state: tuple[Task, Ask], nodes: View) -> Scores:
        return self._plugin.rate(*state, nodes)

    def score_one(self, state: tuple[Task, Ask], table: Nodes, row: int) -> float:
        return self._plugin.rate_one(*state, table, row)
