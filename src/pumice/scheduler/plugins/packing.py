"""The base of the plugins that pack shared GPUs: a node must have the cards, and its rating depends on the pod and the node alone.

Of nodes with equal ratings the first wins, which has the smallest name if nodes are sorted by name. With `tieBreak: best-fit` the node with
the least CPU and GPU left wins; with `tieBreak: random` a draw by `seed` and the pod's name decides.

`Cards` has the thousandths that are left of each card of each node; `TypicalPods` computes how much of them is of no use: fragments. A pod
requests `alibabacloud.com/gpu-milli`: below 1000 for a part of one card, else for whole cards. The annotation `alibabacloud.com/gpu-index`
says which cards the pod has. Without it, `choose` picks the card for a part of one: by default the fullest card that has enough left.

Fragments: the part of a node's idle GPUs that the typical pods cannot use (FGD, USENIX ATC'23).

For a typical pod, all that is left on a node's cards is a fragment if the pod cannot run there or requests no GPU; else what is left on
cards that have less left than it requests of one card. The fragments of a node are the mean over the typical pods, weighted by frequency.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Self, TypeVar
from zlib import crc32

import numpy as np
from msgspec import Struct, field

from pumice.api.annotations import ALIBABA_GPU_INDEX
from pumice.scheduler.engine import Filter, Reach, Reason, Refused, Scorer, Scores, View
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import CPU, Cluster, Index, NDArray, Task, Template, status

GPU_MILLI_NAME = "alibabacloud.com/gpu-milli"
WHOLE = 1000.0

Lefts = NDArray[np.float64]  #: thousandths of cards that are left
COVERED = 0.95  #: the part of all pods that the typical kinds cover
Column = NDArray[np.float64]


class Ask(NamedTuple):
    """What a pod requests: the number of cards, and the thousandths of each."""

    cards: int = 0
    milli: float = 0.0

    @property
    def is_share(self) -> bool:
        return self.milli < WHOLE


NOTHING = Ask()


class Cards(Index):
    """The index of what is left of each card."""

    choose: Callable[[int, Ask, Task], int]  #: picks the card on a row for a pod that requests a part of a card

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.choose = self.fullest
        self._asks: dict[Template, Ask] = {}
        self._last: tuple[str, int, tuple[int, ...]] = ("", -1, ())  #: uid, row and cards of the pod that left last, should it come back
        self.held: dict[str, tuple[int, ...]] = {}  #: cards by task uid

    def begin(self) -> None:
        nodes, column = self.cluster.nodes, self.cluster.dimensions.columns.get(GPU_MILLI_NAME)
        rows = len(nodes)
        self.count = np.zeros(rows, np.intp) if column is None else (nodes.allocatable[column] // (1000 * WHOLE)).astype(np.intp)
        self._versions = self._as_they_are()
        most = int(self.count.max(initial=0))
        self.left: Lefts = np.where(np.arange(most) < self.count[:, None], WHOLE, 0.0)  #: [n, card]
        self.by_kind = np.zeros((rows, most + 1), np.intp)  #: [n, kind] number of pods that request a part of a card (0), or `kind` cards
        self.held.clear()

    def _as_they_are(self) -> tuple[object, ...]:
        nodes, column = self.cluster.nodes, self.cluster.dimensions.columns.get(GPU_MILLI_NAME)
        return (len(nodes), column, nodes.static_version, None if column is None else float(nodes.allocatable[column].sum()))

    def refresh(self) -> None:
        """Count everything anew if nodes have changed."""
        if self._versions != self._as_they_are():
            held = dict(self.held)
            self.begin()
            for task in self.cluster.existing():
                self._take(task.node, task, self._written(task) or held.get(task.uid, ()))

    def ask(self, template: Template) -> Ask:
        found = self._asks.get(template)
        if found is None:
            column = self.cluster.dimensions.columns.get(GPU_MILLI_NAME)
            milli = 0.0 if column is None else float(template.request[column]) / 1000
            found = NOTHING if not milli else Ask(1, milli) if milli < WHOLE else Ask(int(milli // WHOLE), WHOLE)
            self._asks[template] = found
        return found

    def change(self, row: int, task: Task, sign: int) -> None:
        if self.ask(task.template) is NOTHING or row >= len(self.left):
            return  # a new node is counted at the next refresh
        if sign < 0:
            self._give_back(row, task)
        else:
            uid, before, cards = self._last
            self._take(row, task, self._written(task) or (cards if (uid, before) == (task.uid, row) else ()))

    def _take(self, row: int, task: Task, cards: tuple[int, ...]) -> None:
        ask = self.ask(task.template)
        if ask is NOTHING:
            return
        cards = cards or self._chosen(row, ask, task)
        for card in cards:
            if card < self.count[row]:
                self.left[row, card] -= ask.milli
        self.held[task.uid] = cards
        self.by_kind[row, self.kind(ask)] += 1

    def _give_back(self, row: int, task: Task) -> None:
        ask, cards = self.ask(task.template), self.held.pop(task.uid, ())
        for card in cards:
            if card < self.count[row]:
                self.left[row, card] += ask.milli
        self.by_kind[row, self.kind(ask)] -= 1
        self._last = (task.uid, row, cards)

    def kind(self, ask: Ask) -> int:
        return 0 if ask.is_share else min(ask.cards, self.by_kind.shape[1] - 1)

    def _chosen(self, row: int, ask: Ask, task: Task) -> tuple[int, ...]:
        if ask.is_share:
            return (self.choose(row, ask, task),)
        return tuple(np.flatnonzero(self.left[row] >= WHOLE)[: ask.cards].tolist())

    def fullest(self, row: int, ask: Ask, task: Task) -> int:
        """The card with the least left, of those with enough left for the pod."""
        left = self.left[row]
        return int(np.where(left >= ask.milli, left, np.inf).argmin())

    @staticmethod
    def _written(task: Task) -> tuple[int, ...]:
        """The cards in the pod's annotation, written as 0-2-3; empty if it is no such list."""
        parts = task.annotations.get(ALIBABA_GPU_INDEX, "").split("-")
        return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()

    def agrees(self, recount: Self) -> bool:
        return bool((self.left.sum(axis=1) == recount.left.sum(axis=1)).all() and (self.by_kind == recount.by_kind).all())


