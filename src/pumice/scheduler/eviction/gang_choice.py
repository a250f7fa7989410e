"""Which bundles of tasks are evicted for a gang, by resources alone: two ways to choose, each without bundles that could stay.

In order: the fewest first bundles that make enough room, as Volcano does. By cost: bundles on the nodes where the fewest pods make room,
none that ranks behind the last bundle of the first way. The second is preferred if its victims cost less in something and more in nothing.
"""

from typing import Any, NamedTuple

import numpy as np

from pumice.scheduler.eviction.cheapest_nodes import CheapestRows
from pumice.scheduler.eviction.gang_offer import Offer, importance
from pumice.scheduler.eviction.gang_rooms import Demand, Rooms, most_by_place
from pumice.scheduler.eviction.pick_node import start, weight
from pumice.scheduler.eviction.victims import needed
from pumice.scheduler.model import EPSILON, Table, Task, Vector, copies

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
    for column in np.flatnonzero((needs.need > 0.0) & (needs.need > needs.open_ - EPSILON)):
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


class DomainVictims(NamedTuple):
    """The tasks that would be evicted from a domain."""

    tasks: list[Task]
    broken: int  #: the number of gangs that would be broken


def victims(offer: Offer, places: Places) -> DomainVictims:
    return DomainVictims([task for place in places for task in offer.bundle(place)], int(offer.whole[places].sum()))


def is_cheaper(one: DomainVictims, other: DomainVictims, now: float) -> bool:
    """Whether the first victims cost less in something and more in nothing. Compared are: broken gangs, the highest priority, the sum of
    priorities, the number of victims, and how long the most important ones have run."""
    if not (one.tasks and other.tasks):
        return len(one.tasks) < len(other.tasks)
    left, right = _cost(one, now), _cost(other, now)
    return left != right and all(less <= more for less, more in zip(left, right, strict=True))


def _cost(victims: DomainVictims, now: float) -> tuple[Any, ...]:
    tasks = sorted(victims.tasks, key=importance, reverse=True)
    return weight(victims.broken, [importance(task) for task in tasks], [start(task, now) for task in tasks])
