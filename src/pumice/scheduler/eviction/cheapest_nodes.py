"""Node by node: for each task of a gang, the node where the fewest and least important pods must go, by resources alone.

A bundle goes as a whole: what earlier choices evict on other nodes counts as gone there, and what they place counts as taken.
"""

from heapq import heapify, heappop, heappush

import numpy as np

from pumice.scheduler.eviction.gang_offer import Numbers, Offer
from pumice.scheduler.eviction.gang_rooms import Demand, running
from pumice.scheduler.model import EPSILON, Table

Cost = tuple[float, float, float, int]  #: pods that must go, their importance, for how long they have run, and the place of the last bundle
NOTHING: Cost = (0.0, 0.0, 0.0, -1)


class CheapestRows:
    """One search among the bundles of an offer that come before the place `end`."""

    def __init__(self, offer: Offer, end: int, room: Table, now: float) -> None:
        self._offer = offer
        self._room = room.copy()
        self._gone = np.zeros(len(offer), bool)
        entries = np.flatnonzero(offer.place < end)
        self._entries: Numbers = entries[np.argsort(offer.rows[entries], kind="stable")]  #: row by row, bundle by bundle
        self._rows = offer.rows[self._entries]
        self._places = offer.place[self._entries]
        begins = (np.diff(self._rows, prepend=-1) != 0) | (np.diff(self._places, prepend=-1) != 0)
        own = offer.weights(now)
        self._weights: Table = own + np.where(offer.safe >= 0, own[:, offer.safe], 0.0)  #: of bundles, each with its Safe bundle
        self._at_first: Table = np.where(begins, self._weights[:, self._places], 0.0)  #: a bundle's weight at its first task on each row

    def clear(self, demands: list[Demand]) -> list[int] | None:
        """The places of the bundles that go so that all tasks find room; None if that is impossible."""
        if not all(self._clear_for(demand) for demand in demands):
            return None
        places: list[int] = np.flatnonzero(self._gone).tolist()
        return places

    def _clear_for(self, demand: Demand) -> bool:
        known = self._costs(demand)
        heap = [(*cost, row) for row, cost in known.items() if cost is not None]
        heapify(heap)
        for _ in range(demand.number):
            while heap and known[heap[0][-1]] != heap[0][:-1]:
                heappop(heap)  # its cost has changed since
            if not heap:
                return False
            for row in self._take(heap[0][-1], demand):
                cost = known[row] = self._cost(row, demand)
                if cost is not None:
                    heappush(heap, (*cost, row))
        return True

    # -- what a row costs

    def _costs(self, demand: Demand) -> dict[int, Cost | None]:
        """The costs of the cheapest rows, of as many rows as there are tasks."""
        room = self._room
        free = demand.rows.copy()
        for column, amount in demand.needs:
            free &= room[column] > amount - EPSILON
        left = ~self._gone[self._places] & demand.rows[self._rows] & ~free[self._rows]
        rows, places, entries = self._rows[left], self._places[left], self._entries[left]
        begins = np.diff(rows, prepend=-1) != 0
        enough = np.ones(len(rows), bool)
        for column, amount in demand.needs:
            enough &= room[column][rows] + running(self._offer.amounts(column, entries), begins) > amount - EPSILON
        at = np.flatnonzero(enough)
        open_, first = np.unique(rows[at], return_index=True)
        at = at[first]
        places = places[at]
        weights = np.array([running(values, begins)[at] for values in self._at_first[:, left]])
        cheapest = np.lexsort((places, *weights[::-1]))[: demand.number]
        costs: dict[int, Cost | None] = dict.fromkeys(np.flatnonzero(free)[: demand.number].tolist(), NOTHING)
        for row, sums, place in zip(open_[cheapest].tolist(), weights.T[cheapest].tolist(), places[cheapest].tolist(), strict=True):
            costs[row] = (*sums, place)
        return costs

    def _cost(self, row: int, demand: Demand) -> Cost | None:
        """The cost of one row in its present state; None if not even all its bundles make room for one more task."""
        places = self._needed(row, demand)
        if not places:
            return None if places is None else NOTHING
        pods, importance, age = self._weights[:, places].sum(axis=1).tolist()
        return pods, importance, age, places[-1]

    def _needed(self, row: int, demand: Demand) -> list[int] | None:
        """The places of the bundles that must go from a row for one more task, in order; None if not even all of them make room."""
        if not demand.rows[row]:
            return None
        room, places = self._room[:, row].copy(), list[int]()
        entries = self._entries[slice(*np.searchsorted(self._rows, (row, row + 1)))].tolist()
        for entry in (*entries, -1):
            if all(room[column] > amount - EPSILON for column, amount in demand.needs):
                return places
            if entry >= 0 and not self._gone[place := int(self._offer.place[entry])]:
                room += self._offer.request(entry)
                if place not in places[-1:]:
                    places.append(place)
        return None

    # -- choosing a row

    def _take(self, row: int, demand: Demand) -> set[int]:
        """Clear a row and place a task there. Return the rows where anything has changed."""
        touched = {row}
        for first in self._needed(row, demand) or ():
            for place in (first, int(self._offer.safe[first])):
                if place >= 0 and not self._gone[place]:
                    self._gone[place] = True
                    for entry in self._offer.entries(place):
                        there = int(self._offer.rows[entry])
                        self._room[:, there] += self._offer.request(entry)
                        touched.add(there)
        for column, amount in demand.needs:
            self._room[column, row] -= amount
        return touched
