"""Which jobs at rest enqueue might let in now: an upper bound by what the cluster and their queues may still be promised.

All jobs that were not let in before are compared at once. Who is let in leaves less for the others, so a job is asked for once more at its
turn (`wakes`). What is said of jobs at rest is found out when it is read.
"""

from functools import partial

import numpy as np

from pumice.scheduler.framework.job_classes import JobClass
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Mask, Queue, Rows, Vector


class EnqueueableJobs:
    """The jobs at rest that were not let in."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._resting = session.resting
        self._rooms: dict[Queue, tuple[int, Vector]] = {}  #: what the queue may be promised, and the session's changes then

    def groups(self) -> list[JobClass]:
        """Those that might be let in."""
        if not self._resting:
            return []
        members, by_queue = self._resting.needs.members, dict[Queue, list[int]]()
        for slot in np.flatnonzero(self._resting.sleeping & self._resting.needs.outside).tolist():
            queue = members[slot][0].job.queue
            assert queue is not None
            by_queue.setdefault(queue, []).append(slot)
        slots = (slot for queue, its in by_queue.items() for slot in np.array(its)[self._may_enter(queue, np.array(its))].tolist())
        return [JobClass(members[slot].copy(), wakes=partial(self._wakes, slot)) for slot in slots]

    def _may_enter(self, queue: Queue, slots: Rows) -> Mask:
        changes, room = self._rooms.get(queue, (-1, None))
        if room is None or changes != self._session.changes:
            room = self._session.admission_room(queue)
            self._rooms[queue] = self._session.changes, room
        return self._resting.needs.asks_for_less(slots, room)

    def _wakes(self, slot: int, alike: JobClass) -> bool:
        """Whether such jobs might still be let in. If so they are woken."""
        queue = alike.first.queue
        assert queue is not None
        if not self._may_enter(queue, np.array([slot]))[0]:
            return False
        self._resting.wake(slot, alike, self._session.alike)
        return True
