"""A plan that empties nodes: which pods would move where, in which order, what that gains, and what it costs.

Nodes are emptied one after the other, those that hold the least first. All pods of a node go to nodes that are in use and stay so, as far
as every rule allows it; if one of them finds no place there, the node is left as it is. No pod moves twice, so a node to which pods have
gone stays in use. Each step can be carried out when those before it have been.

Nothing is decided here: the plan is made in a rehearsed cycle.
"""

from collections import Counter
from functools import partial

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from pumice.answers.changes import MovePod
from pumice.api.quantity import is_gpu
from pumice.scheduler.actions.consolidate import TRIES, SessionPlaceRules, own_domain
from pumice.scheduler.eviction.movable_pods import Movable, MovableUnit, MoveRules, PastMoves
from pumice.scheduler.eviction.room_by_moves import Places, RoomByMoves
from pumice.scheduler.framework.cycle import rehearse
from pumice.scheduler.framework.policy import Action, Policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.statement import Statement
from pumice.scheduler.framework.world import NOWHERE, World
from pumice.scheduler.model import CPU, EPSILON, Cluster, Mask, Task, Vector, status
from pumice.scheduler.model.fragmentation import PodShape, TypicalPods
from pumice.scheduler.model.gpu_cards import WHOLE, Ask


class Fragments(Struct, frozen=True, rename="camel"):
    """How idle room lies in pieces."""

    empty_nodes: int  #: nodes without pods, except those of DaemonSets: these could be switched off
    largest_gang: int  #: how many pods find room that each request all GPUs of a node (without GPUs: a whole node)
    idle_gpus: float
    idle_gpus_in_whole_nodes: float
    fragmentation: float  #: FGD's, in GPUs: what pods like those that are there could not use
    fits: dict[str, int]  #: by number of GPUs: how many pods that request so many find room


class EmptiedNode(Struct, frozen=True, rename="camel"):
    """A node that is emptied."""

    node: str
    moves: tuple[MovePod, ...]
    lost_gpu_s: float  #: work that must be repeated, in seconds of GPUs
    lost_pod_s: float


class Defrag(Struct, frozen=True, rename="camel"):
    """The plan. Steps are carried out in their order."""

    before: Fragments
    after: Fragments
    steps: tuple[EmptiedNode, ...]
    idle: tuple[str, ...]  #: nodes that are empty now, and stay so

    @property
    def moves(self) -> int:
        return sum(len(step.moves) for step in self.steps)


def defrag(cluster: Cluster, policy: Policy, now: float, rules: MoveRules, world: World = NOWHERE) -> Defrag:
    plan = _Emptying(rules)
    rehearse(cluster, replace(policy, actions=(plan,)), now, world)
    return plan.made