class PodShape(NamedTuple):
    """The requests that distinguish the kinds of pods."""

    cpu_milli: float
    ask: Ask


class TypicalPods:
    """The most frequent kinds of pods, as arrays [t] with an entry for each kind."""

    def __init__(self, counts: Counter[PodShape]) -> None:
        chosen: list[tuple[PodShape, int]] = []
        covered, total = 0, sum(counts.values())
        for kind, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            if covered >= COVERED * total:
                break
            chosen.append((kind, count))
            covered += count
        with_gpu = [(kind, count) for kind, count in chosen if kind.ask.cards]
        self.weight: Column = np.array([count for _, count in with_gpu], float) / max(covered, 1)
        self.without = 1.0 - float(self.weight.sum()) if chosen else 0.0  #: the share of the pods that request no GPU
        self.cpu: Column = np.array([kind.cpu_milli for kind, _ in with_gpu], float)
        self.cards: Column = np.array([kind.ask.cards for kind, _ in with_gpu], float)
        self.milli: Column = np.array([kind.ask.milli for kind, _ in with_gpu], float)

    def fragments(self, cpu: Column, left: Lefts) -> Column:
        """The fragments of each node in thousandths of cards, by its idle CPU [n] and what is left on its cards [n, card]."""
        fine, small = self._by_kind(left)
        return self._mean(cpu, left.sum(axis=1), fine, small)

    def after_whole(self, cpu: Column, left: Lefts, ask: Ask) -> Column:
        """The fragments of each node once a pod has taken whole cards (or none)."""
        fine, small = self._by_kind(left)
        return self._mean(cpu, left.sum(axis=1) - ask.cards * WHOLE, fine - ask.cards, small)

    def after_share(self, cpu: Column, left: Lefts, milli: float) -> Lefts:
        """The fragments [n, card] of each node once a pod has taken a part of that card."""
        fine, small = self._by_kind(left)
        now = left[:, :, None]
        then = now - milli
        suits, will_suit = now >= self.milli, then >= self.milli
        fine_then = fine[:, None] - suits + will_suit
        small_then = small[:, None] + np.where(will_suit, 0.0, then) - np.where(suits, 0.0, now)
        whole = left.sum(axis=1)[:, None] - milli
        runs = (cpu[:, None, None] >= self.cpu) & (fine_then >= self.cards)
        found: Lefts = np.where(runs, small_then, whole[:, :, None]) @ self.weight + whole * self.without
        return found

    def _by_kind(self, left: Lefts) -> tuple[Lefts, Lefts]:
        """Two arrays [n, t]: how many cards have enough left, and how much is left on the others."""
        suits = left[:, :, None] >= self.milli
        return suits.sum(axis=1), np.where(suits, 0.0, left[:, :, None]).sum(axis=1)

    def _mean(self, cpu: Column, whole: Column, fine: Lefts, small: Lefts) -> Column:
        runs = (cpu[:, None] >= self.cpu) & (fine >= self.cards)
        found: Column = np.where(runs, small, whole[:, None]) @ self.weight + whole * self.without
        return found


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
        self.cards = session.cluster.index(Cards)
        self.cards.choose = self.card

    def filters(self) -> list[Filter]:
        return [HasCards(self.cards)]

    def scorers(self) -> list[Scorer]:
        return [Rating(self)]

    def rate(self, task: Task, ask: Ask, nodes: View) -> Scores:
        """The rating of each node, 0..100, in whole numbers."""
        raise NotImplementedError

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

    def __init__(self, cards: Cards) -> None:
        self._cards = cards

    def prepare(self, task: Task) -> Any:
        ask = self._cards.ask(task.template)
        return None if ask is NOTHING else ask

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        fine = (shown(nodes, self._cards.left) >= state.milli).sum(axis=1)
        return [Refused(fine < state.cards, self.reason)]


class Rating(Scorer):
    """The scorer that gives the plugin's rating."""

    reach = Reach.NODE

    def __init__(self, plugin: Packing) -> None:
        self.name = plugin.name
        self._plugin = plugin

    def score(self, state: Any, nodes: View) -> Scores:
        return self._plugin.rate(state, self._plugin.cards.ask(state.template), nodes)
