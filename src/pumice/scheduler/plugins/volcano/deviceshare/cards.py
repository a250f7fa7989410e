"""Device cards and shares of cards, as immutable values.

A request is tried on a tuple of cards. It gives a `CardChoice`, or a `CardShortage` with the reason why no cards fit. To a request that
does not name cards, cards that differ only in their names are equal, so that one answer serves all nodes in the same state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from pumice.api.annotations import VGPU_GROUP_POLICY
from pumice.api.core import Node
from pumice.scheduler.model import Task

WHOLE = -1  #: the memory of a share that takes the whole card


class Card(NamedTuple):
    """One physical card. `marks`: the marks of all pods on it."""

    id: str
    model: str
    slots: int  #: how many shares it may have; not used by gpushare
    memory: int
    used_slots: int = 0
    used_memory: int = 0
    used_cores: int = 0  #: percent
    marks: frozenset[str] = frozenset()

    @property
    def idle_memory(self) -> int:
        return self.memory - self.used_memory

    @property
    def unused(self) -> bool:
        return self.used_slots == 0

    def shared(self, memory: int, cores: int, marks: frozenset[str]) -> Card:
        """The card with one more share taken."""
        return self._replace(
            used_slots=self.used_slots + 1,
            used_memory=self.used_memory + (self.memory if memory == WHOLE else memory),
            used_cores=self.used_cores + cores,
            marks=self.marks | marks,
        )


Cards = tuple[Card, ...]


class CardShare(NamedTuple):
    """The share of one card that one container holds."""

    card: str
    memory: int
    cores: int = 0


Holding = tuple[tuple[CardShare, ...], ...]  #: the shares of each container


class CardChoice(NamedTuple):
    """The chosen cards (for each container: position, memory and cores of each of its cards), and the score of the choice."""

    picks: tuple[tuple[tuple[int, int, int], ...], ...]
    score: float

    def holding(self, cards: Cards) -> Holding:
        return tuple(tuple(CardShare(cards[at].id, memory, cores) for at, memory, cores in container) for container in self.picks)


class CardShortage(str):
    """The reason why no cards were chosen."""

    __slots__ = ()


class CardRequest(Protocol):
    """A pod's request for one kind of device. Hashable."""

    @property
    def names_cards(self) -> bool:
        """Whether the answer depends on the cards' names."""

    def choose(self, cards: Cards) -> CardChoice | CardShortage: ...


class CardKind(Protocol):
    """A kind of shared device."""

    name: str

    def request(self, task: Task, marks: frozenset[str]) -> CardRequest | None:
        """The task's request, which avoids cards with any of these marks; None if the task does not request this kind."""

    def cards(self, node: Node, now: float) -> Cards:
        """The node's cards with no shares taken; empty if the node has no such device."""

    def holding(self, task: Task, annotations: Mapping[str, str]) -> Holding:
        """The shares that the task holds according to these annotations."""

    def annotations(self, holding: Holding, node: str, now: float) -> dict[str, str]:
        """The annotations to write on a pod that gets these shares."""


def occupied(cards: Cards, holding: Holding, marks: frozenset[str]) -> Cards:
    """The cards with the shares of one pod taken. Shares of cards that the node does not have are ignored."""
    by_id = {card.id: card for card in cards}
    for share in (share for container in holding for share in container):
        if share.card in by_id:
            by_id[share.card] = by_id[share.card].shared(share.memory, share.cores, marks)
    return tuple(by_id.values())


class Exclusive:
    """The marks that pods put on the cards they use: two pods with a mark in common never share a card.

    There is a mark for each rule (a set of labels) that a pod matches, and one for its PodGroup if it asks to be spread.
    """

    def __init__(self, rules: Iterable[Mapping[str, str]]) -> None:
        self._rules = [rule.items() for rule in rules if rule]

    def marks(self, task: Task) -> frozenset[str]:
        found = [f"rule {number}" for number, rule in enumerate(self._rules) if rule <= task.labels.items()]
        if task.job is not None and task.annotations.get(VGPU_GROUP_POLICY) == "spread":
            found.append(f"group {task.job.uid}")
        return frozenset(found)
