"""Jobs by queue, both in their order: what enqueue, allocate and their kin work through.

A queue's place follows its share: it is taken out, served, and put back with a fresh key.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cmp_to_key
from heapq import heapify, heappop, heappush

from pumice.framework.session import Key, Session
from pumice.model.job import Job
from pumice.model.queue import Queue


class JobsByQueue:
    """See the module."""

    def __init__(self, session: Session, jobs: Iterable[Job]) -> None:
        self._session = session
        self._jobs: dict[str, list[tuple[Key, Job]]] = {}
        self._queues: list[tuple[Key, Queue]] = []
        for job in jobs:
            assert job.queue is not None
            self._jobs.setdefault(job.queue.name, []).append((session.job_key(job), job))
        for waiting in self._jobs.values():
            heapify(waiting)
        queues = {name: session.cluster.queues[name] for name in self._jobs}
        for queue in queues.values():
            self.push_queue(queue)

    def push_queue(self, queue: Queue) -> None:
        heappush(self._queues, (() if self._session.queues_need_comparing else self._session.queue_key(queue), queue))

    def pop_queue(self) -> Queue | None:
        """The queue to be served next."""
        if not self._queues:
            return None
        if not self._session.queues_need_comparing:
            return heappop(self._queues)[1]
        queue = min((queue for _, queue in self._queues), key=cmp_to_key(self._compare))
        self._queues = [entry for entry in self._queues if entry[1] is not queue]
        return queue

    def _compare(self, left: Queue, right: Queue) -> int:
        return -1 if self._session.queue_before(left, right) else 1

    def push_job(self, job: Job) -> None:
        assert job.queue is not None
        heappush(self._jobs[job.queue.name], (self._session.job_key(job), job))

    def pop_job(self, queue: Queue) -> Job | None:
        waiting = self._jobs.get(queue.name)
        return heappop(waiting)[1] if waiting else None
