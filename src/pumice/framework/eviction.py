"""Making room by eviction: who goes first, where room could be made at all, and the one way in which it is made.

preempt, reclaim and their gang forms share this. Nothing is evicted but inside a statement that places the beneficiary: `make_room`
either leaves the node able to take the task, with as few evictions as that order allows, or leaves everything as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cmp_to_key

import numpy as np

from pumice.engine.evaluation import Evaluation
from pumice.framework.questions import Key
from pumice.framework.session import Session
from pumice.framework.statement import Statement
from pumice.model.job import Job
from pumice.model.nodes import Table
from pumice.model.queue import Queue
from pumice.model.resources import EPSILON, Mask, Vector
from pumice.model.task import Task

Eligible = Callable[[Task], bool]


def victim_order(session: Session, preemptor: Task, victims: Iterable[Task]) -> list[Task]:
    """The least important first: by queue, then by job, then by task, each in reverse order of service."""
    by_queue: dict[str, list[Task]] = {}
    for task in victims:
        assert task.job is not None and task.job.queue is not None, "pods of no queue are nobody's victims"
        by_queue.setdefault(task.job.queue.name, []).append(task)
    ordered: list[Task] = []
    for queue in victim_queues(session, preemptor, by_queue):
        ordered += sorted(by_queue[queue.name], key=lambda task: _importance(session, task), reverse=True)
    return ordered


def agreed(session: Session, preemptor: Task, candidates: list[Task], ask: Callable[[Task, list[Task]], list[Task]]) -> list[Task]:
    """Those whom plugins let go, the least important first. So they are asked, too: what a gang can spare is its least important pods."""
    if not candidates:
        return []
    in_order = victim_order(session, preemptor, candidates)
    accepted = {task.uid for task in ask(preemptor, in_order)}
    return [task for task in in_order if task.uid in accepted]


def _importance(session: Session, task: Task) -> Key:
    assert task.job is not None
    return (*session.job_plugin_key(task.job), *session.task_key(task))


def victim_queues(session: Session, preemptor: Task, names: Iterable[str]) -> list[Queue]:
    """Queues by name, the one that loses tasks first in front."""
    queues = [session.cluster.queues[name] for name in names]
    own = preemptor.job.queue if preemptor.job is not None else None
    if len(queues) < 2 or own is None:
        return queues

    def compare(left: Queue, right: Queue) -> int:
        return -1 if session.victim_queue_before(left, right, own) else 1

    return sorted(queues, key=cmp_to_key(compare))


class Prospects:
    """Per node, what eligible victims hold: an upper bound of the room that evictions could make."""

    def __init__(self, session: Session, jobs: Iterable[Job], eligible: Eligible) -> None:
        """`jobs` are those that victims may be taken from."""
        self._session = session
        self._cluster = session.cluster
        self._nodes = session.nodes
        self._eligible = eligible
        self._sums: Table = np.zeros_like(session.nodes.used)
        self._counts = np.zeros(len(session.nodes), int)
        self._count(jobs, eligible, 1)
        self._position = len(self._cluster.log)

    def without(self, jobs: Iterable[Job], eligible: Eligible) -> Prospects:
        """The same but for all tasks of some jobs: `eligible` names the others. Costs what those jobs do."""
        self._catch_up()
        rest = Prospects(self._session, (), eligible)
        rest._sums, rest._counts = self._sums.copy(), self._counts.copy()
        rest._count(jobs, self._eligible, -1)
        return rest

    def _count(self, jobs: Iterable[Job], eligible: Eligible, sign: int) -> None:
        for job in jobs:
            for task in job.tasks.values():
                if task.node >= 0 and eligible(task):
                    self._counts[task.node] += sign
                    self._sums[task.template.columns, task.node] += task.template.amounts * sign

    def _catch_up(self) -> None:
        """Count anew where anything has moved."""
        log = self._cluster.log
        for row in {change.row for change in log[self._position :]}:
            self._recount(row)
        self._position = len(log)

    def _recount(self, row: int) -> None:
        victims = self.victims(row)
        self._counts[row] = len(victims)
        self._sums[:, row] = 0.0
        for task in victims:
            self._sums[task.template.columns, row] += task.template.amounts

    def victims(self, row: int) -> list[Task]:
        """Eligible tasks on a node."""
        return [task for task in self._nodes.tasks[row].values() if self._eligible(task)]

    def rows(self, task: Task) -> Mask:
        """Nodes where the task could fit if all eligible victims went."""
        self._catch_up()
        enough = self._nodes.alive.copy()
        template = task.template
        future = self._nodes.future_idle
        for column, amount in zip(template.columns, template.amounts, strict=True):
            enough &= future[column] + self._sums[column] > amount - EPSILON
        return enough

    @property
    def occupied(self) -> Mask:
        """Nodes with any eligible victim."""
        mask: Mask = self._counts > 0
        return mask


def make_room(statement: Statement, task: Task, victims: list[Task], action: str, enough: Callable[[], bool]) -> int:
    """Evict in the given order until it is enough; the number evicted, or -1 with everything undone if it never is."""
    mark = statement.mark()
    evicted = 0
    for victim in victims:
        if enough():
            return evicted
        statement.evict(victim, action, task.key)
        evicted += 1
    if enough():
        return evicted
    statement.rollback(mark)
    return -1


def likeness(session: Session, task: Task) -> Hashable:
    """Equal for tasks to whom every node and every victim looks the same: where one of them found nothing, the next will not either."""
    return session.evaluation_of(task), task.nominated, task.priority, task.zone


def could_fit(session: Session, task: Task, row: int, victims: Iterable[Task]) -> bool:
    """Whether the node would have the room with the victims gone."""
    room = session.nodes.row_future_idle(row)
    for victim in victims:
        room[victim.template.columns] += victim.template.amounts
    return fits_on(task, room)


def fits_on(task: Task, room: Vector) -> bool:
    template = task.template
    return bool((template.amounts < room[template.columns] + EPSILON).all())


def takes(session: Session, task: Task, row: int, evaluation: Evaluation) -> bool:
    """Whether the task may wait on the node as it now is: its queue allows it, there is room, and every filter lets it in."""
    assert task.job is not None and task.job.queue is not None
    if not session.allocatable(task.job.queue, task) or not could_fit(session, task, row, ()):
        return False
    evaluation.refresh()
    return bool(evaluation.admitted[row])


# -- before allocate


def is_worth_it(statement: Statement, action: str) -> bool:
    """Whether what waits in the statement should. If it needed no eviction and allocate is still to come, that can place it at once."""
    return statement.evicts or not statement.session.policy.comes_later("allocate", than=action)


def waits_in_peace(statement: Statement, task: Task, action: str, evaluation: Evaluation) -> bool:
    """If allocate is still to come: let the task wait where it fits as things are, so that nobody goes for what is free elsewhere."""
    session = statement.session
    assert task.job is not None and task.job.queue is not None
    if not session.policy.comes_later("allocate", than=action) or not session.allocatable(task.job.queue, task):
        return False
    row = session.best_node(task, evaluation, evaluation.admitted & evaluation.fits_future)
    if row >= 0:
        statement.pipeline(task, row)
    return row >= 0
