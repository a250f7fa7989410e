"""Which bundles go for a gang, by resources alone: two ways to choose, without any that could stay.

In order: the fewest first bundles that make room enough, as Volcano goes about it. By cost: on the nodes where the fewest pods make room,
of bundles that rank no higher than the last of those. The second counts if its victims are cheaper in something and dearer in nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pumice.scheduler.eviction.cheapest_rows import CheapestRows
from pumice.scheduler.eviction.make_room import Demand, Rooms, copies, most_by_place
from pumice.scheduler.eviction.needed import needed
from pumice.scheduler.eviction.offer import Offer, importance
from pumice.scheduler.eviction.pick_node import start, weight
from pumice.scheduler.model.nodes import Table
from pumice.scheduler.model.resources import EPSILON, Vector
from pumice.scheduler.model.task import Task

Places = list[int]  #: of bundles, in order


class Wish(NamedTuple):
    """What a gang asks of a domain."""

    demands: list[Demand]
    least: float  #: at least so many of its tasks
    need: Vector  #: all tasks together
    open_: Vector  #: what the domain can give without evictions, all nodes together


def fewest(offer: Offer, wish: Wish, room: Table) -> int:
    """How many of the first bundles must go at least; -1 if all would not do."""
    enough = most_by_place(offer, wish.demands, room) >= wish.least
    for column in np.flatnonzero(wish.need > wish.open_ - EPSILON):
        given = np.bincount(offer.place + 1, offer.amounts(int(column)), minlength=len(enough))
        enough &= wish.need[column] < wish.open_[column] + np.cumsum(given) + EPSILON
    return int(np.argmax(enough)) if enough.any() else -1


def choices(offer: Offer, first: int, wish: Wish, room: Table, now: float) -> list[Places]:
    """The better one first. `first`: how many of the first bundles must go at least."""
    rooms = Rooms(offer, wish.demands, room)

    def trimmed(places: Places) -> Places:
        def enough(gone: Places) -> bool:
            rooms.lose(gone)
            return rooms.most >= wish.least and offer.hangs_together(gone)

        return needed(places, enough)

    in_order = trimmed(_useful(offer, first, wish.demands, room))
    by_cost = CheapestRows(offer, offer.alike(first - 1), room, now).clear(wish.demands) if first else None
    if by_cost is None:
        return [in_order]
    found = [in_order, trimmed(by_cost)]
    return found[::-1] if is_cheaper(victims(offer, found[1]), victims(offer, found[0]), now) else found


def _useful(offer: Offer, first: int, demands: list[Demand], room: Table) -> Places:
    """Those of the first bundles that make room where there is too little."""
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


# -- what it costs


class Victims(NamedTuple):
    """Who would go from a domain."""

    tasks: list[Task]
    broken: int  #: gangs that would


def victims(offer: Offer, places: Places) -> Victims:
    return Victims([task for place in places for task in offer.bundle(place)], int(offer.whole[places].sum()))


def is_cheaper(one: Victims, other: Victims, now: float) -> bool:
    """Whether it costs less in something and more in nothing: gangs broken, the highest priority, all priorities, how many go, and for how
    long the most important have run."""
    if not (one.tasks and other.tasks):
        return len(one.tasks) < len(other.tasks)
    left, right = _cost(one, now), _cost(other, now)
    return left != right and all(less <= more for less, more in zip(left, right, strict=True))


def _cost(victims: Victims, now: float) -> tuple[Any, ...]:
    tasks = sorted(victims.tasks, key=importance, reverse=True)
    return weight(victims.broken, [importance(task) for task in tasks], [start(task, now) for task in tasks])
