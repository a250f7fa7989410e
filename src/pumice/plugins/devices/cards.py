"""Cards and shares of them, as values.

A request is tried on a tuple of cards and gives a `Choice` or the reason why not. Cards that differ only in their name are equal to
a request that does not ask for names, so that one answer serves all nodes in the same state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from pumice.api.annotations import VGPU_GROUP_POLICY
from pumice.api.core import Node
from pumice.model.task import Task

WHOLE = -1  #: memory of a share that is the whole card


class Card(NamedTuple):
    """One physical card; `marks` are those of the pods on it."""

    id: str
    model: str
    slots: int  #: how many may share it; 0 is any number
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
        """With one more share taken."""
        return self._replace(
            used_slots=self.used_slots + 1,
            used_memory=self.used_memory + (self.memory if memory == WHOLE else memory),
            used_cores=self.used_cores + cores,
            marks=self.marks | marks,
        )


Cards = tuple[Card, ...]


class Share(NamedTuple):
    """What one container holds of one card."""

    card: str
    memory: int
    cores: int = 0


Holding = tuple[tuple[Share, ...], ...]  #: by container


class Choice(NamedTuple):
    """Positions of cards by container, with memory and cores of each; and how good that is."""

    picks: tuple[tuple[tuple[int, int, int], ...], ...]
    score: float

    def holding(self, cards: Cards) -> Holding:
        return tuple(tuple(Share(cards[at].id, memory, cores) for at, memory, cores in container) for container in self.picks)


class Misfit(str):
    """Why no cards were chosen."""

    __slots__ = ()


class Request(Protocol):
    """What a pod wants. Hashable."""

    @property
    def names_cards(self) -> bool:
        """Whether the answer depends on the cards' names."""

    def choose(self, cards: Cards) -> Choice | Misfit: ...


class Kind(Protocol):
    """A kind of shared device."""

    name: str

    def request(self, task: Task, marks: frozenset[str]) -> Request | None:
        """What the task wants; with those marks it keeps off cards that bear one of them."""

    def cards(self, node: Node, now: float) -> Cards:
        """The node's cards, nothing taken; none if it has no such device."""

    def holding(self, task: Task, annotations: Mapping[str, str]) -> Holding:
        """What the annotations say that the task holds."""

    def annotations(self, holding: Holding, node: str, now: float) -> dict[str, str]:
        """What to write on a pod that gets this."""


def occupied(cards: Cards, holding: Holding, marks: frozenset[str]) -> Cards:
    """The cards with the shares of one pod taken. Shares of cards that are not there are nobody's."""
    by_id = {card.id: card for card in cards}
    for share in (share for container in holding for share in container):
        if share.card in by_id:
            by_id[share.card] = by_id[share.card].shared(share.memory, share.cores, marks)
    return tuple(by_id.values())


class Exclusive:
    """By what pods mark the cards they are on: two pods with a mark in common never share one.

    There is a mark for each rule (a set of labels) that a pod matches, and one for its PodGroup if it asks to be spread.
    """

    def __init__(self, rules: Iterable[Mapping[str, str]]) -> None:
        self._rules = [rule.items() for rule in rules if rule]

    def marks(self, task: Task) -> frozenset[str]:
        found = [f"rule {number}" for number, rule in enumerate(self._rules) if rule <= task.labels.items()]
        if task.job is not None and task.annotations.get(VGPU_GROUP_POLICY) == "spread":
            found.append(f"group {task.job.uid}")
        return frozenset(found)
