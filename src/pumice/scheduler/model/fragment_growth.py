"""How the fragments of nodes grow by a pod, looked up: nodes on whose cards the same is left differ only by the level of their idle CPU.

Growth is counted in thousandths of cards. It is the difference of whole numbers, divided once: where fragments do not grow it is 0, in
whatever way they are summed up.
"""

from bisect import bisect_right
from collections.abc import Sequence
from math import inf, isnan

import numpy as np

from pumice.scheduler.model import NDArray, Rows
from pumice.scheduler.model.fragmentation import Column, TypicalPods
from pumice.scheduler.model.gpu_cards import NOTHING, WHOLE, Ask, CardsLeft

AtLevels = list[float]  #: fragments of a node if its idle CPU is at the first level, the second and so on


class FragmentGrowth:
    def __init__(self, typical: TypicalPods, lists: list[CardsLeft]) -> None:
        """`lists`: what is left on the cards of a node, by its state (`Cards.lists`)."""
        self.typical = typical
        self._lists = lists
        self._levels, self._pods = np.array(typical.levels), max(typical.covered, 1)
        self._now = _Now(typical)
        self._after: dict[Ask, _After] = {}

    def of(self, states: Rows, cpu: Column, request: float, ask: Ask) -> Column:
        """The growth at each node with this idle CPU, on the best of its cards; infinite where no card has enough left."""
        level, then = self._levels.searchsorted(cpu, "right"), self._levels.searchsorted(cpu - request, "right")
        growth: Column = (self._by_state(ask).at(states, then) - self._by_state(NOTHING).at(states, level)) / self._pods
        return growth

    def of_one(self, state: int, cpu: float, request: float, ask: Ask) -> float:
        """The same for one node."""
        levels = self.typical.levels
        after = self._by_state(ask)[state][bisect_right(levels, cpu - request)]
        return (after - self._now[self._lists[state]][bisect_right(levels, cpu)]) / self._pods

    def by_card(self, left: Sequence[float], cpu: float, request: float, milli: float) -> list[float]:
        """The growth at one node by the card of which a part is taken; infinite for cards that have less left."""
        now, levels = self._now, self.typical.levels
        before, level = now[tuple(sorted(left))][bisect_right(levels, cpu)], bisect_right(levels, cpu - request)
        after = {has: now[_without(left, has, milli)][level] if has >= milli else inf for has in set(left)}
        return [(after[has] - before) / self._pods for has in left]

    def _by_state(self, ask: Ask) -> "_After":
        found = self._after.get(ask)
        if found is None:
            found = self._after[ask] = _After(self._now, self._lists, ask)
        return found


def _without(left: Sequence[float], has: float, milli: float) -> CardsLeft:
    """What is left once a part of a card that has so much left is taken."""
    cards = list(left)
    cards[cards.index(has)] -= milli
    cards.sort()
    return tuple(cards)


class _Now(dict[CardsLeft, AtLevels]):
    """The fragments by what is left on the cards of a node."""

    def __init__(self, typical: TypicalPods) -> None:
        self._typical = typical

    def __missing__(self, left: CardsLeft) -> AtLevels:
        made = self[left] = self._typical.at_levels(left)
        return made


class _After(dict[int, AtLevels]):
    """The fragments by state, once a pod has taken the best cards for it."""

    def __init__(self, now: _Now, lists: list[CardsLeft], ask: Ask) -> None:
        self._now, self._lists, self._ask = now, lists, ask
        self._cells: NDArray[np.float64] = np.empty((0, len(now[()])))  #: the same as an array; NaN where it is not known yet

    def __missing__(self, state: int) -> AtLevels:
        ways = [self._now[left] for left in self._lefts(self._lists[state])]
        least = ways[0] if len(ways) == 1 else list(map(min, *ways)) if ways else [inf] * len(self._now[()])
        self[state] = least
        return least

    def _lefts(self, left: CardsLeft) -> list[CardsLeft]:
        """What may be left on the cards."""
        cards, milli = self._ask
        if self._ask.is_share and cards:
            return [_without(left, has, milli) for has in set(left) if has >= milli]
        if left[len(left) - cards :].count(WHOLE) < cards:
            return []
        return [(*[0.0] * cards, *left[: len(left) - cards])]

    def at(self, states: Rows, levels: Rows) -> Column:
        if len(self._cells) < len(self._lists):
            self._cells = np.concatenate([self._cells, np.full((len(self._lists), self._cells.shape[1]), np.nan)])
        found: Column = self._cells[states, levels]
        if isnan(found.dot(found)):
            for state in set(states[np.isnan(found)].tolist()):
                self._cells[state] = self[state]
            found = self._cells[states, levels]
        return found
