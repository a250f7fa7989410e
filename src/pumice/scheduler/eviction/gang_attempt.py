"""One gang, one domain (a HyperNode): which pods must be evicted so that the gang can be pipelined on the domain's nodes.

The pods are grouped in bundles, and plugins say which pods may be evicted. Bundles go in order until the gang finds nodes: part by part,
each with all its pending pods, until the gang has what it needs. A choice by numbers alone (`gang_choice.py`) is tried first. Then all
bundles that need not go are spared (`needed`), and every filter is asked anew. The cluster is left as it was: a plan is carried out later,
or not.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pumice.scheduler.engine import Evaluation
from pumice.scheduler.eviction.gang_choice import DomainVictims, GangNeeds, Places, choices, fewest, victims
from pumice.scheduler.eviction.gang_offer import Offer
from pumice.scheduler.eviction.gang_rooms import Demand, Rooms
from pumice.scheduler.eviction.gang_roster import Roster
from pumice.scheduler.eviction.victims import needed
from pumice.scheduler.framework.network_topology import Purpose
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.statement import Statement
from pumice.scheduler.model import HyperNode, Job, Queue, SubJob, Task, Vector
from pumice.scheduler.placement.room_bound import RoomBound, missing

if TYPE_CHECKING:
    from pumice.scheduler.eviction.gang_eviction import GangEviction

Wanted = list[tuple[SubJob, list[Task]]]
Move = tuple[Task, int]  #: task and row


class Context(NamedTuple):
    """What the hook `unified_evictable` gets about an eviction."""

    kind: str  #: gangpreempt or gangreclaim
    job: Job
    task: Task
    hyper_node: HyperNode


class GangPlan(NamedTuple):
    """The victims, in order, and the nodes on which the gang is then pipelined."""

    victims: DomainVictims
    moves: list[Move]
    places: dict[str, str]  #: by part of the gang: the HyperNode in which it is pipelined

    def carry_out(self, statement: Statement, action: str, job: Job) -> None:
        for victim in self.victims.tasks:
            statement.evict(victim, action, job.uid)
        for task, row in self.moves:
            statement.pipeline(task, row, evicted=True)
        statement.session.before.set(job, nominated_hypernodes=self.places)


class GangAttempt:
    """The attempt to make room for a gang in a domain, and the evictions that it needs there."""

    def __init__(self, session: Session, action: GangEviction, job: Job, queue: Queue, wanted: Wanted, domain: HyperNode) -> None:
        self.session = session
        self.action = action
        self.job = job
        self.queue = queue
        self.wanted = wanted
        self.domain = domain
        self.tasks = [task for _, part in wanted for task in part]
        self._places: dict[str, str] = {}  #: the HyperNodes of the parts in the last try
        self._moves: list[Move] = []  #: the placements of the last try that made room
        self._noted: dict[str, str] = {}

    def plan(self, statement: Statement, roster: Roster) -> GangPlan | None:
        """The evictions that make room for the gang, and its placements; None if no evictions do."""
        needs = self._needs()
        offer = self._offer(roster, needs.need)
        first = fewest(offer, needs, self.session.nodes.future_idle) if offer is not None else -1
        if offer is None or first < 0:
            return None
        spare = self.action.args.spare
        gone = self._chosen(statement, offer, first, needs) if spare else None
        if gone is None:
            gone = self._grown(statement, offer, max(first, 1))
        if gone is None:
            return None
        if spare:
            gone = self._spared(statement, offer, gone, needs)
        return GangPlan(victims(offer, gone), self._moves, self._noted)

    def finds_room(self, statement: Statement, *, whole: bool) -> bool:
        """Place the gang in the domain as it is: all pods of each part (`whole`), or only what the part needs. Undone if that fails."""
        return self._has_room(whole) and self._place(statement, whole)

    # -- which bundles may go

    def _needs(self) -> GangNeeds:
        nodes, rows = self.session.nodes, self.domain.rows
        demands = []
        alike: dict[Hashable, list[Task]] = {}
        for task in self.tasks:
            alike.setdefault(self.session.task_kind(task), []).append(task)
        for equal in alike.values():
            evaluation = self.session.evaluation(equal[0])
            hopeful = rows & evaluation.resolvable if evaluation.rejected is None else np.zeros_like(rows)
            demands.append(Demand(len(equal), evaluation.template.needs, hopeful))
        need: Vector = np.sum([task.template.request for task in self.tasks], axis=0)
        return GangNeeds(demands, self._least(whole=True), need, nodes.room_in_sums(nodes.idle + nodes.releasing)[:, rows].sum(axis=1))

    def _offer(self, roster: Roster, need: Vector) -> Offer | None:
        """The bundles that plugins allow to be evicted, in the order in which they go; None if there are none."""
        session, action = self.session, self.action
        if not roster:
            return None
        all_ = roster.offer(need, lambda rank_keys: action.in_order(session, self.tasks[0], rank_keys))
        context = Context(action.name, self.job, self.tasks[0], self.domain)
        victims = session.past_evictions.sparing(self.tasks[0], all_.tasks)
        offer = all_.approved(session.evictable.permitted("unified_evictable", context, victims), whole=action.args.whole)
        return offer if len(offer) else None

    # -- which bundles go

    def _chosen(self, statement: Statement, offer: Offer, first: int, needs: GangNeeds) -> Places | None:
        """The first choice by numbers alone that makes room for the gang; None if no choice does."""
        self.session.went_by_clock = True
        found = choices(offer, first, needs, self.session.nodes.future_idle, self.session.now)
        return next((gone for gone in found if self._does(statement, offer, gone)), None)

    def _grown(self, statement: Statement, offer: Offer, first: int) -> Places | None:
        """As few of the first bundles as make room; None if all do not. Growing numbers are tried until one is enough, then a bisection."""
        too_few, tried = first - 1, first
        while not self._does(statement, offer, range(tried)):
            if tried == len(offer):
                return None
            too_few, tried = tried, min(len(offer), 2 * tried - first + 1)
        while tried - too_few > 1:
            middle = (too_few + tried) // 2
            if self._does(statement, offer, range(middle)):
                tried = middle
            else:
                too_few = middle
        return list(range(tried))

    def _spared(self, statement: Statement, offer: Offer, gone: Places, needs: GangNeeds) -> Places:
        """The bundles of `gone` without which the gang would not find room."""
        rooms = Rooms(offer, needs.demands, self.session.nodes.future_idle)

        def stands(left: Places) -> bool:
            rooms.lose(left)
            if rooms.most < needs.least or not offer.hangs_together(left):
                return False
            return self._keeps_its_places(statement, offer, left) or self._does(statement, offer, left)

        return needed(gone, stands)

    def _does(self, statement: Statement, offer: Offer, gone: Iterable[int]) -> bool:
        """Whether the gang finds nodes once these bundles have gone. If so its placements are noted."""
        self._evict(statement, offer, gone)
        mark = statement.mark()
        does = self.finds_room(statement, whole=True)
        if does:
            self._moves = [(operation.task, operation.task.node) for operation in statement.operations[mark:]]
            self._noted = self._places
        statement.rollback()
        return does

    def _keeps_its_places(self, statement: Statement, offer: Offer, gone: Iterable[int]) -> bool:
        """Whether the noted placements are possible once these bundles have gone."""
        self._evict(statement, offer, gone)
        keeps = all(self._waits(task, row, statement) for task, row in self._moves)
        statement.rollback()
        return keeps

    def _evict(self, statement: Statement, offer: Offer, gone: Iterable[int]) -> None:
        for place in gone:
            for victim in offer.bundle(place):
                statement.evict(victim, self.action.name, self.job.uid)

    def _waits(self, task: Task, row: int, statement: Statement) -> bool:
        """Pipeline a task on a node, if its queue, the filters and the room allow it. Return whether they do."""
        session = self.session
        if not session.allows(self.queue, task) or session.pre_predicate(task) is not None:
            return False
        evaluation = session.evaluation(task)
        if not (evaluation.admitted[row] and evaluation.fits_future[row]):
            return False
        statement.pipeline(task, row, evicted=True)
        return True

    # -- where the gang is pipelined

    def _least(self, *, whole: bool) -> int:
        """The least number of tasks that must find a node."""
        return max(len(self.wanted[0][1]) if whole else 1, missing(self.session, self.job))

    def _has_room(self, whole: bool) -> bool:
        """Whether enough tasks could fit, by resources of each node alone: this saves most hopeless tries."""
        return RoomBound(self.session, self.tasks).most(self.domain) >= self._least(whole=whole)

    def _place(self, statement: Statement, whole: bool) -> bool:
        """Pipeline part after part in the domain, until the gang has what it needs. Return whether it does; if not, all is undone."""
        mark = statement.mark()
        self._places = {}
        for part, tasks in self.wanted:
            if not self._place_part(part, tasks, statement, whole) and whole:
                break
            if self._places and self.session.job_pipelined(self.job):
                return True
        statement.rollback(mark)
        return False

    def _place_part(self, part: SubJob, tasks: list[Task], statement: Statement, whole: bool) -> bool:
        for place in self._domains(part):
            mark = statement.mark()
            placed = self._place_tasks(tasks, place, statement)
            if (placed == len(tasks) or not whole) and self._is_whole(part):
                self._places[part.uid] = place.name
                return True
            statement.rollback(mark)
        return False

    def _is_whole(self, part: SubJob) -> bool:
        """Whether allocate would place the part: it has its minimum, if need be with pods that wait for room."""
        return self.session.sub_job_pipelined(self.job, part) or self.session.sub_job_ready(self.job, part)

    def _domains(self, part: SubJob) -> list[HyperNode]:
        session = self.session
        if session.topology.sub_limit(self.job, part) is None:
            return [self.domain]
        groups = session.sub_gradients(self.job, part, self.domain, Purpose.EVICT)
        return [place for group in groups for place in group]

    def _place_tasks(self, tasks: list[Task], place: HyperNode, statement: Statement) -> int:
        """Pipeline the tasks in a HyperNode. Return how many of them found a node."""
        session = self.session
        hopeless: set[Evaluation] = set()  #: the evaluations of tasks that found no node
        placed = 0
        for task in tasks:
            if not session.allows(self.queue, task) or session.pre_predicate(task) is not None:
                continue
            evaluation = session.evaluation(task)
            if evaluation in hopeless or evaluation.rejected is not None:
                continue
            feasible = evaluation.admitted & evaluation.fits_future & place.rows
            idle = feasible & evaluation.fits_idle
            row = session.best_node(task, evaluation, idle if idle.any() else feasible)
            if row < 0:
                hopeless.add(evaluation)
            else:
                statement.pipeline(task, row, evicted=True)
                placed += 1
        return placed
