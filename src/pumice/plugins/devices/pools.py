"""The cards of every node in one session, as the pods on the node leave them.

A node has two states: `now`, where pods that are leaving still hold their cards, and `later`, where those have gone and those that
are promised a place have come. Rules look at `later`, as they do for ports; who is placed gets cards that are free now, if any fit.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple

from pumice.framework.session import Session
from pumice.model import status
from pumice.model.task import Task
from pumice.plugins.devices.cards import Cards, Choice, Exclusive, Kind, Misfit, Request, occupied

JUST_PLACED = status.ALLOCATED | status.PIPELINED
ON_ITS_WAY = status.ALLOCATED | status.BINDING | status.BOUND


class Pool(NamedTuple):
    """The cards of one node; `arriving` pods have been given some and do not run yet."""

    now: Cards
    later: Cards
    arriving: int


class Pools:
    """The pools of one kind. `written` are annotations by task uid that its pod does not show yet."""

    def __init__(self, session: Session, kind: Kind, exclusive: Exclusive, written: Mapping[str, Mapping[str, str]]) -> None:
        self._session = session
        self._exclusive = exclusive
        self._written = written
        self._position = len(session.cluster.log)
        self._pools: dict[int, Pool | None] = {}
        self._verdicts: dict[Hashable, Choice | Misfit] = {}
        self.kind = kind

    def request(self, task: Task) -> Request | None:
        return self.kind.request(task, self._exclusive.marks(task))

    def at(self, row: int) -> Pool | None:
        """The node's pool; None if it has no such device."""
        log = self._session.cluster.log
        for change in log[self._position :]:
            self._pools.pop(change.row, None)
        self._position = len(log)
        if row not in self._pools:
            self._pools[row] = self._build(row)
        return self._pools[row]

    def forget(self, row: int) -> None:
        """What stands on the node has been given cards."""
        self._pools.pop(row, None)

    def _build(self, row: int) -> Pool | None:
        nodes = self._session.nodes
        cards = self.kind.cards(nodes.wire[row], self._session.now)
        if not cards:
            return None
        now = later = cards
        arriving = 0
        for task in nodes.tasks[row].values():
            shown = {} if task.status & JUST_PLACED else task.annotations  # what such a pod says is from an earlier life
            holding = self.kind.holding(task, self._written.get(task.uid, shown))
            if not holding:
                continue
            arriving += bool(task.status & ON_ITS_WAY)
            marks = self._exclusive.marks(task)
            if task.status != status.PIPELINED:
                now = occupied(now, holding, marks)
            if task.status != status.RELEASING:
                later = occupied(later, holding, marks)
        return Pool(now, later, arriving)

    def choose(self, request: Request, cards: Cards) -> Choice | Misfit:
        """The same for all cards that look the same to the request."""
        seen: Cards = cards if request.names_cards else tuple(card._replace(id="") for card in cards)
        key = (request, seen)
        found = self._verdicts.get(key)
        if found is None:
            found = self._verdicts[key] = request.choose(cards)
        return found

    def take(self, task: Task, request: Request) -> dict[str, str]:
        """Annotations that give the task, which stands on its node already, cards there; empty if there are none."""
        pool = self.at(task.node)
        if pool is None:
            return {}
        states = [pool.later] if task.status == status.PIPELINED else [pool.now, pool.later]
        for cards in states:
            choice = self.choose(request, cards)
            if isinstance(choice, Choice):
                return self.kind.annotations(choice.holding(cards), task.node_name, self._session.now)
        return {}
