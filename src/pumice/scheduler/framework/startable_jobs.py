"""Which jobs at rest an action could help now: an upper bound by the room on nodes and by what queues may still be given.

All jobs at rest are compared at once. An action asks for those of a queue when it is the queue's turn (`of`). At a job's own turn it is
asked once more: meanwhile others may have taken the room. While an action only places pods, room does not grow; what it evicts makes no
more room than `evictable` has. So a job that is left out would be refused at its turn as well.
"""

from collections.abc import Callable, Collection
from functools import cached_property, partial

import numpy as np

from pumice.scheduler.framework.job_classes import JobClass
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Job, Mask, NDArray, Queue, Rows, Table, Vector

QUICK = 2_000_000  #: so many comparisons of a job with a node cost less than to try a few jobs


class StartableJobs:
    """The jobs at rest that an action, or a part of one, might help.

    `may`: whether a job may have a turn. `evictable`: [r, node], what may be evicted at most; None for nothing. `hook`: the hook by which
    plugins let tasks go: a job for which they let nobody go has only the room that is left. `frees_queues`: whether
    evictions may make room in the queue for which they are made. `one_by_one`: whether a pod gets its place even if its gang has none.
    `takes_room`: whether a job has its turn only if its queue may take room from others for the pods that it needs; `takes_for_all`: for
    all its pods.
    """

    def __init__(
        self,
        session: Session,
        may: Callable[[Job], bool],
        *,
        evictable: Table | None = None,
        hook: str = "",
        frees_queues: bool = False,
        one_by_one: bool = False,
        takes_room: bool = False,
        takes_for_all: bool = False,
    ) -> None:
        self._is_nobody = not session.resting
        if self._is_nobody:
            return
        self._session = session
        self._resting = session.resting
        self._needs = needs = session.resting.needs
        self._may = may
        self._evictable = evictable
        self._hook = hook
        self._left: tuple[int, Mask] = (-1, np.zeros(0, bool))  #: which slots have room without evictions, and the session's changes then
        self._one_by_one = one_by_one
        self._has_all_turns = session.orders.queues_need_comparing
        knows_limits = session.plugins.are_trusted and bool(session.plugins.flat["queue_room"]) and not self._has_all_turns
        self._limits_queues = knows_limits and not (frees_queues and evictable is not None)
        one = np.ones_like(needs.least)
        self._least = one if one_by_one else np.maximum(needs.least, 1)
        knows_takers = (takes_room or takes_for_all) and session.plugins.are_trusted and bool(session.plugins.flat["preemptive_room"])
        self._least_to_take = (needs.taking if takes_for_all else self._least) if knows_takers else None
        self._hopeful: Mask = self._resting.sleeping & (needs.pods >= self._least) & ~needs.outside
        self._were_passed_over = self._resting.passes_over
        self._resting.passes_over = True
        for slot in np.flatnonzero(self._hopeful & needs.holds).tolist():  # evictions could change the answer about these
            self._hopeful[slot] = may(needs.members[slot][0].job)
        self._turn: Rows = np.flatnonzero(self._hopeful)  #: the slots whose turn it is
        self._seen = self._tried = -1  #: the session's changes when slots were compared, and when a job was last woken

    def queues(self) -> dict[str, Queue]:
        """The queues of these jobs, by name."""
        if self._is_nobody:
            return {}
        self._compare(self._limits_queues and self._evictable is None)
        members = self._needs.members
        queues = (members[slot][0].job.queue for slot in np.flatnonzero(self._hopeful).tolist())
        return {queue.name: queue for queue in queues if queue is not None}

    def of(self, queue: Queue | None = None) -> list[JobClass]:
        """The jobs of a queue whose turn it is, or of all queues, in their groups."""
        if self._is_nobody:
            return []
        slots = np.flatnonzero(self._hopeful & self._resting.sleeping)
        if queue is not None:
            its = self._slots_by_queue.get(queue.name)
            if its is None:
                return []
            slots = its[(self._hopeful & self._resting.sleeping)[its]]
        self._turn, self._tried = slots, -1
        self._compare(self._limits_queues)
        return [self._group(slot) for slot in slots[self._hopeful[slots]].tolist()]

    @cached_property
    def _slots_by_queue(self) -> dict[str, Rows]:
        """The slots of the jobs that might be helped when the first queue had its turn, by queue: later there are no others."""
        found, members = dict[str, list[int]](), self._needs.members
        for slot in np.flatnonzero(self._hopeful & self._resting.sleeping).tolist():
            queue = members[slot][0].job.queue
            assert queue is not None
            found.setdefault(queue.name, []).append(slot)
        return {name: np.array(slots) for name, slots in found.items()}

    def _group(self, slot: int) -> JobClass:
        return JobClass(self._needs.members[slot].copy(), passed_over=self._were_passed_over, wakes=partial(self._wakes, slot))

    # -- where queues are compared, jobs without hope have their turns too, since each turn may change whose is next

    def by_queue(self, awake: Collection[str]) -> dict[str, list[int]]:
        """The slots of all jobs at rest, without those that come before the first that has a turn, by queues with such a job.

        `awake`: the queues of the jobs that are not at rest. If jobs of only one queue might be helped, it does not matter whose turn is
        next: then no other queue is named.
        """
        hopeful = self.queues()
        is_alone = len({*awake, *hopeful}) <= 1
        if self._is_nobody or (is_alone and not hopeful):
            return {}
        members, found, may = self._needs.members, dict[str, list[int]](), self._may
        for slot in np.flatnonzero(self._resting.sleeping & ~self._needs.outside).tolist():
            job = members[slot][0].job
            assert job.queue is not None
            if is_alone and job.queue.name not in hopeful:
                continue
            if (its := found.get(job.queue.name)) is not None:
                its.append(slot)
            elif may(job):
                found[job.queue.name] = [slot]
        return found

    def with_turns(self, slots: list[int]) -> list[JobClass]:
        """Those of these jobs that have a turn."""
        return [self._group(slot) for slot in slots if self._may(self._needs.members[slot][0].job)]

    def among(self, awake: list[str]) -> list[str]:
        """The uids of those of these jobs that might find room now, or whose turn might have another effect. They are not at rest."""
        if self._is_nobody:
            return awake
        session, needs = self._session, self._needs
        slots = np.array([needs.reread(session, session.cluster.jobs[uid]) for uid in awake], int)
        self._least[slots], self._turn, self._hopeful[slots] = np.maximum(needs.least[slots], 1), slots, True
        self._compare(with_queues=False)
        found = self._hopeful[slots] | needs.restless[slots] | (needs.ready[slots] & session.gathering.goes_on)
        return [uid for uid, is_hopeful in zip(awake, found.tolist(), strict=True) if is_hopeful]

    def __bool__(self) -> bool:
        """Whether any job might still be helped."""
        if self._is_nobody:
            return False
        if self._seen != self._session.changes:
            self._compare(self._limits_queues)
        return bool((self._hopeful & self._resting.sleeping).any())

    def _wakes(self, slot: int, alike: JobClass) -> bool:
        """Whether there might still be room for such jobs. If so they are woken. After a job that found no room all are compared anew."""
        changes = self._session.changes
        if self._seen != changes and (self._tried == changes or self._size() <= QUICK // 10):
            self._compare(self._limits_queues)
        if not self._hopeful[slot] or not self._resting.rests(slot):
            return False
        if self._hook and self._evictable is not None and not self._has_room_left(slot) and self._evicts_nobody(slot, alike.first):
            return False
        if not self._needs.holds[slot] and not self._may(alike.first):
            return False
        self._tried = changes
        self._resting.wake(slot, alike, self._session.alike)
        return True

    def _evicts_nobody(self, slot: int, job: Job) -> bool:
        """Whether nobody would be evicted for the job now."""
        if self._one_by_one and not self._needs.holds[slot]:
            return True
        by_template = {task.template: task for task in job.pending.values()}
        spared = (self._session.evictable.spared_rows(self._hook, task) for task in by_template.values())
        return all(rows if isinstance(rows, bool) else rows.all() for rows in spared)

    def _has_room_left(self, slot: int) -> bool:
        """Whether there might be room for such jobs without evictions. All that might be helped are compared at once."""
        if self._left[0] != self._session.changes:
            nodes, slots = self._session.nodes, np.flatnonzero(self._hopeful)
            rows = np.flatnonzero(nodes.alive & self._needs.room_for_any(slots, nodes.future_idle))
            found = self._hopeful.copy()
            if len(slots) * len(rows) <= QUICK:
                found[slots] = self._needs.enough(slots, nodes.future_idle[:, rows], self._least[slots])
            self._left = self._session.changes, found
        return bool(self._left[1][slot])

    # -- comparing

    def _size(self) -> int:
        return int(np.count_nonzero(self._hopeful[self._turn])) * len(self._rows)

    def _compare(self, with_queues: bool) -> None:
        """Compare what the hopeful jobs whose turn it is need with the room on nodes, and with that in their queues."""
        needs, nodes = self._needs, self._session.nodes
        slots = self._turn[self._hopeful[self._turn]]
        if self._one_by_one:  # what a job holds itself may be evicted for the rest of it
            slots = slots[~needs.holds[slots]]
        self._seen = self._session.changes
        room = nodes.future_idle if self._evictable is None else nodes.future_idle + self._evictable
        fits = needs.below(slots, room[:, nodes.alive].max(axis=1, initial=0.0))
        self._hopeful[slots[~fits]] = False
        slots = slots[fits]
        self._rows = np.flatnonzero(nodes.alive & needs.room_for_any(slots, room))
        if self._size() <= QUICK:
            self._hopeful[slots] = self._find_room(slots, room[:, self._rows])
        if with_queues:
            self._compare_with_queues(slots[self._hopeful[slots]])

    def _find_room(self, slots: Rows, room: Table) -> Mask:
        return self._needs.enough(slots, room, self._least[slots])

    def _compare_with_queues(self, slots: Rows) -> None:
        by_queue: dict[Queue, list[int]] = {}
        for slot in slots.tolist():
            queue = self._needs.members[slot][0].job.queue
            assert queue is not None
            by_queue.setdefault(queue, []).append(slot)
        for queue, its in by_queue.items():
            some = np.array(its)
            self._hopeful[some] = self._has_room(some, self._session.queue_room(queue), self._least)
            if self._least_to_take is not None:
                self._hopeful[some] &= self._has_room(some, self._session.preemptive_room(queue), self._least_to_take)

    def _has_room(self, slots: Rows, room: Vector | None, least: NDArray[np.int32]) -> Mask:
        """Which of these slots have room for `least` pods in their queue."""
        assert room is not None
        return self._needs.enough(slots, room[:, None], least[slots])
