"""Evicting one victim after the other until a task fits on a node, and when that is worth it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from pumice.scheduler.engine.evaluation import Evaluation
from pumice.scheduler.eviction.offer import Offer
from pumice.scheduler.eviction.victims import held_by, needed
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.statement import Statement
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.nodes import Table, cells, copies
from pumice.scheduler.model.resources import EPSILON, Mask, Vector
from pumice.scheduler.model.task import Task


def make_room(statement: Statement, task: Task, row: int, victims: list[Task], action: str, evaluation: Evaluation) -> int:
    """Evict victims in order until the task fits on the node. Return the number evicted; -1, with everything undone, if it never fits."""
    session, mark = statement.session, statement.mark()
    if not could_fit(session, task, row, victims):
        return -1
    for evicted, victim in enumerate(victims):
        if fits_now(session, task, row, evaluation):
            return evicted
        statement.evict(victim, action, task.key)
    if fits_now(session, task, row, evaluation):
        return len(victims)
    statement.rollback(mark)
    return -1


def could_fit(session: Session, task: Task, row: int, victims: Iterable[Task]) -> bool:
    """Whether the node would have room for the task once the victims have gone."""
    room: list[float] = session.nodes.row_future_idle(row).tolist()
    for victim in victims:
        for column, amount in victim.template.needs:
            room[column] += amount
    return all(amount < room[column] + EPSILON for column, amount in task.template.needs)


def fits_now(session: Session, task: Task, row: int, evaluation: Evaluation) -> bool:
    """Whether the task may be pipelined on the node as it is now: its queue allows it, there is room, and every filter admits it."""
    assert task.job is not None and task.job.queue is not None
    if not session.allows(task.job.queue, task) or not could_fit(session, task, row, ()):
        return False
    evaluation.refresh()
    return bool(evaluation.admitted[row])


# -- before allocate


def is_worth_it(statement: Statement, action: str) -> bool:
    """Whether to commit the statement. If it evicts nothing and the action allocate comes later, allocate can place its tasks at once."""
    return statement.evicts or not statement.session.policy.comes_later("allocate", than=action)


def pipeline_if_it_fits(statement: Statement, task: Task, action: str, evaluation: Evaluation) -> bool:
    """If the action allocate comes later: pipeline the task where it fits without evictions, so that no task is evicted for room that is
    free elsewhere. Return whether it was pipelined."""
    session = statement.session
    assert task.job is not None and task.job.queue is not None
    if not session.policy.comes_later("allocate", than=action) or not session.allocatable(task.job.queue, task):
        return False
    row = session.best_node(task, evaluation, evaluation.admitted & evaluation.fits_future)
    if row >= 0:
        statement.pipeline(task, row)
    return row >= 0


# Evictions tried on one node after the other, without those that turn out not to be needed.
#
# On each node the least important victims go until the task fits; then they are put back, the most important first, as far as the task
# still fits.


class EvictionDryRun:
    """The dry run of evictions for one task. The statement is left as it was."""

    def __init__(self, statement: Statement, task: Task, action: str, evaluation: Evaluation) -> None:
        self._statement = statement
        self._task = task
        self._action = action
        self._evaluation = evaluation

    def victims(self, row: int, permitted: list[Task]) -> list[Task] | None:
        """The tasks that would have to go from a node, the most important first; None if evictions there do not help."""
        mark = self._statement.mark()
        gone = make_room(self._statement, self._task, row, permitted, self._action, self._evaluation)
        self._statement.rollback(mark)
        if gone < 0:
            return None
        return needed(permitted[:gone], lambda left: self._fits_without(row, left))[::-1]

    def _fits_without(self, row: int, victims: list[Task]) -> bool:
        mark = self._statement.mark()
        for victim in victims:
            self._statement.evict(victim, self._action, self._task.key)
        fits = fits_now(self._statement.session, self._task, row, self._evaluation)
        self._statement.rollback(mark)
        return fits


# Where evictions could make room at all.

Eligible = Callable[[Task], bool]


class EvictionCandidates:
    """Per node, what eligible victims hold: an upper bound of the room that evictions could make.

    Jobs that plugins spare in any case are left out (`exposed`).
    """

    def __init__(self, session: Session, exposed: set[Job], eligible: Eligible) -> None:
        """`exposed`: the jobs that may lose tasks."""
        self._session = session
        self._cluster = session.cluster
        self._nodes = session.nodes
        self._exposed = exposed
        self._eligible = eligible
        self._sums: Table = np.zeros_like(session.nodes.used)
        self._count(exposed, eligible, 1)
        self._position = len(self._cluster.log)

    def without(self, jobs: Iterable[Job], eligible: Eligible) -> EvictionCandidates:
        """The same candidates without the tasks of some jobs, which `eligible` must refuse. Takes time only for those tasks."""
        self._catch_up()
        rest = EvictionCandidates(self._session, set(), eligible)
        rest._sums, rest._exposed = self._sums.copy(), self._exposed
        rest._count(self._exposed.intersection(jobs), self._eligible, -1)
        return rest

    def _count(self, jobs: Iterable[Job], eligible: Eligible, sign: int) -> None:
        sums = cells(self._sums)
        for job in jobs:
            for task in job.tasks.values() if len(job.pending) < len(job.tasks) else ():
                if task.node >= 0 and eligible(task):
                    for column, amount in task.template.needs:
                        sums[column][task.node] += amount * sign

    @property
    def most(self) -> Table | None:
        """What all of them hold, [r, node]; None if there are none."""
        return self._sums if self._sums.any() else None

    def _catch_up(self) -> None:
        """Count anew the rows where a task has moved."""
        log = self._cluster.log
        for row in {change.row for change in log[self._position :]}:
            self._recount(row)
        self._position = len(log)

    def _recount(self, row: int) -> None:
        self._sums[:, row] = held_by((task for task in self.victims(row) if task.job in self._exposed), len(self._sums))

    def victims(self, row: int) -> list[Task]:
        """The eligible tasks on a node."""
        return [task for task in self._nodes.tasks[row].values() if self._eligible(task)]

    def rows(self, task: Task) -> Mask:
        """The nodes where the task could fit if all eligible victims were evicted."""
        self._catch_up()
        enough = self._nodes.alive.copy()
        for column, amount in task.template.needs:
            enough &= self._nodes.future_idle_in(column) + self._sums[column] > amount - EPSILON
        return enough


# The number of tasks that find room, by resources alone, once certain bundles have gone.
#
# It is an upper bound: filters, and that tasks of several kinds share the room, count only when a placement is tried.


class Demand(NamedTuple):
    """A number of equal tasks that need room."""

    number: int
    needs: list[tuple[int, float]]  #: column and amount
    rows: Mask  #: nodes whose filters might admit them, now or after evictions


def most_by_place(offer: Offer, demands: Iterable[Demand], room: Table) -> Vector:
    """The number of tasks that find room: when no bundle has gone, when the first has gone, when the first two have, and so on."""
    by_row = np.argsort(offer.rows, kind="stable")
    total = np.zeros(len(offer) + 1)
    for demand in demands:
        entries = by_row[demand.rows[offer.rows[by_row]]]
        rows = offer.rows[entries]
        is_first = np.diff(rows, prepend=-1) != 0
        open_ = np.array([room[column][rows] + running(offer.amounts(column, entries), is_first) for column, _ in demand.needs])
        fit = copies([(number, amount) for number, (_, amount) in enumerate(demand.needs)], open_)
        at_first = np.where(demand.rows, copies(demand.needs, room), 0.0)
        before = np.where(is_first, at_first[rows], np.concatenate([[0.0], fit[:-1]])) if len(fit) else fit
        gained = np.bincount(offer.place[entries] + 1, fit - before, minlength=len(total))
        gained[0] = at_first.sum()
        total += np.minimum(np.cumsum(gained), demand.number)
    return total


def running(amounts: Vector, is_first: Mask) -> Vector:
    """The running sums of the amounts; they begin anew with each row."""
    sums = np.cumsum(amounts)
    begun = np.where(is_first, sums - amounts, 0.0)
    running: Vector = sums - np.maximum.accumulate(begun)
    return running


class Rooms:
    """The number of tasks that find room once any set of bundles has gone: it follows each bundle that goes or comes back."""

    def __init__(self, offer: Offer, demands: list[Demand], room: Table) -> None:
        self._offer = offer
        self._demands = demands
        self._room = room.copy()
        self._copies = [np.where(demand.rows, copies(demand.needs, room), 0.0) for demand in demands]
        self._totals = [float(each.sum()) for each in self._copies]
        self.gone: set[int] = set()  #: bundles by their places

    @property
    def most(self) -> float:
        return sum(min(demand.number, total) for demand, total in zip(self._demands, self._totals, strict=True))

    def lose(self, gone: Iterable[int]) -> None:
        """Count from here on as if these bundles, and no others, had gone."""
        wanted = set(gone)
        for place in self.gone ^ wanted:
            self._count(place, 1.0 if place in wanted else -1.0)
        self.gone = wanted

    def _count(self, place: int, sign: float) -> None:
        offer, room = self._offer, self._room
        for entry in offer.entries(place):
            row = offer.rows[entry]
            room[:, row] += offer.request(entry) * sign
            for number, demand in enumerate(self._demands):
                fit = demand.rows[row] * max(0.0, min((room[column, row] + EPSILON) // amount for column, amount in demand.needs))
                self._totals[number] += fit - self._copies[number][row]
                self._copies[number][row] = fit
