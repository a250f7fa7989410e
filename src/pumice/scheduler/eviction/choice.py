"""Which bundles of tasks are evicted for a gang, by resources alone: two ways to choose, each without bundles that could stay.

In order: the fewest first bundles that make enough room, as Volcano does. By cost: bundles on the nodes where the fewest pods make room,
none that ranks behind the last bundle of the first way. The second is preferred if its victims cost less in something and more in nothing.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from pumice.scheduler.eviction.make_room import Demand, Rooms, most_by_place, running
from pumice.scheduler.eviction.offer import Numbers, Offer, importance
from pumice.scheduler.eviction.pick_node import start, weight
from pumice.scheduler.eviction.victims import needed
from pumice.scheduler.model.nodes import Table, copies
from pumice.scheduler.model.resources import EPSILON, Vector
from pumice.scheduler.model.task import Task

Places = list[int]  #: places of bundles in the offer, in order


class GangNeeds(NamedTuple):
    """What a gang needs in a domain (a HyperNode)."""

    demands: list[Demand]
    least: float  #: the least number of its tasks that must find room
    need: Vector  #: the requests of all its tasks together
    open_: Vector  #: what the domain can give without evictions, all nodes together


def fewest(offer: Offer, needs: GangNeeds, room: Table) -> int:
    """The least number of first bundles that must go; -1 if not even all bundles would make enough room."""
    enough = most_by_place(offer, needs.demands, room) >= needs.least
    for column in np.flatnonzero(needs.need > needs.open_ - EPSILON):
        given = np.bincount(offer.place + 1, offer.amounts(int(column)), minlength=len(enough))
        enough &= needs.need[column] < needs.open_[column] + np.cumsum(given) + EPSILON
    return int(np.argmax(enough)) if enough.any() else -1


def choices(offer: Offer, first: int, needs: GangNeeds, room: Table, now: float) -> list[Places]:
    """The choices, one or two, the better one first. `first`: the least number of first bundles that must go."""
    rooms = Rooms(offer, needs.demands, room)

    def trimmed(places: Places) -> Places:
        def enough(gone: Places) -> bool:
            rooms.lose(gone)
            return rooms.most >= needs.least and offer.hangs_together(gone)

        return needed(places, enough)

    in_order = trimmed(_useful(offer, first, needs.demands, room))
    by_cost = CheapestRows(offer, offer.alike(first - 1), room, now).clear(needs.demands) if first else None
    if by_cost is None:
        return [in_order]
    found = [in_order, trimmed(by_cost)]
    return found[::-1] if is_cheaper(victims(offer, found[1]), victims(offer, found[0]), now) else found


def _useful(offer: Offer, first: int, demands: list[Demand], room: Table) -> Places:
    """The places of those first bundles that make room for more tasks on a node, and of the Safe bundles that go with them."""
    after = room.copy()
    entries = slice(0, len(offer.tasks) if first == len(offer) else offer.entries(first).start)
    for column in {column for demand in demands for column, _ in demand.needs}:
        after[column] += np.bincount(offer.rows[entries], offer.amounts(column, entries), minlength=room.shape[1])
    gains = np.zeros(room.shape[1], bool)
    for demand in demands:
        gains |= demand.rows & (copies(demand.needs, after) > copies(demand.needs, room))
    useful = offer.place[entries][gains[offer.rows[entries]]]
    found: Places = np.union1d(useful, offer.safe[useful][offer.safe[useful] >= 0]).tolist()
    return found


# -- what evictions cost


class Victims(NamedTuple):
    """The tasks that would be evicted from a domain."""

    tasks: list[Task]
    broken: int  #: the number of gangs that would be broken


def victims(offer: Offer, places: Places) -> Victims:
    return Victims([task for place in places for task in offer.bundle(place)], int(offer.whole[places].sum()))


def is_cheaper(one: Victims, other: Victims, now: float) -> bool:
    """Whether the first victims cost less in something and more in nothing. Compared are: broken gangs, the highest priority, the sum of
    priorities, the number of victims, and how long the most important ones have run."""
    if not (one.tasks and other.tasks):
        return len(one.tasks) < len(other.tasks)
    left, right = _cost(one, now), _cost(other, now)
    return left != right and all(less <= more for less, more in zip(left, right, strict=True))


def _cost(victims: Victims, now: float) -> tuple[Any, ...]:
    tasks = sorted(victims.tasks, key=importance, reverse=True)
    return weight(victims.broken, [importance(task) for task in tasks], [start(task, now) for task in tasks])


# Node by node: for each task of a gang, the node where the fewest and least important pods must go, by resources alone.
#
# A bundle goes as a whole: what earlier choices evict on other nodes counts as gone there, and what they place counts as taken.

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
