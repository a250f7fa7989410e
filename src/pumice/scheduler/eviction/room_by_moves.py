"""How to make room for pods by moving others, by numbers alone: where the pods go, which running pods give way, and where those go.

Pods are placed one after the other, the wanted ones first, then those that have given way, the largest first. Each takes the node where
the fewest pods give way (`_Dive.choices`); among nodes with room, the nearest to where it was, and of these the fullest. Pods that give
way may make others give way in turn.
If the first dive does not reach the lower bound, dives that deviate from it in one choice are tried, then in two, until `EFFORT` is spent.

What a node's room does not tell (filters, queues) is asked by the caller, who searches again without the places that were refused
(`PlaceRules`).
"""

from collections import Counter, defaultdict
from collections.abc import Hashable
from heapq import heappop, heappush, nsmallest
from itertools import product
from math import ceil, prod
from operator import attrgetter
from typing import NamedTuple, Protocol

import numpy as np

from pumice.scheduler.eviction.movable_pods import Movable, MovableUnit
from pumice.scheduler.model import EPSILON, Mask, Nodes, Table, Task, Vector

EFFORT = 200_000  #: rows that are looked at, in all dives together, after the first
MOST_STEPS = 3_000  #: choices that are made, in all dives together, after the first
MOST_CHOICES = 8  #: of nodes for one pod
ENOUGH_FREE = 4  #: of so many nodes with room the best are chosen, without a look at those where others would have to give way
MOST_COMPARED = 12  #: choices for which it is worked out whether those who give way find room
MOST_WAYS = 8  #: in which pods of one node may give way
MOST_ROWS = 48  #: where it is worked out who would have to give way: those that lack the least
MOST_SETS = 512  #: of units that are compared on one node

Places = list[tuple[Task, int]]  #: pods and the rows they go to


class Limit(NamedTuple):
    """So many pods of one kind may go to these rows together."""

    rows: Mask
    most: int


class PlaceRules(Protocol):
    """What is known of rules that are not about room."""

    def allowed(self, task: Task) -> Mask:
        """The rows where a pod may be at all."""

    def limits(self, task: Task) -> list[Limit]:
        """How many pods like this one may go to certain rows, where that is limited."""

    def distances(self, task: Task) -> Vector:
        """For each row how far it is in the network from where a running pod is."""


class MovePlan(NamedTuple):
    places: Places  #: of the wanted pods
    moves: Places  #: of the pods that give way


class RowChoice(NamedTuple):
    """A row for a pod, and the units that give way there."""

    pods: int
    lost: tuple[float, float]
    priority: int
    left: float  #: what stays idle on the row, or how much gives way
    row: int
    units: tuple[MovableUnit, ...] = ()

    @property
    def cost(self) -> tuple[int, tuple[float, float], int, float, int]:
        """What choices are sorted by."""
        return self.pods, self.lost, self.priority, self.left, self.row


#: by kind of pod and row: what was charged then (-1 if that is the same), choices
Known = dict[tuple[int, int], tuple[int, list[RowChoice]]]


