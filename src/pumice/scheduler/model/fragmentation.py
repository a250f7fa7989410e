"""Fragmentation of GPUs: the part of a node's idle GPUs that the typical pods cannot use (FGD, USENIX ATC'23).

For a typical pod, all that is left on a node's cards is a fragment if the pod cannot run there or requests no GPU; else what is left on
cards that have less left than it requests of one card. The fragments of a node are the mean over the typical pods, weighted by frequency.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np

from pumice.scheduler.model import NDArray
from pumice.scheduler.model.gpu_cards import WHOLE, Ask, Lefts

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
