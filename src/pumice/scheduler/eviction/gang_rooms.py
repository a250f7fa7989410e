"""The number of tasks that find room, by resources alone, once certain bundles have gone.

It is an upper bound: filters, and that tasks of several kinds share the room, count only when a placement is tried.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from pumice.scheduler.eviction.gang_offer import Offer
from pumice.scheduler.model import EPSILON, Mask, Table, Vector, copies


class Demand(NamedTuple):
    """A number of equal tasks that need room."""

    number: int
    needs: list[tuple[int, float]]  #: column and amount
    rows: Mask  #: nodes whose filters might admit them, now or after evictions


def most_by_place(offer: Offer, demands: Iterable[Demand], room: Table) -> Vector:
    """The number of tasks that find room: when no bundle has gone, when the first has gone, when the first two have, and so on."""
    by_row = np.argsort(offer.rows, kind="stable")
    total = np.zeros(len(offer) + 1)
    for demand in demands:
        entries = by_row[demand.rows[offer.rows[by_row]]]
        rows = offer.rows[entries]
        is_first = np.diff(rows, prepend=-1) != 0
        open_ = np.array([room[column][rows] + running(offer.amounts(column, entries), is_first) for column, _ in demand.needs])
        fit = copies([(number, amount) for number, (_, amount) in enumerate(demand.needs)], open_)
        at_first = np.where(demand.rows, copies(demand.needs, room), 0.0)
        before = np.where(is_first, at_first[rows], np.concatenate([[0.0], fit[:-1]])) if len(fit) else fit
        gained = np.bincount(offer.place[entries] + 1, fit - before, minlength=len(total))
        gained[0] = at_first.sum()
        total += np.minimum(np.cumsum(gained), demand.number)
    return total


def running(amounts: Vector, is_first: Mask) -> Vector:
    """The running sums of the amounts; they begin anew with each row."""
    sums = np.cumsum(amounts)
    begun = np.where(is_first, sums - amounts, 0.0)
    running: Vector = sums - np.maximum.accumulate(begun)
    return running


class Rooms:
    """The number of tasks that find room once any set of bundles has gone: it follows each bundle that goes or comes back."""

    def __init__(self, offer: Offer, demands: list[Demand], room: Table) -> None:
        self._offer = offer
        self._demands = demands
        self._room = room.copy()
        self._copies = [np.where(demand.rows, copies(demand.needs, room), 0.0) for demand in demands]
        self._totals = [float(each.sum()) for each in self._copies]
        self.gone: set[int] = set()  #: bundles by their places

    @property
    def most(self) -> float:
        return sum(min(demand.number, total) for demand, total in zip(self._demands, self._totals, strict=True))

    def lose(self, gone: Iterable[int]) -> None:
        """Count from here on as if these bundles, and no others, had gone."""
        wanted = set(gone)
        for place in self.gone ^ wanted:
            self._count(place, 1.0 if place in wanted else -1.0)
        self.gone = wanted

    def _count(self, place: int, sign: float) -> None:
        offer, room = self._offer, self._room
        for entry in offer.entries(place):
            row = offer.rows[entry]
            room[:, row] += offer.request(entry) * sign
            for number, demand in enumerate(self._demands):
                fit = demand.rows[row] * max(0.0, min((room[column, row] + EPSILON) // amount for column, amount in demand.needs))
                self._totals[number] += fit - self._copies[number][row]
                self._copies[number][row] = fit
