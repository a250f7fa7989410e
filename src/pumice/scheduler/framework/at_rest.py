"""Jobs at rest: waiting jobs that a session does not look at, since there is certainly too little room for them.

A gang is refused for lack of room as long as fewer of its pods than it lacks fit on all nodes together. What each class of jobs needs is
kept in columns (`Needs`), so that one comparison with the room on nodes finds the jobs that might start, however many wait
(`startable_jobs.py`). It is an upper bound, by resources of each node alone: a job that passes is looked at, and may be refused all the
same.

Jobs to which something has happened are always looked at: their status must be reported. Of jobs at rest nothing is reported anew. Why
their pods wait is found out when somebody reads it (`cycle.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from pumice.api.annotations import QUEUE_GATE
from pumice.scheduler.model import EPSILON, PODS, Job, Mask, NDArray, Rows, Table, Template, Vector
from pumice.scheduler.model.half_placed_gangs import cut_short_at

if TYPE_CHECKING:
    from pumice.scheduler.framework.job_classes import JobClass, Member
    from pumice.scheduler.framework.session import Session

BLOCK = 20_000  #: so many comparisons of a job with a node at once: their numbers fit into the first caches
MANY = 2.0**40  #: so many pods fit into room without a bound
MOST_PODS = np.iinfo(np.int32).max  #: whoever asks for more pods at once has no more hope
NOBODY: list[Member] = []  #: one for all slots that are free
SLOTS = 64  #: for so many classes there is room from the beginning
FEW_KINDS = 500  #: of so few classes is not forgotten what was made of their templates


class Needs:
    """What the waiting jobs of each class need, as columns with one entry, a slot, for each class."""

    def __init__(self, width: int) -> None:
        self.slots: dict[Hashable, int] = {}
        #: by slot: the jobs of the class; empty if the slot is free. The lists are replaced, not changed: decisions keep them
        self.members: list[list[Member]] = [NOBODY] * SLOTS
        #: of each resource the least that one of its pods requests; of jobs outside what they ask for to be let in, without pods
        self.amounts: Table = np.zeros((width, SLOTS))
        self.pods = np.zeros(SLOTS, np.int32)  #: pods of each job that may be placed
        self.waiting = np.zeros(SLOTS, np.int32)  #: pods of each job that wait
        self.least = np.zeros(SLOTS, np.int32)  #: pods of each job that must find a node at once
        self.taking = np.zeros(SLOTS, np.int32)  #: pods of each job for which others may be evicted
        self.ready = np.zeros(SLOTS, bool)  #: whether each job has its minimum
        self.holds = np.zeros(SLOTS, bool)  #: whether the job has pods that do not wait
        self.restless = np.zeros(SLOTS, bool)  #: whether the jobs are always looked at
        self.outside = np.zeros(SLOTS, bool)  #: whether the jobs were not let in when they asked
        self._free: list[int] = []  #: slots that are free again
        self._unused = 0  #: from here on no slot was ever used
        self._unread: set[int] = set()  #: slots of classes that have come in the present session: most of them go in it, too

    def slot(self, key: Hashable) -> int:
        """The slot of a class. A new class gets one."""
        slot = self.slots.get(key)
        if slot is None:
            slot = self.slots[key] = self._free.pop() if self._free else self._unused
            if slot == self._unused:
                self._unused += 1
                if slot == len(self.pods):
                    self._grow()
            self._unread.add(slot)
        return slot

    def drop(self, key: Hashable) -> None:
        slot = self.slots.pop(key)
        self._unread.discard(slot)
        self.members[slot] = NOBODY
        self.pods[slot] = self.waiting[slot] = 0
        self.restless[slot] = self.outside[slot] = False
        self._free.append(slot)

    def read(self, session: Session) -> None:
        """Take in what the classes need that have come in this session and still wait."""
        for slot in self._unread:
            self._read(session, slot, self.members[slot][0].job)  # not who came first: that job may have been placed since
        self._unread.clear()

    def reread(self, session: Session, job: Job) -> int:
        """Take in what a job needs now that is in a class of its own, and return its slot."""
        slot = self.slots[job.uid]
        self._read(session, slot, job)
        return slot

    def _grow(self) -> None:
        before = len(self.pods)
        more = max(SLOTS, before // 8)
        self.amounts = np.pad(self.amounts, ((0, 0), (0, more)))
        counts = self.pods, self.waiting, self.taking, self.least
        self.pods, self.waiting, self.taking, self.least = (np.pad(each, (0, more)) for each in counts)
        facts = self.ready, self.holds, self.restless, self.outside
        self.ready, self.holds, self.restless, self.outside = (np.pad(each, (0, more)) for each in facts)
        self.members += [NOBODY] * more

    def _read(self, session: Session, slot: int, job: Job) -> None:
        tasks = Counter([task.template for task in job.pending.values()])
        templates = [template for template in tasks if not template.best_effort and not template.gates]
        self.pods[slot] = sum([tasks[template] for template in templates])
        self.waiting[slot], self.ready[slot] = len(job.pending), job.is_ready
        self.taking[slot] = sum([tasks[template] for template in templates if not template.never_preempts])
        self.least[slot] = min(max(1, job.min_member - job.ready_count), MOST_PODS) if session.keeps_gangs else 1
        self.outside[slot] = job.is_pending
        self.holds[slot], self.restless[slot] = len(job.pending) < len(job.tasks), _is_restless(session, job, tasks)
        if job.is_pending:
            self.amounts[:, slot] = job.min_resources
            self.amounts[PODS, slot] = 0.0
        elif len(templates) == 1:
            self.amounts[:, slot] = templates[0].taken
        elif templates:
            self.amounts[:, slot] = np.min([template.taken for template in templates], axis=0)
        if len(self.slots) > FEW_KINDS:
            for template in tasks:
                template.forget()

    def enough(self, slots: Rows, room: Table, least: NDArray[np.int32]) -> Mask:
        """Which of these slots might find room [resource, node] for `least` pods of a job: by the resources of each node alone."""
        amounts = self.amounts[:, slots]
        columns = np.flatnonzero((amounts > 0).any(axis=1))
        amounts, room, times = amounts[columns], *_distinct(room[columns] + EPSILON)
        found: Mask = np.zeros(len(slots), bool)
        left, total, node = np.arange(len(slots)), np.zeros(len(slots)), 0
        while len(left) and node < len(times):
            block = slice(node, node := node + max(1, BLOCK // len(left)))
            copies = np.full((len(left), len(times[block])), MANY)
            for asked, free in zip(amounts[:, left, None], room[:, None, block], strict=True):
                np.minimum(copies, np.divide(free, asked, out=np.full_like(copies, MANY), where=asked > 0), out=copies)
            total[left] += np.maximum(np.floor(copies), 0.0) @ times[block]
            found[left] = total[left] >= least[left]
            left = left[~found[left]]
        return found

    def asks_for_less(self, slots: Rows, room: Vector) -> Mask:
        """Which of these slots ask for no more than this to be let in, of what they ask for at all."""
        asked = self.amounts[:, slots]
        mask: Mask = ((asked <= room[:, None] + EPSILON) | (asked == 0)).all(axis=0)
        return mask

    def below(self, slots: Rows, room: Vector) -> Mask:
        """Which of these slots have a pod that requests no more than this of any resource."""
        mask: Mask = np.all(self.amounts[:, slots] <= room[:, None] + EPSILON, axis=0)
        return mask

    def room_for_any(self, slots: Rows, room: Table) -> Mask:
        """A mask of the nodes that have room for the least that is requested of each resource by all of these slots."""
        least = self.amounts[:, slots].min(axis=1, initial=np.inf)
        columns = np.flatnonzero(least > 0)
        enough: Mask = (room[columns] + EPSILON > least[columns, None]).all(axis=0)
        return enough


def _distinct(room: Table) -> tuple[Table, Vector]:
    """The different columns of a table, and how often each is in it."""
    times = Counter(column.tobytes() for column in np.ascontiguousarray(room.T))
    columns = np.frombuffer(b"".join(times), room.dtype).reshape(len(times), len(room))
    return columns.T, np.array([*times.values()], float)


def _is_restless(session: Session, job: Job, templates: Iterable[Template]) -> bool:
    """Whether a turn of the job may have an effect though there is no room for it, or it must be looked at for another reason."""
    if job.is_pending and not (session.limits_admission and job.has_min_resources and job.waiting_since is not None):
        return True
    if job.beyond or job.pending_best_effort or job.waiting_count or job.nominated_hypernodes:
        return True
    if job.asks_for_topology or not job.has_one_part or cut_short_at(job) is not None:
        return True
    if any(template.gates or template.beyond for template in templates):
        return True
    return any(QUEUE_GATE in task.annotations for task in job.pending.values())


class AtRest:
    """The jobs at rest in one session. A class of jobs is woken when it is looked at."""

    def __init__(self, session: Session, needs: Needs, awake: Iterable[int]) -> None:
        self.needs = needs
        self.passes_over = False  #: whether an action has passed over the jobs that are still at rest
        self._woken: list[
            tuple[int, JobClass, Callable[[JobClass], bool] | None]
        ] = []  #: since `rest_again`: their slots, and their `wakes`
        awake = set(awake)
        rests = session.policy.profiles is None and not session.observer.reads_all
        self._is_nobody: bool = not rests or len(awake) == len(needs.slots)  #: whether no job is at rest
        if self._is_nobody:
            self._awake: Mask = np.ones(len(needs.pods), bool)
            return
        self._awake = needs.restless | (needs.ready & session.gathering.goes_on)
        self._awake[list(awake)] = True
        if any(not queue.exists for queue in session.cluster.queues.values()):
            for slot, members in enumerate(needs.members):
                if members and _has_no_queue(members[0].job):
                    self._awake[slot] = True

    def __bool__(self) -> bool:
        """Whether any job is at rest."""
        return not self._is_nobody and bool(self.sleeping.any())

    def groups(self) -> list[list[Member]]:
        """The jobs that are still at rest, by class."""
        if self._is_nobody:
            return []
        return [members for members, is_awake in zip(self.needs.members, self._awake.tolist(), strict=True) if members and not is_awake]

    @property
    def waiting(self) -> int:
        """The number of their pods that wait."""
        needs = self.needs
        return 0 if self._is_nobody else sum(len(needs.members[slot]) * count for slot, count in self._counts())

    def _counts(self) -> list[tuple[int, int]]:
        slots = np.flatnonzero(self.sleeping)
        return list(zip(slots.tolist(), self.needs.waiting[slots].tolist(), strict=True))

    def awake(self) -> list[list[Member]]:
        """The jobs that are looked at from the beginning, by class."""
        members = self.needs.members
        slots = sorted(self.needs.slots.values()) if self._is_nobody else np.flatnonzero(self._awake).tolist()
        return [members[slot] for slot in slots if members[slot]]

    def wake_all(self) -> list[list[Member]]:
        """Wake all jobs, and return those that were at rest, by class."""
        groups = self.groups()
        self._awake[:] = True
        return groups

    def wake_class(self, key: Hashable) -> list[list[Member]]:
        """Wake the jobs of a class, and return them if they were at rest."""
        slot = self.needs.slots[key]
        if self._awake[slot]:
            return []
        self._awake[slot] = True
        return [self.needs.members[slot]]

    def rests(self, slot: int) -> bool:
        return not self._awake[slot]

    @property
    def sleeping(self) -> Mask:
        """A mask of the slots whose jobs are at rest."""
        mask: Mask = ~self._awake & ((self.needs.waiting > 0) | self.needs.outside)
        return mask

    def wake(self, slot: int, alike: JobClass, among: list[JobClass]) -> None:
        self._woken.append((slot, alike, alike.wakes))
        self._awake[slot], alike.wakes = True, None
        among.append(alike)

    def rest_again(self, session: Session) -> None:
        """Let those rest again that were woken in vain. If an action had passed over them, what was noted since is not reported anyway."""
        if not self._woken:
            return
        moved = {task.job for task, first in session.moves.items() if task.status != first.before}
        for slot, alike, wakes in self._woken:
            is_whole = len(alike.members) == len(self.needs.members[slot])
            if alike.passed_over and is_whole and moved.isdisjoint([member.job for member in alike.members]):
                self._awake[slot], alike.wakes = False, wakes
        self._woken.clear()
        session.alike[:] = [alike for alike in session.alike if alike.wakes is None]


def _has_no_queue(job: Job) -> bool:
    return job.queue is None or not job.queue.exists
