"""Node by node, the one where the fewest pods must go for one more task of a gang, by resources alone.

What an earlier choice evicts elsewhere, for a bundle goes as one, counts as gone, and what it places as taken.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from pumice.scheduler.eviction.offer import Numbers, Offer
from pumice.scheduler.eviction.room import Demand, running
from pumice.scheduler.model.nodes import Table
from pumice.scheduler.model.resources import EPSILON

Cost = tuple[int, int]  #: pods that must go, and the place of the last bundle of theirs


class CheapestRows:
    """One search, among the first bundles of an offer up to `end`."""

    def __init__(self, offer: Offer, end: int, room: Table) -> None:
        self._offer = offer
        self._room = room.copy()
        self._gone = np.zeros(len(offer), bool)
        entries = np.flatnonzero(offer.place < end)
        self._entries: Numbers = entries[np.argsort(offer.rows[entries], kind="stable")]  #: row by row, bundle by bundle
        self._rows = offer.rows[self._entries]
        self._places = offer.place[self._entries]
        begins = (np.diff(self._rows, prepend=-1) != 0) | (np.diff(self._places, prepend=-1) != 0)
        self._sizes = offer.sizes + np.where(offer.safe >= 0, offer.sizes[offer.safe], 0)  #: with the Safe bundle that goes along
        self._pods = np.where(begins, self._sizes[self._places], 0)  #: that go with the bundle's first task on the row

    def clear(self, demands: list[Demand]) -> list[int] | None:
        """Places of the bundles that go; None if that does not do."""
        if not all(self._clear_for(demand) for demand in demands):
            return None
        places: list[int] = np.flatnonzero(self._gone).tolist()
        return places

    def _clear_for(self, demand: Demand) -> bool:
        known = self._costs(demand)
        heap = [(*cost, row) for row, cost in known.items()]
        heapify(heap)
        for _ in range(demand.number):
            while heap and known[heap[0][2]] != heap[0][:2]:
                heappop(heap)  # it has changed since
            if not heap:
                return False
            for row in self._take(heap[0][2], demand):
                cost = self._cost(row, demand)
                if cost is None:
                    known[row] = (-1, -1)
                else:
                    known[row] = cost
                    heappush(heap, (*cost, row))
        return True

    # -- what a row costs

    def _costs(self, demand: Demand) -> dict[int, Cost]:
        """Of the rows that cost least, as many as there are tasks."""
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
        pods = running(self._pods[left], begins)[at]
        cheapest = np.lexsort((places[at], pods))[: demand.number]
        costs: dict[int, Cost] = dict.fromkeys(np.flatnonzero(free)[: demand.number].tolist(), (0, -1))
        for row, count, place in zip(open_[cheapest].tolist(), pods[cheapest].tolist(), places[at][cheapest].tolist(), strict=True):
            costs[row] = (int(count), place)
        return costs

    def _cost(self, row: int, demand: Demand) -> Cost | None:
        """The same for one row, exactly as it now is."""
        places = self._needed(row, demand)
        if places is None:
            return None
        return int(self._sizes[places].sum()), places[-1] if places else -1

    def _needed(self, row: int, demand: Demand) -> list[int] | None:
        """Bundles that must go from a row for one more task, the first ones first; None if all would not do."""
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

    # -- choosing it

    def _take(self, row: int, demand: Demand) -> set[int]:
        """Clear a row and place a task there; the rows where anything has changed."""
        touched = {row}
        for needed in self._needed(row, demand) or ():
            for place in (needed, int(self._offer.safe[needed])):
                if place >= 0 and not self._gone[place]:
                    self._gone[place] = True
                    for entry in self._offer.entries(place):
                        there = int(self._offer.rows[entry])
                        self._room[:, there] += self._offer.request(entry)
                        touched.add(there)
        for column, amount in demand.needs:
            self._room[column, row] -= amount
        return touched