class RoomByMoves:
    """The search for one job."""

    def __init__(self, nodes: Nodes, wanted: list[Task], movable: Movable, rules: PlaceRules, most: int) -> None:
        self.nodes = nodes
        self.room: Table = nodes.future_idle
        self.movable = movable
        self.rules = rules
        self.scale: Vector = 1.0 / np.maximum(nodes.allocatable.max(axis=1, initial=0.0), 1.0)
        self.wanted = sorted(wanted, key=self.size, reverse=True)
        self.most = most  #: pods that may give way
        self.known: Known = {}  #: who could give way before anybody has

    def size(self, task: Task) -> float:
        return max((amount * float(self.scale[column]) for column, amount in task.template.needs), default=0.0)

    def plan(self) -> MovePlan | None:
        """The plan with the fewest moves that is found; None if none is found."""
        best: _Dive | None = None
        bound = self._bound() if self.most else 0
        steps = max(len(self.wanted), min(MOST_STEPS, EFFORT // max(1, len(self.nodes))))
        waiting: list[tuple[int, int, tuple[tuple[int, int], ...]]] = [(0, 0, ())]
        while waiting and steps > 0:
            deviations, cost, path = heappop(waiting)
            limit = self.most if best is None else best.pods - 1
            if cost > limit:
                continue
            dive = _Dive(self, dict(path), limit)
            is_done = dive.run()
            steps -= 0 if not path else len(dive.offered)
            if is_done:
                best = dive
                if dive.pods <= bound:
                    break
            since = path[-1][0] + 1 if path else 0
            for depth, costs in enumerate(dive.offered[since:], since):
                for number, cost in enumerate(costs[1:], 1):
                    heappush(waiting, (deviations + 1, cost, (*path, (depth, number))))
        return None if best is None else MovePlan(best.places, best.moves)

    def _bound(self) -> int:
        """The least number of pods that must give way, if those that do find room without further moves."""
        most = 0
        dive = _Dive(self, {}, self.most)
        for template, count in Counter(task.template for task in self.wanted).items():
            task = next(each for each in self.wanted if each.template is template)
            per_row = np.full(len(self.nodes), np.inf)
            for column, amount in template.needs:
                per_row = np.minimum(per_row, np.floor((self.nodes.allocatable[column] + EPSILON) / amount))
            shares, left = list[tuple[float, float]](), float(count)
            free, hard = dive.rows(task)
            shares += [(0.0, float(per_row[row])) for row in np.flatnonzero(free)]
            for row in hard[:MOST_ROWS]:
                for choice in dive.giving_way(task, row)[:1]:
                    gone = sum(mover.node == row for unit in choice.units for mover in unit.tasks)
                    shares.append((gone / per_row[row], float(per_row[row])))
            total = 0.0
            for share, copies in sorted(shares):
                taken = min(left, copies)
                total, left = total + share * taken, left - taken
            most = max(most, ceil(total - EPSILON))
        self.known = dive.known
        return most


class _Dive:
    """One way to place all pods. `path`: by number of the placing, which of the choices is taken, if not the first."""

    def __init__(self, search: RoomByMoves, path: dict[int, int], limit: int) -> None:
        self._search = search
        self._path = path
        self._limit = limit
        self._room = search.room.copy()
        self._gone: set[MovableUnit] = set()
        self._charged: Counter[Hashable] = Counter()
        self._skipped: set[tuple[int, int, tuple[MovableUnit, ...]]] = set()  #: kind of pod, row, units: choices before that of the path
        self._coming: dict[int, Vector] = defaultdict(lambda: np.zeros(self._room.shape[1]))  #: by kind of pod: how many go to each row
        self.known: Known = search.known.copy()
        self._finding: dict[int, tuple[Mask, int]] = {}  #: by kind of pod: the rows with room for it now, and how many these are
        self.pods = 0  #: that give way
        self.offered: list[list[int]] = []  #: for each placing, the numbers of pods that would have given way after each choice
        self.places: Places = []
        self.moves: Places = []

    def run(self) -> bool:
        """Whether all pods found a place."""
        search = self._search
        movers: list[tuple[float, int, Task, MovableUnit]] = []
        wanted = iter(search.wanted)
        while True:
            task, unit = next(wanted, None), None
            if task is None:
                if not movers:
                    return True
                _, _, task, unit = heappop(movers)
            choices = self.choices(task, unit)
            self.offered.append([self.pods + choice.pods for choice in choices])
            number = self._path.get(len(self.offered) - 1, 0)
            if number >= len(choices):
                return False
            choice = choices[number]
            self._skipped.update((id(task.template), skipped.row, skipped.units) for skipped in choices[:number])
            self._take(task, choice)
            (self.places if unit is None else self.moves).append((task, choice.row))
            for gone in choice.units:
                for mover in gone.tasks:
                    heappush(movers, (-search.size(mover), mover.number, mover, gone))

    def choices(self, task: Task, unit: MovableUnit | None = None) -> list[RowChoice]:
        """The rows for a pod, the cheapest first. `unit`: that of a pod that has given way, and does not go back alone."""
        free, hard = self.rows(task)
        kind, skipped = id(task.template), self._skipped
        banned = set[int]()
        for limit in self._search.rules.limits(task):
            if limit.rows @ self._coming[kind] >= limit.most:
                banned.update(np.flatnonzero(limit.rows).tolist())
        if unit is not None and len(unit.tasks) == 1:
            banned.add(task.node)
        rows = np.array([row for row in np.flatnonzero(free).tolist() if row not in banned and (kind, row, ()) not in skipped], int)
        left = self._search.scale @ np.maximum(self._room[:, rows], 0.0)
        far = self._search.rules.distances(task)[rows] if unit is not None else np.zeros(len(rows))
        rounded = left.round(9)
        order = np.lexsort((rounded, far))
        first = order[(np.diff(far[order], prepend=-1.0) != 0.0) | (np.diff(rounded[order], prepend=-1.0) != 0.0)]
        found = [RowChoice(0, (0.0, 0.0), 0, float(left[place]), int(rows[place])) for place in first[:MOST_CHOICES]]
        if len(found) < ENOUGH_FREE and self.pods < self._limit:
            ways = (choice for row in hard if row not in banned for choice in self.giving_way(task, row))
            fresh = (choice for choice in ways if (kind, choice.row, choice.units) not in skipped)
            affordable = (choice for choice in fresh if self.pods + choice.pods <= self._limit)
            cheapest = nsmallest(MOST_COMPARED, affordable, key=attrgetter("cost"))
            found += sorted(cheapest, key=lambda choice: (choice.pods + self._stuck(choice), choice.cost))
        return found[:MOST_CHOICES]

    def _stuck(self, choice: RowChoice) -> int:
        """How many of the pods that give way would find no room now, so that others would have to give way to them."""
        return sum(not self._finds_room(mover) for unit in choice.units for mover in unit.tasks)

    def _finds_room(self, mover: Task) -> bool:
        known = self._finding.get(id(mover.template))
        if known is None:
            free = self.rows(mover)[0]
            known = self._finding[id(mover.template)] = free, int(free.sum())
        free, count = known
        return count > int(free[mover.node])

    def rows(self, task: Task) -> tuple[Mask, list[int]]:
        """The rows where there is room for a pod, and those where others would have to give way, first those that lack the least."""
        search, room = self._search, self._room
        free = search.rules.allowed(task).copy()
        large, lack = free.copy(), np.zeros(room.shape[1])
        for column, amount in task.template.needs:
            large &= search.nodes.allocatable[column] > amount - EPSILON
            lack += np.maximum(amount - room[column], 0.0) * search.scale[column]
            free &= room[column] > amount - EPSILON
        hard = np.flatnonzero(large & ~free)
        return free, hard[np.argsort(lack[hard], kind="stable")][:MOST_ROWS].tolist()

    def giving_way(self, task: Task, row: int) -> list[RowChoice]:
        """The cheapest sets of units that could give way to a pod on a row."""
        charged, key = self._charged.total(), (id(task.template), row)
        known = self.known.get(key)
        if known is None or known[0] not in (-1, charged):
            lacks = [(column, amount - float(self._room[column, row])) for column, amount in task.template.needs]
            groups = self._units(row, [each for each in lacks if each[1] > EPSILON])
            is_limited = any(unit.charges for group in groups for unit, _ in group)
            known = self.known[key] = charged if is_limited else -1, self._sets(row, lacks, groups)
        return known[1]

    def _sets(self, row: int, lacks: list[tuple[int, float]], groups: list[list[tuple[MovableUnit, list[float]]]]) -> list[RowChoice]:
        """The cheapest sets without which the pod has no room; not those of which a part is enough."""
        found: list[RowChoice] = []
        for counts in product(*(range(len(group) + 1) for group in groups)):
            taken = [(count, group, group[0][1]) for count, group in zip(counts, groups, strict=True) if count]
            spare = [(column, sum(count * each[column] for count, _, each in taken) - amount) for column, amount in lacks]
            if all(left > -EPSILON for _, left in spare) and all(
                any(left - each[column] <= -EPSILON for column, left in spare) for _, _, each in taken
            ):
                units = tuple(unit for count, group, _ in taken for unit, _ in group[:count])
                if self._may_go(units):
                    found.append(self._choice(row, units, sum(len(unit.tasks) for unit in units)))
        return nsmallest(MOST_WAYS, found, key=attrgetter("cost"))

    def _choice(self, row: int, units: tuple[MovableUnit, ...], pods: int) -> RowChoice:
        lost = sum(unit.lost[0] for unit in units), sum(unit.lost[1] for unit in units)
        gone = sum(self._search.size(task) for unit in units for task in unit.tasks)
        return RowChoice(pods, lost, sum(unit.priority for unit in units), gone, row, units)

    def _units(self, row: int, lacks: list[tuple[int, float]]) -> list[list[tuple[MovableUnit, list[float]]]]:
        """The units that may give way on a row and hold something of what lacks there, in groups of equals, the cheapest first."""
        held: dict[MovableUnit, list[float]] = {}
        for task in self._search.nodes.tasks[row].values():
            unit = self._search.movable.unit(task)
            if unit is not None and unit not in self._gone:
                amounts = held.setdefault(unit, [0.0] * len(self._room))
                for column, amount in task.template.needs:
                    amounts[column] += amount
        alike: dict[Hashable, list[tuple[MovableUnit, list[float]]]] = {}
        for unit, amounts in held.items():
            if any(amounts[column] > EPSILON for column, _ in lacks) and self._may_be_elsewhere(unit):
                alike.setdefault((len(unit.tasks), tuple(unit.charges), tuple(amounts)), []).append((unit, amounts))
        groups = sorted(alike.values(), key=lambda group: -max(group[0][1][column] / amount for column, amount in lacks))
        while len(groups) > 1 and prod(len(group) + 1 for group in groups) > MOST_SETS:
            groups.pop()
        return [sorted(group, key=lambda each: (each[0].lost, each[0].priority)) for group in groups]

    def _may_be_elsewhere(self, unit: MovableUnit) -> bool:
        """Whether rules allow a pod that moves alone on any other node. A gang may change its nodes among its pods."""
        task, *others = unit.tasks
        allowed = self._search.rules.allowed(task)
        return bool(others) or int(allowed.sum()) > int(allowed[task.node])

    def _may_go(self, units: tuple[MovableUnit, ...]) -> bool:
        """Whether the limits allow these units to go as well."""
        charged = Counter[Hashable]()
        for unit in units:
            charged.update(unit.charges)
        allowed = self._search.movable.allowed
        return all(self._charged[limit] + number <= allowed[limit] for limit, number in charged.items())

    def _take(self, task: Task, choice: RowChoice) -> None:
        self._finding.clear()
        for unit in choice.units:
            self._gone.add(unit)
            self._charged.update(unit.charges)
            for mover in unit.tasks:
                self._room[:, mover.node] += mover.template.request
                self._touch(mover.node)
        self._room[:, choice.row] -= task.template.request
        self._coming[id(task.template)][choice.row] += 1
        self._touch(choice.row)
        self.pods += choice.pods

    def _touch(self, row: int) -> None:
        for key in [key for key in self.known if key[1] == row]:
            del self.known[key]
