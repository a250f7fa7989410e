"""Jobs by queue, both in their order: what enqueue, allocate and their kin work through.

A queue's place follows its share: it is taken out, served, and put back with a fresh key, or in a hierarchy, compared afresh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from pumice.scheduler.framework.questions import Key
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.queue import Queue

# A binary heap whose order may change under it: elements are compared as things stand when one comes or goes past them, not before.
#
# Volcano keeps its queues so. In a hierarchy what one queue gets changes the place of its sisters too, and they learn of it only then.

T = TypeVar("T")


class LazyHeap(Generic[T]):
    """`before(one, other)`: whether one comes out first."""

    def __init__(self, before: Callable[[T, T], bool]) -> None:
        self._before = before
        self._items: list[T] = []

    def __bool__(self) -> bool:
        return bool(self._items)

    def push(self, item: T) -> None:
        items, place = self._items, len(self._items)
        items.append(item)
        while place and self._before(item, items[above := (place - 1) // 2]):
            items[place], items[above] = items[above], item
            place = above

    def pop(self) -> T:
        items = self._items
        last = items.pop()
        if not items:
            return last
        first, items[0] = items[0], last
        place = 0
        while (below := 2 * place + 1) < len(items):
            if below + 1 < len(items) and self._before(items[below + 1], items[below]):
                below += 1
            if not self._before(items[below], last):
                break
            items[place], items[below] = items[below], last
            place = below
        return first


class JobsByQueue:
    """See the module."""

    def __init__(self, session: Session, jobs: Iterable[Job]) -> None:
        self._session = session
        self._jobs: dict[str, list[tuple[Key, Job]]] = {}
        self._queues: list[tuple[Key, Queue]] = []
        self._compared: LazyHeap[Queue] = LazyHeap(session.queue_before)  #: instead of `_queues`, in a hierarchy
        for job in jobs:
            assert job.queue is not None
            self._jobs.setdefault(job.queue.name, []).append((session.job_key(job), job))
        for waiting in self._jobs.values():
            heapify(waiting)
        queues = {name: session.cluster.queues[name] for name in self._jobs}
        for queue in queues.values():
            self.push_queue(queue)

    def push_queue(self, queue: Queue) -> None:
        if self._session.queues_need_comparing:
            self._compared.push(queue)
        else:
            heappush(self._queues, (self._session.queue_key(queue), queue))

    def pop_queue(self) -> Queue | None:
        """The queue to be served next."""
        if self._compared:
            return self._compared.pop()
        return heappop(self._queues)[1] if self._queues else None

    def push_job(self, job: Job) -> None:
        assert job.queue is not None
        heappush(self._jobs[job.queue.name], (self._session.job_key(job), job))

    def pop_job(self, queue: Queue) -> Job | None:
        waiting = self._jobs.get(queue.name)
        return heappop(waiting)[1] if waiting else None
