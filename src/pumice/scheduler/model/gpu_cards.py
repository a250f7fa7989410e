"""What is left of each card of each node, in thousandths, where pods share GPUs (`alibabacloud.com/gpu-milli`).

A pod requests below 1000 for a part of one card, else whole cards. The annotation `alibabacloud.com/gpu-index` says which cards the pod
has. Without it, `choose` picks the card for a part of one: by default the fullest card that has enough left.
"""

from collections.abc import Callable
from math import inf
from typing import NamedTuple, Self

import numpy as np

from pumice.api.annotations import ALIBABA_GPU_INDEX
from pumice.scheduler.model import Cluster, Index, Mask, NDArray, Rows, Task, Template

GPU_MILLI_NAME = "alibabacloud.com/gpu-milli"
WHOLE = 1000.0

Lefts = NDArray[np.float64]  #: thousandths of cards that are left
CardsLeft = tuple[float, ...]  #: thousandths that are left on the cards of one node, the least first

MOST_STATES = 10_000  #: if there are so many more than nodes, those that no node has are forgotten


class Ask(NamedTuple):
    """What a pod requests: the number of cards, and the thousandths of each."""

    cards: int = 0
    milli: float = 0.0

    @property
    def is_share(self) -> bool:
        return self.milli < WHOLE


NOTHING = Ask()
NO_STATES: Mask = np.zeros(0, bool)


class GpuCards(Index):
    """The index of what is left of each card. The lists of what is left on a node's cards are numbered; the number is the node's state."""

    choose: Callable[[int, Ask, Task], int]  #: picks the card on a row for a pod that requests a part of a card

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.choose = self.fullest
        self._asks: dict[Template, Ask] = {}
        self._last: tuple[str, int, tuple[int, ...]] = ("", -1, ())  #: uid, row and cards of the pod that left last, should it come back
        self.held: dict[str, tuple[int, ...]] = {}  #: cards by task uid
        self.lists: list[CardsLeft] = []  #: by state

    def begin(self) -> None:
        nodes, column = self.cluster.nodes, self.cluster.dimensions.columns.get(GPU_MILLI_NAME)
        rows = len(nodes)
        self.count = np.zeros(rows, np.intp) if column is None else (nodes.allocatable[column] // (1000 * WHOLE)).astype(np.intp)
        self._versions = self._as_they_are()
        most = int(self.count.max(initial=0))
        self.left: Lefts = np.where(np.arange(most) < self.count[:, None], WHOLE, 0.0)  #: [n, card]
        self.by_kind = np.zeros((rows, most + 1), np.intp)  #: [n, kind] number of pods that request a part of a card (0), or `kind` cards
        self.held.clear()
        self._number_states()

    def _number_states(self) -> None:
        self.lists = []
        self._states: dict[CardsLeft, int] = {}
        self._enough: dict[Ask, Mask] = {}
        self.states: Rows = np.zeros(len(self.left), np.intp)  #: [n]
        for row in range(len(self.left)):
            self._restate(row)

    def _restate(self, row: int) -> None:
        cards = tuple(sorted(self.left[row].tolist()))
        state = self._states.setdefault(cards, len(self.lists))
        if state == len(self.lists):
            self.lists.append(cards)
        self.states[row] = state

    def enough(self, ask: Ask) -> Mask:
        """By state, whether so many cards have so much left."""
        found = self._enough.get(ask, NO_STATES)
        if len(found) < len(self.lists):
            more = [len(left) >= ask.cards and left[-ask.cards] >= ask.milli for left in self.lists[len(found) :]]
            found = self._enough[ask] = np.concatenate([found, more])
        return found

    def _as_they_are(self) -> tuple[object, ...]:
        nodes, column = self.cluster.nodes, self.cluster.dimensions.columns.get(GPU_MILLI_NAME)
        return (len(nodes), column, nodes.static_version, None if column is None else float(nodes.allocatable[column].sum()))

    def refresh(self) -> None:
        """Count everything anew if nodes have changed."""
        if len(self.lists) > MOST_STATES + len(self.left):
            self._number_states()
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
        self._restate(row)
        self.held[task.uid] = cards
        self.by_kind[row, self.kind(ask)] += 1

    def _give_back(self, row: int, task: Task) -> None:
        ask, cards = self.ask(task.template), self.held.pop(task.uid, ())
        for card in cards:
            if card < self.count[row]:
                self.left[row, card] += ask.milli
        self._restate(row)
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
        left = [has if has >= ask.milli else inf for has in self.left[row].tolist()]
        return left.index(min(left))

    @staticmethod
    def _written(task: Task) -> tuple[int, ...]:
        """The cards in the pod's annotation, written as 0-2-3; empty if it is no such list."""
        parts = task.annotations.get(ALIBABA_GPU_INDEX, "").split("-")
        return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()

    def agrees(self, recount: Self) -> bool:
        return bool((self.left.sum(axis=1) == recount.left.sum(axis=1)).all() and (self.by_kind == recount.by_kind).all())
