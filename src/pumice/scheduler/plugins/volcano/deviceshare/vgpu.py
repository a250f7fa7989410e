"""vgpu: slots on a card with a part of its memory and cores (`volcano.sh/vgpu-number`, `-memory`, `-memory-percentage`, `-cores`).

A node's annotation `volcano.sh/node-vgpu-register` lists its cards; a pod's annotation `volcano.sh/vgpu-ids-new` lists the shares that
the pod holds. With annotations, pods choose or avoid cards by model and by UUID. Cards in a mode other than hami-core (MIG) are ignored.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from pumice.api.annotations import (
    VGPU_BIND_TIME,
    VGPU_CARDS,
    VGPU_HANDSHAKE,
    VGPU_IDS,
    VGPU_MODE,
    VGPU_MODELS,
    VGPU_NODE,
    VGPU_OTHER_CARDS,
    VGPU_OTHER_MODELS,
    VGPU_PHASE,
    VGPU_REGISTER,
    VGPU_TIME,
    VGPU_TO_ALLOCATE,
)
from pumice.api.core import Node
from pumice.api.integers import integer
from pumice.api.pod import Container
from pumice.scheduler.model import Task
from pumice.scheduler.model.task import TRUE_WORDS
from pumice.scheduler.plugins.volcano.deviceshare.cards import Card, CardChoice, Cards, CardShare, CardShortage, Holding

NUMBER, MEMORY = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory"
PERCENTAGE, CORES = "volcano.sh/vgpu-memory-percentage", "volcano.sh/vgpu-cores"

HAMI_CORE = "hami-core"
VENDOR = "NVIDIA"
HANDSHAKE_S = 60.0  #: a node's device plugin that has not answered for longer counts as gone
FULL = 100


class Need(NamedTuple):
    """What one container requests: a number of cards, and of each card memory (MiB, or percent of the card) and cores (percent)."""

    number: int
    memory: int
    percentage: int
    cores: int

    def memory_of(self, card: Card) -> int:
        return self.memory or card.memory * self.percentage // 100

    def fits(self, card: Card) -> bool:
        if card.used_slots >= card.slots or card.idle_memory < self.memory_of(card) or FULL - card.used_cores < self.cores:
            return False
        if self.cores == FULL and not card.unused:
            return False
        return self.cores > 0 or card.used_cores < FULL

    def __str__(self) -> str:
        memory = f"{self.memory} MiB" if self.memory else f"{self.percentage}% of the memory"
        return f"{self.number} GPU card(s) with {memory}" + (f" and {self.cores}% of the cores" if self.cores else "")


class VgpuRequest(NamedTuple):
    needs: tuple[Need, ...]
    policy: str
    mode: str = HAMI_CORE
    models: tuple[str, ...] = ()
    other_models: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    other_ids: tuple[str, ...] = ()
    marks: frozenset[str] = frozenset()

    @property
    def names_cards(self) -> bool:
        return bool(self.ids or self.other_ids)

    def choose(self, cards: Cards) -> CardChoice | CardShortage:
        if self.mode != HAMI_CORE:
            return CardShortage(f"node(s) had no GPU cards in mode {self.mode}")
        allowed = {at for at, card in enumerate(cards) if self._accepts(card)}
        state, picks, score = list(cards), [], 0.0
        for need in self.needs:
            chosen = [at for at in self._order(state) if at in allowed and need.fits(state[at])][: need.number]
            if len(chosen) < need.number:
                return CardShortage(f"node(s) had fewer than {need} left")
            for at in chosen:
                state[at] = state[at].shared(need.memory_of(state[at]), need.cores, frozenset())
                score += self._score(state[at])
            picks.append(tuple((at, need.memory_of(cards[at]), need.cores) for at in chosen))
        return CardChoice(tuple(picks), score)

    def _accepts(self, card: Card) -> bool:
        model = card.model.lower()
        if self.models and not any(wanted in model for wanted in self.models):
            return False
        if any(unwanted in model for unwanted in self.other_models) or card.id in self.other_ids:
            return False
        return (not self.ids or card.id in self.ids) and not card.marks & self.marks

    def _order(self, cards: list[Card]) -> list[int]:
        """The positions of the cards, in the order in which cards are tried."""
        match self.policy:
            case "binpack":
                return sorted(range(len(cards)), key=lambda at: (-_fullness(cards[at]), at))
            case "spread":
                return sorted(range(len(cards)), key=lambda at: (cards[at].used_slots, at))
        return list(range(len(cards) - 1, -1, -1))

    def _score(self, card: Card) -> float:
        """The score of a card with the new share on it."""
        match self.policy:
            case "binpack":
                return FULL * _fullness(card)
            case "spread":
                return FULL * float(card.used_slots == 1)
        return 0.0


def _fullness(card: Card) -> float:
    return card.used_memory / card.memory if card.memory else 0.0


class Vgpu:
    name = "vgpu"

    def __init__(self, policy: str) -> None:
        self._policy = policy

    def request(self, task: Task, marks: frozenset[str]) -> VgpuRequest | None:
        needs = tuple(need for need in map(_need, task.template.containers) if need is not None)
        if not needs:
            return None
        notes = task.annotations
        return VgpuRequest(
            needs,
            self._policy,
            notes.get(VGPU_MODE) or HAMI_CORE,
            models=_words(notes.get(VGPU_MODELS, "").lower()),
            other_models=_words(notes.get(VGPU_OTHER_MODELS, "").lower()),
            ids=_words(notes.get(VGPU_CARDS, "")),
            other_ids=_words(notes.get(VGPU_OTHER_CARDS, "")),
            marks=marks,
        )

    def cards(self, node: Node, now: float) -> Cards:
        notes = node.metadata.annotations or {}
        if not _answers(notes.get(VGPU_HANDSHAKE, ""), now):
            return ()
        entries = [entry.split(",") for entry in notes.get(VGPU_REGISTER, "").split(":")]
        return tuple(card for card in map(_card, entries) if card is not None)

    def holding(self, task: Task, annotations: Mapping[str, str]) -> Holding:
        text = annotations.get(VGPU_IDS)
        if not text:
            return ()
        return tuple(tuple(map(_share, filter(None, container.split(":")))) for container in text.split(";"))

    def annotations(self, holding: Holding, node: str, now: float) -> dict[str, str]:
        ids = ";".join("".join(f"{s.card},{VENDOR},{s.memory},{s.cores}:" for s in container) for container in holding)
        moment = str(int(now))
        return {VGPU_IDS: ids, VGPU_TO_ALLOCATE: ids, VGPU_NODE: node, VGPU_TIME: moment, VGPU_PHASE: "allocating", VGPU_BIND_TIME: moment}


def _need(container: Container) -> Need | None:
    resources = container.resources
    limits = (resources.limits if resources else None) or {}
    if NUMBER not in limits and MEMORY not in limits:
        return None
    given = ((resources.requests if resources else None) or {}) | limits
    amounts = {name: given[name].whole if name in given else 0 for name in (NUMBER, MEMORY, PERCENTAGE, CORES)}
    memory, percentage = amounts[MEMORY], amounts[PERCENTAGE]
    return Need(amounts[NUMBER] or 1, memory, percentage if memory or percentage else FULL, min(amounts[CORES], FULL))


def _answers(handshake: str, now: float) -> bool:
    """Whether the node's device plugin is alive: not marked as deleted, and no handshake request was left unanswered for HANDSHAKE_S."""
    if handshake.startswith("Deleted"):
        return False
    word, _, asked = handshake.partition("_")
    if word != "Requesting":
        return True
    try:
        return now - datetime.strptime(asked, "%Y.%m.%d %H:%M:%S").replace(tzinfo=UTC).timestamp() <= HANDSHAKE_S
    except ValueError:
        return False


def _card(entry: list[str]) -> Card | None:
    """The card of an entry `uuid,count,memory,type,health`; None if it is no healthy card in the mode hami-core."""
    if len(entry) < 5 or entry[4] not in TRUE_WORDS or (len(entry) > 5 and entry[5] not in ("", HAMI_CORE)):
        return None
    try:
        return Card(entry[0], entry[3], int(entry[1]), int(entry[2]))
    except ValueError:
        return None


def _share(text: str) -> CardShare:
    """The share in a text `uuid,type,memory,cores`; an amount that is not a number counts as 0."""
    parts = (*text.split(","), "", "", "")
    memory, cores = (max(0, integer(part)) for part in parts[2:4])
    return CardShare(parts[0], memory, cores)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())
