"""Who may be evicted for a task, in which order, and who of them need not go."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cmp_to_key
from typing import TypeVar

import numpy as np
from msgspec import Struct, field

from pumice.scheduler.framework.questions import Key
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model.nodes import Nodes, Table
from pumice.scheduler.model.queue import Queue
from pumice.scheduler.model.resources import EPSILON, Mask
from pumice.scheduler.model.task import Task


def permitted_victims(
    session: Session, preemptor: Task, candidates: list[Task], ask: Callable[[Task, list[Task]], list[Task]]
) -> list[Task]:
    """Those whom plugins let go, the least important first. So they are asked, too: what a gang can spare is its least important pods."""
    candidates = session.ledger.sparing(preemptor, candidates)
    if not candidates:
        return []
    in_order = victim_order(session, preemptor, candidates)
    accepted = {task.uid for task in ask(preemptor, in_order)}
    return [task for task in in_order if task.uid in accepted]


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


# Whom plugins agreed to evict, node by node: so that of many tasks that wait in vain only the first asks about every node.
#
# It holds for tasks to which the plugins answer alike (`eviction_cache_key`), and as long as nothing moves, or everything that moved was
# undone. It saves asking; who is evicted is decided on fresh answers.

MOST_CLASSES = 16  #: remembered at a time


def held_by(tasks: Iterable[Task], width: int) -> list[float]:
    """What tasks hold together, of each of so many resources."""
    held = [0.0] * width
    for task in tasks:
        for column, amount in task.template.needs:
            held[column] += amount
    return held


class PermittedVictims:
    """What all who may go hold, node by node, for one class of evictors."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._asked: Mask = np.zeros(len(nodes), bool)
        self._sums: Table = np.zeros_like(nodes.used)

    def note(self, row: int, victims: Iterable[Task]) -> None:
        """All who may go from a node."""
        self._asked[row] = True
        self._sums[:, row] = held_by(victims, len(self._sums))

    def hopeful(self, task: Task) -> Mask:
        """Nodes that were not asked about, or have room for the task without those who may go."""
        enough: Mask = np.ones(len(self._nodes), bool)
        for column, amount in task.template.needs:
            enough &= self._nodes.future_idle_in(column) + self._sums[column] > amount - EPSILON
        return ~self._asked | enough


Known = dict[Hashable, PermittedVictims]


class VictimCache:
    """By class of evictor, for the victims of one queue, or of all the others."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: Known = {}
        self._position = 0

    def of(self, evictors: Hashable) -> PermittedVictims:
        known = self.now()
        if evictors not in known:
            if len(known) == MOST_CLASSES:
                del known[next(iter(known))]
            known[evictors] = PermittedVictims(self._session.nodes)
        return known[evictors]

    def now(self) -> Known:
        """All that holds as things are."""
        if len(self._session.cluster.log) != self._position:
            self.undone_to({})
        return self._known

    def undone_to(self, known: Known) -> None:
        """Things are again as they were when this was known."""
        self._known, self._position = known, len(self._session.cluster.log)


# How far preempt and reclaim look for victims that cost less.


class Budget(Struct):
    """Arguments of both actions. The last three are Volcano's, of topology-aware preemption."""

    spare: bool = field(name="spareVictims", default=False)  #: ours; without it victims are Volcano's
    candidates_percent: int = field(name="minCandidateNodesPercentage", default=10)
    candidates_least: int = field(name="minCandidateNodesAbsolute", default=1)
    candidates_most: int = field(name="maxCandidateNodesAbsolute", default=100)

    def enough(self, nodes: int) -> int:
        """How many nodes that would do are compared."""
        wanted = max(nodes * self.candidates_percent // 100, self.candidates_least)
        return max(1, min(wanted, self.candidates_most, nodes))


# Nobody goes in vain: victims are put back, the most important first, as far as their beneficiary keeps a place.


T = TypeVar("T")


def needed(victims: Sequence[T], stands: Callable[[list[T]], bool]) -> list[T]:
    """Those without whom it would not do; the least important first, as they came. None of them can be put back.

    `stands` says whether the beneficiary has a place if only these go. Many are tried at a time, for as long as that goes well. Where one
    that was put back lets another stay (who looks for company), that is tried as well, until nobody more can.
    """
    left = list(victims)
    while len(must_go := _once(left, stands)) < len(left):
        left = must_go
    return left


def _once(victims: list[T], stands: Callable[[list[T]], bool]) -> list[T]:
    undecided, must_go, step = victims, list[T](), 1
    while undecided:
        rest = undecided[:-step]
        if stands(rest + must_go):
            undecided, step = rest, 2 * step
        elif step > 1:
            step = 1
        else:
            undecided, must_go = rest, [undecided[-1], *must_go]
    return must_go
