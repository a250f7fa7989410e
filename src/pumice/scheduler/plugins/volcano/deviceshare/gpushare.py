"""gpushare: parts of a card's memory (`volcano.sh/gpu-memory`), or whole cards (`volcano.sh/gpu-number`).

The memory in a node's capacity is divided equally among its cards. A request for memory gets the first card with enough memory left;
whole cards must be unused. The annotation `volcano.sh/gpu-index` of a pod has the numbers of its cards.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pumice.api.annotations import GPU_INDEX, GPU_TIME, GPU_UNHEALTHY
from pumice.api.core import Node
from pumice.scheduler.model import Task
from pumice.scheduler.plugins.volcano.deviceshare.cards import WHOLE, Card, CardChoice, Cards, CardShare, CardShortage, Holding

MEMORY, NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"
MOST_CARDS = 4096  #: a node that says that it has more is taken to have none: no machine has, and each card takes memory here


class GpuRequest(NamedTuple):
    """A request for memory of one card, or for a number of whole cards. One of `memory` and `number` is 0."""

    memory: int
    number: int
    marks: frozenset[str]
    names_cards: bool = False

    def choose(self, cards: Cards) -> CardChoice | CardShortage:
        if self.memory:
            fitting = [at for at, card in enumerate(cards) if card.idle_memory >= self.memory and not card.marks & self.marks]
            wanted, pick = 1, self.memory
            short = f"no GPU card with {self.memory} {MEMORY} idle"
        else:
            fitting = [at for at, card in enumerate(cards) if card.unused]
            wanted, pick = self.number, WHOLE
            short = f"fewer than {self.number} unused GPU cards"
        if len(fitting) < wanted:
            return CardShortage(f"node(s) had {short}")
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
        if MEMORY not in capacity or NUMBER not in capacity or not 0 < capacity[NUMBER].whole <= MOST_CARDS:
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
