"""Which tasks may be evicted for a task, in which order, and which of them need not go.

No task is evicted in vain: victims are put back, the most important first, as long as their beneficiary keeps a place.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cmp_to_key
from typing import Literal, TypeVar

from msgspec import Struct, field

from pumice.scheduler.framework.orders import OrderKey
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Queue, Task


def permitted_victims(session: Session, preemptor: Task, candidates: list[Task], hook: Literal["preemptable", "reclaimable"]) -> list[Task]:
    """The candidates that plugins let go, the least important first. Plugins get them in this order too, so that a gang loses its least
    important pods first."""
    candidates = session.past_evictions.sparing(preemptor, candidates)
    in_order = victim_order(session, preemptor, candidates)
    accepted = {task.uid for task in session.evictable.permitted(hook, preemptor, in_order)}
    return [task for task in in_order if task.uid in accepted]


def victim_order(session: Session, preemptor: Task, victims: Iterable[Task]) -> list[Task]:
    """The victims, the least important first: by queue, then by job, then by task, each in reverse order of service."""
    by_queue: dict[str, list[Task]] = {}
    for task in victims:
        assert task.job is not None and task.job.queue is not None, "pods of no queue are nobody's victims"
        by_queue.setdefault(task.job.queue.name, []).append(task)
    ordered: list[Task] = []
    for queue in victim_queues(session, preemptor, by_queue):
        ordered += sorted(by_queue[queue.name], key=lambda task: _importance(session, task), reverse=True)
    return ordered


def _importance(session: Session, task: Task) -> OrderKey:
    assert task.job is not None
    return (*session.orders.job_plugin_key(task.job), *session.orders.task_key(task))


def victim_queues(session: Session, preemptor: Task, names: Iterable[str]) -> list[Queue]:
    """The queues of these names, the queue that loses tasks first in front."""
    queues = [session.cluster.queues[name] for name in names]
    own = preemptor.job.queue if preemptor.job is not None else None
    if len(queues) < 2 or own is None:
        return queues

    def compare(left: Queue, right: Queue) -> int:
        return -1 if session.orders.victim_queue_before(left, right, own) else 1

    return sorted(queues, key=cmp_to_key(compare))


class Budget(Struct):
    """Arguments of preempt and reclaim. The last three are those of Volcano's topology-aware preemption."""

    spare: bool = field(name="spareVictims", default=False)  #: of Pumice alone; without it the victims are those of Volcano
    candidates_percent: int = field(name="minCandidateNodesPercentage", default=10)
    candidates_least: int = field(name="minCandidateNodesAbsolute", default=1)
    candidates_most: int = field(name="maxCandidateNodesAbsolute", default=100)

    def enough(self, nodes: int) -> int:
        """The number of possible nodes that are compared before the cheapest is taken."""
        wanted = max(nodes * self.candidates_percent // 100, self.candidates_least)
        return max(1, min(wanted, self.candidates_most, nodes))


T = TypeVar("T")


def needed(victims: Sequence[T], stands: Callable[[list[T]], bool]) -> list[T]:
    """The victims that must go, in the given order, the least important first. None of them can be put back.

    `stands` says whether the beneficiary has a place if only the given victims go. Many are put back at a time, as long as that succeeds.
    One victim that was put back may let another stay (by pod affinity): that is tried as well, until no more can be put back.
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
