"""Jobs by queue, jobs and queues in their order: what enqueue, allocate and reclaim work through.

The place of a queue follows its share: the queue is taken out, served, and put back with a fresh key, or in a hierarchy compared anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from pumice.scheduler.framework.job_class_turns import Turns
from pumice.scheduler.framework.job_classes import JobClass
from pumice.scheduler.framework.orders import OrderKey
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.startable_jobs import StartableJobs
from pumice.scheduler.model import Job, Queue
from pumice.scheduler.placement.lazy_heap import LazyHeap


class JobsByQueue:
    """Jobs with pending tasks: queues in order, and the jobs of each in theirs."""

    def __init__(
        self, session: Session, groups: Iterable[JobClass], startable: StartableJobs | None = None, *, each_once: bool = False
    ) -> None:
        """`startable`: the groups that are at rest. `each_once`: each queue has one turn, in which all its jobs have theirs; its jobs at
        rest join then (`join`)."""
        self._session = session
        self._startable = startable
        self._each_once = each_once
        self._queues: list[tuple[OrderKey, Queue]] = []
        self._are_compared = session.orders.queues_need_comparing
        self._compared: LazyHeap[Queue] = LazyHeap(session.orders.queue_before)  #: instead of `_queues`, in a hierarchy
        groups = list(groups)
        #: in a hierarchy, once nobody at rest might find room: those with a turn that might; the last did at the session's changes `_seen`
        self._hopeful = [alike.first.uid for alike in groups]
        self._seen = -1
        self._awake = {*self._hopeful}
        self._at_rest: dict[str, list[int]] = {}  #: in a hierarchy, by queue: jobs at rest that join at the queue's first turn
        if startable is not None and not self._are_compared and not each_once:
            groups += startable.of()
        self._turns = {name: Turns(session, its, session.orders.job_key) for name, its in by_queue(groups).items()}
        if startable is not None and self._are_compared:
            self._at_rest = startable.by_queue(self._turns)
        self._joined = set(startable.queues()) if startable is not None and each_once and not self._are_compared else set()
        self._turns |= {name: Turns(session, (), session.orders.job_key) for name in self._joined if name not in self._turns}
        if not self._are_compared:
            for name in self._turns:
                self.push_queue(session.cluster.queues[name])
            return
        for queue in session.queues:  # always in the same order: their places may depend on it
            if queue.name in self._at_rest or queue.name in self._turns:
                self._compared.push(queue)

    def join(self, queue: Queue, groups: list[JobClass]) -> None:
        """Let more jobs of a queue have their turns."""
        self._turns.setdefault(queue.name, Turns(self._session, (), self._session.orders.job_key)).join(groups)
        self._joined.discard(queue.name)

    def push_queue(self, queue: Queue) -> None:
        """Put back a queue, which is served again if it may have more jobs. In a hierarchy the places of other queues depend on its own."""
        turns = self._turns[queue.name]
        turns.part()
        if self._are_compared:
            self._compared.push(queue)
        elif turns or queue.name in self._joined:
            key = self._session.orders.queue_key(queue) if len(self._turns) > 1 else ()  # a single queue has no order
            heappush(self._queues, (key, queue))

    def pop_queue(self) -> Queue | None:
        """The queue to be served next; None if there is none, or if only jobs are left that no turn can help."""
        if self._compared and self._startable is not None and not self._startable:
            self._refuse_rest(self._startable)
        if self._compared:
            return self._compared.pop() if self._awake or self._startable else None
        return heappop(self._queues)[1] if self._queues else None

    def _refuse_rest(self, startable: StartableJobs) -> None:
        """If none of the jobs with a turn can be helped, give up the order: it matters no more who is refused first."""
        if self._any_hopeful(startable):
            return
        queues = {self._session.cluster.jobs[uid].queue for uid in self._awake}
        waiting = [queue for queue in self._compared if queue in queues]
        self._are_compared, self._at_rest, self._compared = False, {}, LazyHeap(self._session.orders.queue_before)
        for queue in waiting:
            self.push_queue(queue)

    def _any_hopeful(self, startable: StartableJobs) -> bool:
        """Whether any job with a turn might find room. Only as many are compared as have lost all hope, and about as many others."""
        changes, count = self._session.changes, 1
        if self._seen == changes and self._hopeful and self._hopeful[-1] in self._awake:
            return True
        self._seen = changes
        while self._hopeful:
            some = [uid for uid in self._hopeful[-count:] if uid in self._awake]
            self._hopeful[-count:] = found = startable.among(some) if some else []
            if found:
                return True
            count *= 2
        return False

    def push_job(self, job: Job) -> None:
        assert job.queue is not None
        self._awake.add(job.uid)
        self._hopeful.append(job.uid)
        self._turns[job.queue.name].push(job)

    def pop_job(self, queue: Queue) -> Job | None:
        """The queue's job that has its turn; None if there is none. In a hierarchy a job at rest has its turn in vain, as a refused one."""
        if self._startable is not None and not self._each_once and queue.name in self._at_rest:
            self.join(queue, self._startable.with_turns(self._at_rest.pop(queue.name)))
        turns = self._turns[queue.name]
        if not self._are_compared or self._each_once or not turns:
            job = turns.pop()
        elif (job := turns.take()) is None:
            self.push_queue(queue)
        if job is not None:
            self._awake.discard(job.uid)
        return job


def by_queue(groups: Iterable[JobClass]) -> dict[str, list[JobClass]]:
    found: dict[str, list[JobClass]] = {}
    for alike in groups:
        assert alike.first.queue is not None
        found.setdefault(alike.first.queue.name, []).append(alike)
    return found