class _Emptying(Action):
    """The search for the plan, as the only action of a rehearsed cycle."""

    name = "emptying"
    made: Defrag

    def __init__(self, rules: MoveRules) -> None:
        super().__init__()
        self._rules = rules

    def run(self, session: Session) -> None:
        self._session = session
        self._movable = Movable(session, self._rules, PastMoves())
        self._charged: Counter[object] = Counter()
        self._moved: set[Task] = set()
        self._left = self._movable.most(0)
        self._gpus = _gpus(session.cluster)
        self._ends = {row: self._that_end(row) for row in session.nodes}
        steps, before = list[EmptiedNode](), self._fragments()
        idle = tuple(session.nodes.names[row] for row, tasks in self._ends.items() if not tasks)
        with session.statement() as statement:
            for row in sorted(self._ends, key=lambda row: (self._filled(row), row)):
                if self._ends[row] and (step := self._emptied(row, statement)) is not None:
                    steps.append(step)
            self.made = Defrag(before, self._fragments(), tuple(steps), idle)

    def _that_end(self, row: int) -> list[Task]:
        """The pods that stand against switching off the node."""
        return [task for task in self._session.nodes.tasks[row].values() if task.owner.partition("/")[0] not in ("DaemonSet", "Node")]

    def _filled(self, row: int) -> float:
        """How much of the node is in use: of its GPUs if it has any."""
        nodes = self._session.nodes
        there, used = nodes.allocatable[:, row], nodes.used[:, row]
        counted = self._gpus if (there[self._gpus] > 0).any() else there > 0
        return float((used[counted] / np.maximum(there[counted], 1.0)).max(initial=0.0))

    # -- a node

    def _emptied(self, row: int, statement: Statement) -> EmptiedNode | None:
        """Let all pods of a node wait for places on others; None, and all is undone, if one of them has no place, or may not move."""
        units = self._units(row)
        if units is None:
            return None
        tasks = [task for unit in units for task in unit.tasks]
        mark, rules = statement.mark(), SessionPlaceRules(self._session, partial(own_domain, self._session), self._in_use(row))
        for _ in range(TRIES):
            for task in tasks:
                statement.displace(task)
            plan = RoomByMoves(self._session.nodes, tasks, self._movable, rules, 0).plan()
            if plan is not None and rules.all_wait(plan.places, statement):
                return self._noted(row, units, plan.places)
            statement.rollback(mark)
            if plan is None:
                break
        return None

    def _units(self, row: int) -> list[MovableUnit] | None:
        """What moves if the node is emptied; None if some of it may not move, or would take pods of other nodes along."""
        found: dict[MovableUnit, None] = {}
        for task in self._ends[row]:
            unit = self._movable.unit(task) if task.node == row and task not in self._moved else None
            if unit is None or any(other.node != row for other in unit.tasks):
                return None
            found[unit] = None
        charged = self._charged.copy()
        for unit in found:
            charged.update(unit.charges)
        if sum(len(unit.tasks) for unit in found) > self._left or any(charged[limit] > self._movable.allowed[limit] for limit in charged):
            return None
        self._next_charged = charged
        return list(found)

    def _in_use(self, row: int) -> Mask:
        rows = np.zeros(len(self._session.nodes), bool)
        rows[[other for other, tasks in self._ends.items() if tasks and other != row]] = True
        return rows

    def _noted(self, row: int, units: list[MovableUnit], places: Places) -> EmptiedNode:
        names = self._session.nodes.names
        self._charged = self._next_charged
        self._left -= len(places)
        self._moved.update(task for task, _ in places)
        self._ends[row] = []
        for task, to in places:
            self._ends[to].append(task)
        moves = tuple(MovePod(task.key, names[to]) for task, to in places)
        return EmptiedNode(names[row], moves, sum(unit.lost[0] for unit in units), sum(unit.lost[1] for unit in units))

    # -- what it is good for

    def _fragments(self) -> Fragments:
        nodes, gpus = self._session.nodes, self._gpus
        idle = np.maximum(nodes.future_idle, 0.0)
        there, left = _sum(nodes.allocatable, gpus), _sum(idle, gpus)
        whole = nodes.alive & (there > 0) & (left > there - EPSILON)
        empty = np.zeros(len(nodes), bool)
        empty[[row for row, tasks in self._ends.items() if not tasks]] = True
        sizes = sorted({float(_sum(task.template.request[:, None], gpus)[0]) for task in self._session.cluster.tasks.values()} - {0.0})
        sizes += [float(each) for each in np.unique(there[there > 0]) if each not in sizes]
        return Fragments(
            int(empty.sum()),
            int((whole if there.any() else empty).sum()),
            float(left.sum()),
            float(left[whole].sum()),
            self._fragmentation(idle[CPU], left),
            {f"{size:g}": int((left // size).sum()) for size in sizes},
        )

    def _fragmentation(self, cpu: Vector, left: Vector) -> float:
        shapes = Counter[PodShape]()
        for task in self._session.cluster.tasks.values():
            if not task.status & status.FINISHED:
                cards = int(_sum(task.template.request[:, None], self._gpus)[0])
                shapes[PodShape(float(task.template.request[CPU]), Ask(cards, WHOLE if cards else 0.0))] += 1
        most = int(left.max(initial=0.0))
        lefts = np.where(np.arange(most) < np.floor(left)[:, None], WHOLE, 0.0)
        return float(TypicalPods(shapes).fragments(cpu, lefts).sum()) / WHOLE


def _gpus(cluster: Cluster) -> list[int]:
    return [column for column, name in enumerate(cluster.dimensions.names) if is_gpu(name)]


def _sum(table: Vector, columns: list[int]) -> Vector:
    """The number of GPUs in each column of a table of thousandths."""
    total: Vector = table[columns].sum(axis=0) / 1000
    return total
