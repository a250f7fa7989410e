"""How the fragments of nodes grow by a pod, looked up: nodes on whose cards the same is left differ only by the level of their idle CPU.

The lists of what is left on a node's cards are numbered; the number is the node's state. Growth is counted in thousandths of cards. It is
the difference of whole numbers, divided once: where fragments do not grow it is 0, in whatever way they are summed up.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from math import inf

import numpy as np

from pumice.scheduler.model import NDArray, Rows
from pumice.scheduler.model.fragmentation import CardsLeft, Column, TypicalPods
from pumice.scheduler.model.gpu_cards import NOTHING, WHOLE, Ask


class FragmentGrowth:
    def __init__(self, typical: TypicalPods) -> None:
        self._typical = typical
        self._levels, self._pods = np.array(typical.levels), max(typical.covered, 1)
        self._states: dict[CardsLeft, int] = {}
        self._lefts: list[CardsLeft] = []
        self._now = _Fragments(len(typical.levels) + 1, lambda state: typical.at_levels(self._lefts[state]))
        self._after: dict[Ask, _Fragments] = {NOTHING: self._now}

    def state(self, left: Iterable[float]) -> int:
        """The state of a node by what is left on its cards."""
        cards = tuple(sorted(left))
        if cards not in self._states:
            self._states[cards] = len(self._lefts)
            self._lefts.append(cards)
        return self._states[cards]

    def of(self, states: Rows, cpu: Column, request: float, ask: Ask) -> Column:
        """The growth at each node with this idle CPU, on the best of its cards; infinite where no card has enough left."""
        level, then = (self._levels.searchsorted(idle, "right") for idle in (cpu, cpu - request))
        growth: Column = (self._fragments(ask).at(states, then) - self._now.at(states, level)) / self._pods
        return growth

    def of_one(self, left: Sequence[float], cpu: float, request: float, ask: Ask) -> float:
        """The same for one node."""
        state, levels = self.state(left), self._typical.levels
        after = self._fragments(ask)[state][bisect_right(levels, cpu - request)]
        return (after - self._now[state][bisect_right(levels, cpu)]) / self._pods

    def by_card(self, left: Sequence[float], cpu: float, request: float, milli: float) -> list[float]:
        """The growth at one node by the card of which a part is taken; infinite for cards that have less left."""
        now, levels = self._now, self._typical.levels
        before, level = now[self.state(left)][bisect_right(levels, cpu)], bisect_right(levels, cpu - request)
        fine = [has >= milli for has in left]
        return [(now[self._without(left, card, milli)][level] - before) / self._pods if fine[card] else inf for card in range(len(left))]

    def _fragments(self, ask: Ask) -> "_Fragments":
        found = self._after.get(ask)
        if found is None:
            found = self._after[ask] = _Fragments(len(self._levels) + 1, lambda state: self._least(self._lefts[state], ask))
        return found

    def _least(self, left: CardsLeft, ask: Ask) -> list[float]:
        """The fragments at each level once a pod has taken the best cards."""
        if ask.is_share:
            distinct = [card for card, has in enumerate(left) if has >= ask.milli and left.index(has) == card]
            after = [self._without(left, card, ask.milli) for card in distinct]
        else:
            after = [self.state((*left[: -ask.cards], *[0.0] * ask.cards))] if left[-ask.cards :].count(WHOLE) == ask.cards else []
        return [min(each) for each in zip(*[self._now[state] for state in after], strict=True)] or [inf] * (len(self._levels) + 1)

    def _without(self, left: Sequence[float], card: int, milli: float) -> int:
        """The state once a part of a card is taken."""
        return self.state((*left[:card], left[card] - milli, *left[card + 1 :]))


class _Fragments(dict[int, list[float]]):
    """Fragments at each level by state, computed when a state first occurs."""

    def __init__(self, levels: int, compute: Callable[[int], list[float]]) -> None:
        self._compute = compute
        self._cells: NDArray[np.float64] = np.empty((64, levels))

    def __missing__(self, state: int) -> list[float]:
        if state >= len(self._cells):
            self._cells = np.concatenate([self._cells, np.empty((state, self._cells.shape[1]))])
        made = self[state] = self._cells[state] = self._compute(state)
        return made

    def at(self, states: Rows, levels: Rows) -> Column:
        for state in set(states.tolist()):
            self[state]
        found: Column = self._cells[states, levels]
        return found
