"""Device cards and shares of cards, as immutable values.

A request is tried on a tuple of cards. It gives a `CardChoice`, or a `CardMisfit` with the reason why no cards fit. To a request that does
not name cards, cards that differ only in their names are equal, so that one answer serves all nodes in the same state.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple, Protocol

from pumice.api.annotations import GPU_INDEX, GPU_TIME, GPU_UNHEALTHY, VGPU_GROUP_POLICY
from pumice.api.core import Node
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import status
from pumice.scheduler.model.task import Task

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


class CardMisfit(str):
    """The reason why no cards were chosen."""

    __slots__ = ()


class CardRequest(Protocol):
    """A pod's request for one kind of device. Hashable."""

    @property
    def names_cards(self) -> bool:
        """Whether the answer depends on the cards' names."""

    def choose(self, cards: Cards) -> CardChoice | CardMisfit: ...


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


# The cards of every node in one session, with the shares that the pods on the node have taken.
#
# A node has two states. In `now`, pods that are leaving still hold their cards. In `later`, these pods have gone and pipelined pods have
# come. Filters and scorers look at `later`, as they do for ports; an allocated pod gets cards that are free now, if any fit.

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
        self._verdicts: dict[Hashable, CardChoice | CardMisfit] = {}
        self.kind = kind

    def request(self, task: Task) -> CardRequest | None:
        return self.kind.request(task, self._exclusive.marks(task))

    def at(self, row: int) -> NodeCards | None:
        """The cards of the node; None if it has no such device."""
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

    def choose(self, request: CardRequest, cards: Cards) -> CardChoice | CardMisfit:
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


# gpushare: parts of a card's memory (`volcano.sh/gpu-memory`), or whole cards (`volcano.sh/gpu-number`).
#
# The memory in a node's capacity is divided equally among its cards. A request for memory gets the first card with enough memory left;
# whole cards must be unused. The annotation `volcano.sh/gpu-index` of a pod has the numbers of its cards.

MEMORY, NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"


class GpuRequest(NamedTuple):
    """A request for memory of one card, or for a number of whole cards. One of `memory` and `number` is 0."""

    memory: int
    number: int
    marks: frozenset[str]
    names_cards: bool = False

    def choose(self, cards: Cards) -> CardChoice | CardMisfit:
        if self.memory:
            fitting = [at for at, card in enumerate(cards) if card.idle_memory >= self.memory and not card.marks & self.marks]
            wanted, pick = 1, self.memory
            short = f"no GPU card with {self.memory} {MEMORY} idle"
        else:
            fitting = [at for at, card in enumerate(cards) if card.unused]
            wanted, pick = self.number, WHOLE
            short = f"fewer than {self.number} unused GPU cards"
        if len(fitting) < wanted:
            return CardMisfit(f"node(s) had {short}")
        return CardChoice((tuple((at, pick, 0) for at in fitting[:wanted]),), 0.0)


class GpuShare:
    name = "gpushare"

    def __init__(self, *, by_memory: bool, by_number: bool) -> None:
        self._by_memory, self._by_number = by_memory, by_number

    def request(self, task: Task, marks: frozenset[str]) -> GpuRequest | None:
        limits = task.template.limits
        memory = int(limits.get(MEMORY, 0)) if self._by_memory else 0
        number = int(limits.get(NUMBER, 0)) if self._by_number and not memory else 0
        return GpuRequest(memory, number, marks) if memory or number else None

    def cards(self, node: Node, now: float) -> Cards:
        capacity = node.status.capacity or {}
        if MEMORY not in capacity or NUMBER not in capacity or capacity[NUMBER].whole <= 0:
            return ()
        number = capacity[NUMBER].whole
        each = capacity[MEMORY].whole // number
        unhealthy = set(((node.metadata.annotations or {}).get(GPU_UNHEALTHY) or "").replace(" ", "").split(","))
        return tuple(Card(str(index), "", 0, each) for index in range(number) if str(index) not in unhealthy)

    def holding(self, task: Task, annotations: Mapping[str, str]) -> Holding:
        text = annotations.get(GPU_INDEX)
        if not text:
            return ()
        limits = task.template.limits
        memory = int(limits.get(MEMORY, 0)) or (WHOLE if limits.get(NUMBER) else 0)
        return (tuple(CardShare(index.strip(), memory) for index in text.split(",")),) if memory else ()

    def annotations(self, holding: Holding, node: str, now: float) -> dict[str, str]:
        return {GPU_INDEX: ",".join(share.card for share in holding[0]), GPU_TIME: str(round(now * 1e9))}
