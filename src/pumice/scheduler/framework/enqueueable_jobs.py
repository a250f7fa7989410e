"""Which jobs at rest enqueue might let in now: an upper bound by what the cluster and their queues may still be promised.

All jobs that were not let in before are compared at once. Who is let in leaves less for the others, so a job is asked for once more at its
turn (`wakes`); if that is in vain, the others of its queue are compared anew. What is said of jobs at rest is found out when it is read.
"""

from functools import partial

import numpy as np

from pumice.scheduler.framework.job_classes import JobClass
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Mask, Queue, Rows

AT_ONCE = 500  #: to compare so many jobs takes little longer than to compare one


class _Compared:
    """The jobs of a queue that might be let in, as they were compared at these changes of the session: later there are no others."""

    def __init__(self, changes: int, slots: Rows) -> None:
        self.changes = changes
        self.slots = slots
        self.may_enter = {*slots.tolist()}
        self.in_vain = 0  #: jobs that were compared alone since, and might not be let in any more


class EnqueueableJobs:
    """The jobs at rest that were not let in."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._resting = session.resting
        self._of: dict[Queue, _Compared] = {}

    def groups(self) -> list[JobClass]:
        """Those that might be let in."""
        if not self._resting:
            return []
        members, by_queue = self._resting.needs.members, dict[Queue, list[int]]()
        for slot in np.flatnonzero(self._resting.sleeping & self._resting.needs.outside).tolist():
            queue = members[slot][0].job.queue
            assert queue is not None
            by_queue.setdefault(queue, []).append(slot)
        for queue, its in by_queue.items():
            self._compare(queue, np.array(its))
        slots = (slot for compared in self._of.values() for slot in compared.slots.tolist())
        return [JobClass(members[slot].copy(), wakes=partial(self._wakes, slot)) for slot in slots]

    def _compare(self, queue: Queue, slots: Rows) -> None:
        self._of[queue] = _Compared(self._session.changes, slots[self._may_enter(queue, slots)])

    def _may_enter(self, queue: Queue, slots: Rows) -> Mask:
        return self._resting.needs.asks_for_less(slots, self._session.admission_room(queue))

    def _wakes(self, slot: int, alike: JobClass) -> bool:
        """Whether such jobs might still be let in. If so they are woken."""
        queue = alike.first.queue
        assert queue is not None
        compared = self._of[queue]
        if slot not in compared.may_enter:
            return False
        if compared.changes != self._session.changes and not self._may_enter(queue, np.array([slot]))[0]:
            compared.in_vain += 1
            if compared.in_vain * AT_ONCE >= len(compared.slots):
                self._compare(queue, compared.slots)
            return False
        self._resting.wake(slot, alike, self._session.alike)
        return True
