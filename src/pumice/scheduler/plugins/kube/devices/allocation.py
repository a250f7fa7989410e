"""Which devices of a row satisfy all requests of a pod's claims together.

A depth-first search over claims, requests and devices, in the order of the pools: each device that fits is taken, and given back if the
rest cannot be satisfied with it. The first solution wins. Selectors are evaluated only for devices that the search reaches. A device that
differs only in its name from one that failed is skipped. After too many steps the search gives up.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pumice.api.devices import DeviceConstraint
from pumice.scheduler.plugins.kube.devices.consumed_capacity import Amounts, consumption
from pumice.scheduler.plugins.kube.devices.in_use import DeviceUse, InUse
from pumice.scheduler.plugins.kube.devices.pools import DeviceKey, DevicePool, DevicePools, Offered
from pumice.scheduler.plugins.kube.devices.requests import ALL, ClaimedDevices, Failed, RequestedDevices
from pumice.scheduler.plugins.kube.devices.taints import prevented


class Constraint:
    """A constraint during the search, with the values of the devices that were added and not taken back."""

    def __init__(self, claim: str, constraint: DeviceConstraint, pools: DevicePools) -> None:
        self._claim = claim
        self._pools = pools
        self._requests = constraint.requests
        self._common = constraint.match_attribute is not None
        self._attribute = constraint.match_attribute or constraint.distinct_attribute or ""
        self._values: list[frozenset[tuple[type, Any]]] = []

    def add(self, asked: RequestedDevices, offered: Offered) -> bool:
        """Whether the device satisfies the constraint; if so, it is added. Raises Failed."""
        if not self._concerns(asked):
            return True
        value = self._pools.attribute(asked, offered, self._attribute)
        if value is None:
            return False
        values = _as_set(value)
        if isinstance(value, list) and not self._pools.lists:  # a derived one: the first is taken, and compared with nothing
            fits, values = not self._values, frozenset()
        elif self._common:
            fits = bool(values.intersection(*self._values))
        else:
            fits = bool(values) and all(values.isdisjoint(known) for known in self._values)
        if fits:
            self._values.append(values)
        return fits

    def take_back(self, asked: RequestedDevices) -> None:
        """Remove the device that was added last for a request."""
        if self._concerns(asked):
            self._values.pop()

    def _concerns(self, asked: RequestedDevices) -> bool:
        names = self._requests
        return asked.claim == self._claim and (not names or asked.name in names or asked.name.partition("/")[0] in names)


def _as_set(value: Any) -> frozenset[tuple[type, Any]]:
    """The values of an attribute; a single one is a list of one."""
    return frozenset((type(each), each) for each in (value if isinstance(value, list) else [value]))


MOST_RESULTS = 32  #: the most devices that one claim may get
MOST_TOGETHER = 192  #: the most devices for one pod, which is the depth of the search
STEPS = 10_000


class Pick(NamedTuple):
    """A device that a request gets. `amounts`: what the request takes of a shared device; None for an exclusive one."""

    asked: RequestedDevices
    offered: Offered
    amounts: Amounts | None = None

    @property
    def claim(self) -> str:
        return self.asked.claim

    @property
    def request(self) -> str:
        return self.asked.name

    @property
    def device(self) -> DeviceKey:
        return self.offered.key

    @property
    def watches(self) -> bool:
        return self.asked.watches


class GivenUp(Exception):
    """The search took, or would take, too long."""


class Faulty(Exception):
    """There are not enough devices, and some pool is invalid: the missing devices might be in that pool."""


def allocate(wanted: ClaimedDevices, row: int, in_use: InUse, pools: DevicePools) -> list[Pick] | None:
    """The devices of the node for all requests; None if there are not enough. Raises Failed if a claim cannot be evaluated; GivenUp,
    Faulty."""
    reached = pools.reached_from(row)
    search = _Search(wanted, row, in_use, pools, reached)
    if search.succeeds():
        return search.picks
    if any(pool.invalid for pool in reached):
        raise Faulty
    return None


def picked(picks: Sequence[Pick]) -> list[DeviceUse]:
    """The uses of devices by these picks, without administrative access."""
    return [DeviceUse(pick.device, pick.amounts) for pick in picks if not pick.watches]


Steps = Iterator[Any]  #: each is tried once those before it have failed; it has steps of its own
SATISFIED: Steps = iter(())


class _Search:
    def __init__(self, wanted: ClaimedDevices, row: int, in_use: InUse, pools: DevicePools, reached: Sequence[DevicePool]) -> None:
        self.picks: list[Pick] = []
        self._requests = wanted.requests
        self._row = row
        self._in_use = in_use
        self._pools = pools
        self._reached = reached
        self._offered = pools.offered_to(row)
        self._constraints = [Constraint(claim, constraint, pools) for claim, constraint in wanted.constraints]  #: of all claims
        self._held: dict[DeviceKey, list[str]] = {}  #: the claims that take each exclusive device in this search
        self._shared = InUse()  #: what this search takes of shared devices
        self._counted: dict[tuple[str, str, str], int] = {}  #: by pool, counter set and counter: what the taken devices consume
        self._left: dict[str, dict[tuple[str, str], int]] = {}  #: by pool: what the devices in use leave of its counters
        self._everything = self._all_devices()
        self._steps = STEPS

    # -- before the search

    def _all_devices(self) -> dict[tuple[str, str], list[tuple[DevicePool, Offered]]]:
        """The devices of each request with allocationMode All. Raises Failed, GivenUp."""
        found: dict[tuple[str, str], list[tuple[DevicePool, Offered]]] = {}
        least: dict[str, int] = {}
        for ways in self._requests:
            for asked in ways:
                if asked.derived and not self._pools.derives:
                    why = "cannot handle request with derived attributes, the feature is disabled"
                    raise Failed(f"claim {asked.claim}, request {asked.short}: {why}")
                if asked.number == ALL:
                    found[asked.key] = self._all_of(asked)
            fewest, before = (
                min(len(found[asked.key]) if asked.number == ALL else asked.number for asked in ways),
                least.get(ways[0].claim, 0),
            )
            if self._pools.newer and before + fewest > MOST_RESULTS:
                request, what = ways[0].name.partition("/")[0], f"adding {fewest} devices exceeds the claim limit of {MOST_RESULTS}"
                raise Failed(f"claim {ways[0].claim}, request {request}: {what}, with {before} already accounted for")
            least[ways[0].claim] = before + fewest
        for claim, number in least.items():
            if number > MOST_RESULTS:
                raise Failed(f"claim {claim}: number of requested devices {number} exceeds the claim limit of {MOST_RESULTS}")
        if sum(least.values()) > MOST_TOGETHER:
            raise GivenUp
        return found

    def _all_of(self, asked: RequestedDevices) -> list[tuple[DevicePool, Offered]]:
        found = []
        for pool in self._reached:
            if pool.incomplete or pool.invalid:
                state = "being updated" if pool.incomplete else "invalid"
                raise Failed(
                    f"claim {asked.claim}, request {asked.short}: asks for all devices, but resource pool {pool.name} is currently {state}"
                )
            has_enough = (
                self._takes if self._pools.newer else self._amounts
            )  # by 1.37 a device counts even if others use what is asked of it
            fitting = (each for each in pool.offered if self._pools.suits(asked, each, self._row))
            found += [(pool, each) for each in fitting if has_enough(asked, each) is not None]
        return found

    # -- the search

    def succeeds(self) -> bool:
        """Whether all requests can be satisfied. Steps are kept in a list, since they are too many for functions that call themselves."""
        steps = [self._request(0)]
        while steps:
            step = next(steps[-1], None)
            if step is SATISFIED:
                return True
            if step is None:
                steps.pop()
            else:
                steps.append(step)
        return False

    def _request(self, number: int) -> Steps:
        """The ways to satisfy all requests from this number on."""
        if number == len(self._requests):
            yield SATISFIED
        else:
            for asked in self._requests[number]:
                yield self._devices(number, asked, 0, 0)

    def _devices(self, number: int, asked: RequestedDevices, done: int, start: int) -> Steps:
        """The ways to satisfy the rest of this request, after `done` devices, and all later requests. `start`: the first position to look
        at."""
        self._steps -= 1
        if self._steps < 0:
            raise GivenUp
        everything = self._everything.get(asked.key)
        count = asked.number if everything is None else len(everything)
        if everything is not None and not everything:
            return
        if done == count:
            yield self._request(number + 1)
        elif sum(pick.claim == asked.claim for pick in self.picks) + count - done > MOST_RESULTS:
            return
        elif everything is None:
            yield from self._some(number, asked, done, start)
        elif self._take(asked, *everything[done], must=True):
            yield self._devices(number, asked, done + 1, 0)
            self._give_back(asked, everything[done][0])

    def _some(self, number: int, asked: RequestedDevices, done: int, start: int) -> Steps:
        if asked.number - done > 1 and not self._are_left(asked, start, asked.number - done):
            return
        futile: set[bytes] = set()
        for position in range(start, len(self._offered)):
            pool, offered = self._offered[position]
            if offered.twin in futile or not self._may_have(asked, offered):
                continue
            if self._take(asked, pool, offered):
                yield self._devices(number, asked, done + 1, position + 1)
                self._give_back(asked, pool)
            if not offered.shared and not asked.watches:
                futile.add(offered.twin)

    def _are_left(self, asked: RequestedDevices, start: int, needed: int) -> bool:
        """Whether enough suitable devices come after a position. It looks no further than the search itself would."""
        for _, offered in self._offered[start:]:
            if self._may_have(asked, offered):
                needed -= 1
            if needed <= 0:
                return True
        return False

    def _may_have(self, asked: RequestedDevices, offered: Offered) -> bool:
        if not self._is_free(asked, offered) or not self._pools.suits(asked, offered, self._row):
            return False
        return self._amounts(asked, offered) is not None

    # -- one device

    def _is_free(self, asked: RequestedDevices, offered: Offered) -> bool:
        holders = self._held.get(offered.key, ())
        return asked.claim not in holders if asked.watches else not holders and offered.key not in self._in_use.alone

    def _takes(self, asked: RequestedDevices, offered: Offered) -> Amounts | None:
        """What the request takes of the device's capacities; None if it has less."""
        return consumption(asked.capacity, offered.device, fractions=self._pools.fractions)

    def _amounts(self, asked: RequestedDevices, offered: Offered) -> Amounts | None:
        """The same; None if not enough is left."""
        amounts = self._takes(asked, offered)
        if amounts is None or not offered.shared:
            return amounts
        has = {name: capacity.value.milli for name, capacity in (offered.device.capacity or {}).items()}
        taking = self._shared.taken.get(offered.key, {})
        left = {name: amount - taking.get(name, 0) for name, amount in has.items()}
        return amounts if self._in_use.room(offered.key, left, amounts) else None

    def _take(self, asked: RequestedDevices, pool: DevicePool, offered: Offered, *, must: bool = False) -> bool:
        amounts = self._amounts(asked, offered)
        if not self._is_free(asked, offered) or amounts is None or prevented(offered.device.taints or (), asked.tolerations):
            return False
        if not self._pools.serves(offered, self._row):
            return False
        if not self._has_counters(pool, offered) or not self._is_compatible(pool, offered) or not self._obeys(asked, offered, must):
            return False
        if self._counts(offered):
            self._consume(pool, offered, 1)
        if offered.shared:
            self._shared.change([DeviceUse(offered.key, amounts)], 1)
        else:
            self._held.setdefault(offered.key, []).append(asked.claim)
        self.picks.append(Pick(asked, offered, amounts if offered.shared else None))
        return True

    def _give_back(self, asked: RequestedDevices, pool: DevicePool) -> None:
        offered, amounts = self.picks.pop()[1:]
        for constraint in self._constraints:
            constraint.take_back(asked)
        if amounts is None:
            self._held[offered.key].remove(asked.claim)
        else:
            self._shared.change([DeviceUse(offered.key, amounts)], -1)
        if self._counts(offered):
            self._consume(pool, offered, -1)

    def _obeys(self, asked: RequestedDevices, offered: Offered, must: bool) -> bool:
        for number, constraint in enumerate(self._constraints):
            if constraint.add(asked, offered):
                continue
            for earlier in self._constraints[:number]:
                earlier.take_back(asked)
            if must:
                device = "/".join(offered.key)
                why = f"cannot add device {device} because a claim constraint would not be satisfied"
                raise Failed(f"claim {asked.claim}, request {asked.short}: {why}")
            return False
        return True

    # -- counters

    def _counts(self, offered: Offered) -> bool:
        """Whether taking the device consumes counters. Of a shared device only the first share does."""
        return not (offered.shared and (offered.key in self._in_use or offered.key in self._shared))

    def _has_counters(self, pool: DevicePool, offered: Offered) -> bool:
        if not offered.device.consumes_counters or not self._counts(offered):
            return True
        left = self._left_of(pool)
        consumes = offered.consumes
        return all(amount - self._counted.get((pool.name, *name), 0) >= consumes.get(name, 0) for name, amount in left.items())

    def _is_compatible(self, pool: DevicePool, offered: Offered) -> bool:
        """Whether the device may share its counter sets with those that are in use or taken."""
        if not self._pools.compares_groups or not self._counts(offered):
            return True
        in_use = [each for each in (*pool.offered, *pool.others) if each.key in self._in_use]
        beside = [*in_use, *(pick.offered for pick in self.picks if pick.offered.key[:2] == offered.key[:2])]
        for counter_set, groups in offered.groups.items():
            all_groups = [groups, *(each.groups[counter_set] for each in beside if counter_set in each.groups)]
            if any(all_groups) and not frozenset.intersection(*all_groups):
                return False
        return True

    def _left_of(self, pool: DevicePool) -> dict[tuple[str, str], int]:
        if pool.name not in self._left:
            left = dict(pool.counters)
            for each in (*pool.offered, *pool.others):
                if each.key in self._in_use:
                    for name, amount in each.consumes.items():
                        left[name] -= amount
            self._left[pool.name] = left
        return self._left[pool.name]

    def _consume(self, pool: DevicePool, offered: Offered, sign: int) -> None:
        for name, amount in offered.consumes.items():
            key = (pool.name, *name)
            self._counted[key] = self._counted.get(key, 0) + sign * amount
