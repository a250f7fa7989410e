"""Fragmentation of GPUs: the part of a node's idle GPUs that the typical pods cannot use (FGD, USENIX ATC'23).

For a typical pod, all that is left on a node's cards is a fragment if the pod cannot run there or requests no GPU; else what is left on
cards that have less left than it requests of one card. The fragments of a node are the mean over the typical pods, weighted by frequency.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from pumice.scheduler.model import NDArray
from pumice.scheduler.model.gpu_cards import WHOLE, Ask, CardsLeft, Lefts

COVERED = 0.95  #: the part of all pods that the typical kinds cover
Column = NDArray[np.float64]


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
        self.covered = covered  #: the number of pods of these kinds
        self.weight: Column = np.array([count for _, count in with_gpu], float) / max(covered, 1)
        self.without = 1.0 - float(self.weight.sum()) if chosen else 0.0  #: the share of the pods that request no GPU
        self.cpu: Column = np.array([kind.cpu_milli for kind, _ in with_gpu], float)
        self.cards: Column = np.array([kind.ask.cards for kind, _ in with_gpu], float)
        self.milli: Column = np.array([kind.ask.milli for kind, _ in with_gpu], float)
        self.levels: list[float] = sorted({kind.cpu_milli for kind, _ in with_gpu})  #: what they request of CPU
        self._counted = [(bisect_right(self.levels, kind.cpu_milli), *kind.ask, count) for kind, count in with_gpu]

    def fragments(self, cpu: Column, left: Lefts) -> Column:
        """The fragments of each node in thousandths of cards, by its idle CPU [n] and what is left on its cards [n, card]."""
        suits = left[:, :, None] >= self.milli
        return self._mean(cpu, left.sum(axis=1), suits.sum(axis=1), np.where(suits, 0.0, left[:, :, None]).sum(axis=1))

    def fragments_of_whole(self, cpu: Column, cards: Column) -> Column:
        """The same where no card is shared, by the number of idle cards of each node."""
        return self._mean(cpu, cards * WHOLE, cards[:, None], np.zeros((1, 1)))

    def _mean(self, cpu: Column, whole: Column, suit: Lefts, small: Lefts) -> Column:
        """`whole`: what is left on each node; for each kind of pod `suit`: on how many cards it fits, `small`: what is left on others."""
        runs = (cpu[:, None] >= self.cpu) & (suit >= self.cards)
        found: Column = np.where(runs, small, whole[:, None]) @ self.weight + whole * self.without
        return found

    def at_levels(self, left: CardsLeft) -> list[float]:
        """The fragments of one node times `covered`: if its idle CPU is below all `levels`, if it reaches the first, the second and so on.
        Of whole thousandths the numbers are whole, and so exact."""
        below = [0.0, *accumulate(left)]
        changes = [below[-1] * self.covered, *[0.0] * len(self.levels)]
        for level, cards, milli, count in self._counted:
            small = bisect_left(left, milli)
            if len(left) - small >= cards:
                changes[level] -= count * (below[-1] - below[small])
        return [*accumulate(changes)]
