"""Who may be evicted for a task, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cmp_to_key

from pumice.framework.questions import Key
from pumice.framework.session import Session
from pumice.model.queue import Queue
from pumice.model.task import Task


def permitted_victims(
    session: Session, preemptor: Task, candidates: list[Task], ask: Callable[[Task, list[Task]], list[Task]]
) -> list[Task]:
    """Those whom plugins let go, the least important first. So they are asked, too: what a gang can spare is its least important pods."""
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
