"""Jobs by queue, both in their order: what enqueue, allocate and their kin work through.

A queue's place follows its share: it is taken out, served, and put back with a fresh key, or in a hierarchy, compared afresh.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from pumice.actions.lazy_heap import LazyHeap
from pumice.framework.questions import Key
from pumice.framework.session import Session
from pumice.model.job import Job
from pumice.model.queue import Queue


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
