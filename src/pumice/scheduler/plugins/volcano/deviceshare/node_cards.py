"""The cards of every node in one session, with the shares that the pods on the node have taken.

A node has two states. In `now`, pods that are leaving still hold their cards. In `later`, these pods have gone and pipelined pods have
come. Filters and scorers look at `later`, as they do for ports; an allocated pod gets cards that are free now, if any fit.
"""

from collections.abc import Hashable, Mapping
from typing import NamedTuple

from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Task, status
from pumice.scheduler.plugins.volcano.deviceshare.cards import CardChoice, CardKind, CardRequest, Cards, CardShortage, Exclusive, occupied

JUST_PLACED = status.ALLOCATED | status.PIPELINED
ON_ITS_WAY = status.ALLOCATED | status.BINDING | status.BOUND


class NodeCards(NamedTuple):
    """The cards of one node. `arriving`: the number of pods that have been given cards and do not run yet."""

    now: Cards
    later: Cards
    arriving: int


class CardPools:
    """The cards of all nodes, for one kind of device. `written`: by task uid, annotations that the pod does not show yet."""

    def __init__(self, session: Session, kind: CardKind, exclusive: Exclusive, written: Mapping[str, Mapping[str, str]]) -> None:
        self._session = session
        self._exclusive = exclusive
        self._written = written
        self._position = len(session.cluster.log)
        self._pools: dict[int, NodeCards | None] = {}
        self._verdicts: dict[Hashable, CardChoice | CardShortage] = {}
        self.kind = kind

    def request(self, task: Task) -> CardRequest | None:
        return self.kind.request(task, self._exclusive.marks(task))

    def at(self, row: int) -> NodeCards | None:
        log = self._session.cluster.log
        for change in log[self._position :]:
            self._pools.pop(change.row, None)
        self._position = len(log)
        if row not in self._pools:
            self._pools[row] = self._build(row)
        return self._pools[row]

    def forget(self, row: int) -> None:
        """Have the cards of a node counted anew: a pod there has been given cards."""
        self._pools.pop(row, None)

    def _build(self, row: int) -> NodeCards | None:
        nodes = self._session.nodes
        cards = self.kind.cards(nodes.wire[row], self._session.now)
        if not cards:
            return None
        now = later = cards
        arriving = 0
        for task in nodes.tasks[row].values():
            shown = {} if task.status & JUST_PLACED else task.annotations  # a pod that was just placed may still have old annotations
            holding = self.kind.holding(task, self._written.get(task.uid, shown))
            if not holding:
                continue
            arriving += bool(task.status & ON_ITS_WAY)
            marks = self._exclusive.marks(task)
            if task.status != status.PIPELINED:
                now = occupied(now, holding, marks)
            if task.status != status.RELEASING:
                later = occupied(later, holding, marks)
        return NodeCards(now, later, arriving)

    def choose(self, request: CardRequest, cards: Cards) -> CardChoice | CardShortage:
        """The choice of cards for a request, made once for all cards that look the same to the request."""
        seen: Cards = cards if request.names_cards else tuple(card._replace(id="") for card in cards)
        key = (request, seen)
        found = self._verdicts.get(key)
        if found is None:
            found = self._verdicts[key] = request.choose(cards)
        return found

    def take(self, task: Task, request: CardRequest) -> dict[str, str]:
        """The annotations that give cards to a task that is already placed on its node; empty if no cards fit."""
        pool = self.at(task.node)
        if pool is None:
            return {}
        states = [pool.later] if task.status == status.PIPELINED else [pool.now, pool.later]
        for cards in states:
            choice = self.choose(request, cards)
            if isinstance(choice, CardChoice):
                return self.kind.annotations(choice.holding(cards), task.node_name, self._session.now)
        return {}
