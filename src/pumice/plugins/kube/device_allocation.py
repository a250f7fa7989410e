"""Which devices of a row satisfy what a pod's claims ask for, all together.

Places to fill are matched with devices so that as many as possible find one (augmenting paths), so an easily pleased request never
takes the only device of a demanding one. Alternatives and values that must be the same are tried in order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

from pumice.api.devices import DeviceConstraint
from pumice.plugins.kube.device_pools import DeviceKey, Offered, Pools
from pumice.plugins.kube.device_requests import ALL, Asked, Wanted


class Pick(NamedTuple):
    """A device given to a request."""

    claim: str
    request: str
    device: DeviceKey
    watches: bool = False


def allocate(wanted: Wanted, row: int, in_use: Collection[DeviceKey], pools: Pools) -> list[Pick] | None:
    """None if it cannot be. Raises CelError where a selector has no value."""
    for chosen in product(*wanted.requests):
        suitable = [pools.suitable(asked, row) for asked in chosen]
        for rules in _common_values(chosen, suitable, wanted.constraints):
            allowed = [[each for each in found if _obeys(asked, each, rules)] for asked, found in zip(chosen, suitable, strict=True)]
            picks = _match(chosen, allowed, in_use)
            if picks is not None:
                return picks
    return None


Rule = tuple[str, DeviceConstraint, Any]  #: a constraint of a claim, and the value that its devices shall have in common


def _concerns(claim: str, constraint: DeviceConstraint, asked: Asked) -> bool:
    names = constraint.requests
    return asked.claim == claim and (not names or asked.name in names or asked.name.partition("/")[0] in names)


def _common_values(
    chosen: Sequence[Asked], suitable: Sequence[Sequence[Offered]], constraints: Sequence[tuple[str, DeviceConstraint]]
) -> Iterator[tuple[Rule, ...]]:
    """Every way to give each constraint a value that its attribute has."""
    ways = []
    for claim, constraint in constraints:
        found = [each for asked, devices in zip(chosen, suitable, strict=True) if _concerns(claim, constraint, asked) for each in devices]
        values = (each.attribute(constraint.match_attribute or "") for each in found)
        ways.append([(claim, constraint, value) for value in dict.fromkeys(values) if value is not None])
    return product(*ways)


def _obeys(asked: Asked, each: Offered, rules: Sequence[Rule]) -> bool:
    return all(
        each.attribute(constraint.match_attribute or "") == value
        for claim, constraint, value in rules
        if _concerns(claim, constraint, asked)
    )


def _match(chosen: Sequence[Asked], allowed: Sequence[Sequence[Offered]], in_use: Collection[DeviceKey]) -> list[Pick] | None:
    places: list[tuple[Asked, list[DeviceKey]]] = []
    picks: list[Pick] = []
    for asked, devices in zip(chosen, allowed, strict=True):
        keys = [each.key for each in devices]
        count = asked.number if asked.number != ALL else len(keys)
        if len(keys) < max(count, 1):
            return None
        if asked.watches:
            picks += [Pick(asked.claim, asked.name, key, watches=True) for key in keys[:count]]
            continue
        free = [key for key in keys if key not in in_use]
        if len(free) < count:
            return None
        places += [(asked, free)] * count
    holder: dict[DeviceKey, int] = {}
    if not all(_fill(place, places, holder, set()) for place in range(len(places))):
        return None
    by_place = {place: key for key, place in holder.items()}
    return picks + [Pick(asked.claim, asked.name, by_place[place]) for place, (asked, _) in enumerate(places)]


def _fill(place: int, places: Sequence[tuple[Asked, list[DeviceKey]]], holder: dict[DeviceKey, int], tried: set[DeviceKey]) -> bool:
    """Give a place the first device that nobody holds, or one whose holder can move."""
    keys = places[place][1]
    free = next((key for key in keys if key not in holder), None)
    if free is not None:
        holder[free] = place
        return True
    for key in keys:
        if key in tried:
            continue
        tried.add(key)
        if _fill(holder[key], places, holder, tried):
            holder[key] = place
            return True
    return False
