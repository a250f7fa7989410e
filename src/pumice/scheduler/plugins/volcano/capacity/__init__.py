"""capacity: every queue says what it deserves; what others leave idle it may borrow up to its limit, until it is reclaimed.

`spec.deserved` is a queue's own, `spec.guarantee` is kept free for it, `spec.capability` is its upper bound. With the switch
enableHierarchy queues form a tree by `spec.parent`: limits of all ancestors bind, and shares are compared where two paths part.
Shares of inner queues are live, and only the branch of a misplaced job waits (Volcano keeps the shares of the session's
beginning, and stops the whole cluster). With usage.halfLife what queues used before counts in their order: what is lent goes first to who
had less of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce
from math import inf
from typing import Any

import numpy as np
from msgspec import field

from pumice.api.annotations import QUEUE_GATE
from pumice.scheduler.framework.hook_answers import Vote
from pumice.scheduler.framework.moved_jobs import MovedJobs
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.queue_limits import asked_for, lacking, refuse, refuse_closed, room_within, shortfall, within
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import EPSILON, Job, Mask, Queue, Task, Vector
from pumice.scheduler.model.past_shares import PastUsageArgs, format_amount, past_shares
from pumice.scheduler.model.past_usage import queue_of
from pumice.scheduler.model.resources import fits
from pumice.scheduler.plugins.volcano.capacity.accounts import QueueAccount, flat
from pumice.scheduler.plugins.volcano.capacity.device_quotas import Devices
from pumice.scheduler.plugins.volcano.capacity.hierarchy import QueueTree

LEAST = 1.0  #: the least that a pod can request of what it requests at all


class CapacityArgs(PastUsageArgs):
    devices: bool = field(name="capacity.DynamicResourceAllocationEnable", default=True)
    device_capacity: bool = field(name="capacity.DRAConsumableCapacityEnable", default=False)
    reclaim_levels: int = field(name="ancestorReclaimLevel", default=0)


class Capacity(Plugin):
    name = "capacity"
    reads_only_state = True
    compares_by_state = True
    Args = CapacityArgs
    hierarchy_only = frozenset({"compare_queues", "victim_queue_order"})
    sees_refused_victims = True  # as in Volcano, where the plugin always sees all candidates, in the same order

    def open(self, session: Session) -> None:
        super().open(session)
        self._accounts = QueueTree.of(session).accounts if self.hierarchy else flat(session.queues, session.total)
        self._devices = Devices(session.cluster, list(self._accounts.values()), self.args.devices, self.args.device_capacity)
        self._past = past_shares(session.cluster, self.args, queue_of, session.now)
        if self._past:
            for account in self._accounts.values():
                own = self._past.mean(f"queue {account.queue.name}")
                for level in account.path:
                    level.past, level.past_weight = own if level.past is None else level.past + own, self._past.weight
        self._owing: set[QueueAccount] = set()  #: those that might lose tasks when they were last asked about
        self._moved = MovedJobs(session.cluster)
        self._levels = max(self.args.reclaim_levels, 0) if self.hierarchy else 0

    def _account(self, queue: Queue | None) -> QueueAccount | None:
        """The account of a queue; None if the queue's jobs may not be placed."""
        account = self._accounts.get(queue.name) if queue is not None else None
        return account if account is not None and account.sound and account.is_leaf else None

    def entitlements(self) -> dict[str, tuple[Vector, Vector]]:
        """What each queue deserves, and the most that it may hold, by queue name. For metrics and for answers about quota."""
        return {name: (own.deserved, own.limit) for name, own in self._accounts.items()}

    # -- which queue is next

    def queue_order(self, queue: Queue) -> tuple[float, ...]:
        account = self._accounts.get(queue.name)
        return (0.0,) if self.hierarchy or account is None else (-queue.priority, *account.rank)

    def compare_queues(self, left: Queue, right: Queue) -> int:
        """Compare two queues by priority; then leaf queues first; then by the ranks of the two branches that begin where the paths part."""
        one, other = self._accounts[left.name], self._accounts[right.name]
        if left.priority != right.priority:
            return right.priority - left.priority
        if one.is_leaf != other.is_leaf:
            return -1 if one.is_leaf else 1
        branch, rival = _parting(one, other)
        mine, theirs = branch.rank, rival.rank
        return (mine > theirs) - (mine < theirs)

    def next_turn(self, session: Session) -> float:
        return self._past.next_turn if self._past else inf

    def why_before(self, first: Queue, second: Queue) -> str:
        """How past usage explains that the first queue goes before the second; empty if it does not."""
        if self._past is None or first.priority != second.priority:
            return ""
        one, other = _parting(self._accounts[first.name], self._accounts[second.name])
        if one.rank[0] != other.rank[0] or one.share < other.share:
            return ""
        return format_amount(f"queue {one.queue.name}", one.past_share, f"queue {other.queue.name}", other.past_share, "what it deserves")

    def victim_queue_order(self, left: Queue, right: Queue, preemptor_queue: Queue) -> int:
        """Compare queues as victims: the queues nearest to the preemptor's queue in the tree lose tasks first."""
        own = self._accounts[preemptor_queue.name]
        return self._accounts[right.name].meet(own) - self._accounts[left.name].meet(own)

    # -- which queue may have more

    def job_enqueueable(self, job: Job) -> Vote:
        account = self._account(job.queue)
        if account is None:
            assert job.queue is not None
            self.session.refuse_admission(
                job, f"queue {job.queue.name} is not ready: jobs belong in leaves of the tree of queues below root"
            )
            return Vote.REJECT
        if not account.queue.open:
            return refuse_closed(self.session, job, account.queue)
        if not job.has_min_resources:
            return Vote.PERMIT
        for level in account.upward:
            claimed = self._claimed(level)
            if short := lacking(job, claimed, level.limit):
                return refuse(self.session, job, short, level.queue.name, claimed, level.limit)
        return Vote.PERMIT

    def _claimed(self, level: QueueAccount) -> Vector:
        """What jobs hold or were promised."""
        devices = np.maximum(self._devices.held(level), level.inqueue)
        claimed: Vector = np.where(self._devices.columns, devices, level.held + level.inqueue - level.elastic)
        return claimed

    def admission_room(self, queue: Queue) -> Vector:
        account = self._account(queue)
        if account is None or not queue.open:
            return np.full_like(queue.held, -np.inf)
        return reduce(np.minimum, [level.limit - self._claimed(level) for level in account.upward])

    def job_enqueued(self, job: Job) -> None:
        account = self._account(job.queue)
        if account is not None and job.has_min_resources:
            promised = job.without_gated(job.min_resources)
            for level in account.upward:
                level.inqueue += promised

    def allocatable(self, queue: Queue, task: Task) -> bool:
        account = self._account(queue)
        if account is None or not queue.serving:
            return False
        own = task.template.request if task.uid in self._let_in else 0.0
        if not all(within(task.template.request, level.held + level.reserved - own, level.limit) for level in account.upward):
            return False
        return self._devices.fit(account, task)

    def queue_room(self, queue: Queue) -> Vector:
        account = self._account(queue)
        if account is None or not queue.serving:
            return np.full_like(queue.held, -np.inf)
        return reduce(np.minimum, [room_within(level.held + level.reserved, level.limit) for level in account.upward])

    def explain_not_allocatable(self, queue: Queue, task: Task) -> str:
        account = self._account(queue)
        if account is None or not queue.serving:
            return f"queue {queue.name} is {'not ready' if queue.serving else queue.state or 'not open'}"
        texts = (shortfall(self.session, level.queue.name, task, level.held, level.limit, "it may hold") for level in account.upward)
        devices = "" if self._devices.fit(account, task) else f"queue {queue.name} may claim no more devices"
        return next((text for text in texts if text), devices)

    @cached_property
    def _let_in(self) -> set[str]:
        """The uids of pods that passed the gate of their queue. Until a pod is placed, the amounts that it requests are reserved."""
        session = self.session
        groups = (alike.members for alike in session.alike)  # jobs with such pods are never at rest
        grouped = session.job_classes is not None
        jobs = (member.job for members in groups for member in members) if grouped else session.cluster.waiting.values()
        found = [
            task
            for job in jobs
            for task in job.pending.values()
            if QUEUE_GATE in task.annotations and not task.gated and self._account(_queue_of(task))
        ]
        for task in found:
            self._reserve(task, 1.0)
        return {task.uid for task in found}

    def on_gate_removed(self, task: Task) -> None:
        self._let_in.add(task.uid)
        self._reserve(task, 1.0)

    def _reserve(self, task: Task, sign: float) -> None:
        for level in self._holder(task).upward:
            level.reserved += task.template.request * sign

    def on_allocate(self, task: Task) -> None:
        account = self._holder(task)
        if task.uid in self._let_in:
            self._reserve(task, -1.0)
        self._devices.take(account, task)
        account.hold(task.template.request)

    def on_deallocate(self, task: Task) -> None:
        account = self._holder(task)
        if task.uid in self._let_in:
            self._reserve(task, 1.0)
        self._devices.give(account, task)
        account.hold(-task.template.request)

    def _holder(self, task: Task) -> QueueAccount:
        assert task.job is not None and task.job.queue is not None
        return self._accounts[task.job.queue.name]

    # -- which queue may reclaim, and from which queues

    def preemptive(self, queue: Queue, tasks: Sequence[Task]) -> bool:
        """Whether the queue stays within its limit with these tasks, and it or one of its nearest ancestors (as many as
        `ancestorReclaimLevel`) stays, in at least one requested dimension, within what it deserves."""
        account = self._account(queue)
        request: Vector = np.sum([task.template.request for task in tasks], axis=0)
        if account is None or not queue.open or not within(request, account.held, account.limit):
            return False
        asked = asked_for(request)
        return self._lacks(account, asked, request[asked])

    def _lacks(self, account: QueueAccount, asked: Mask, more: Vector | float) -> bool:
        """Whether the queue or one of its nearest ancestors holds, with more, less than it deserves in one of these dimensions."""
        levels = account, *account.above(self._levels)
        return any((level.held[asked] + more < level.deserved[asked] + EPSILON).any() for level in levels)

    def preemptive_room(self, queue: Queue) -> Vector:
        account = self._account(queue)
        asked = asked_for(queue.pending)
        if account is None or not queue.open or not self._lacks(account, asked, LEAST):
            return np.full_like(queue.held, -np.inf)
        return room_within(account.held, account.limit)

    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> list[Task] | Vote:
        account = self._account(_queue_of(reclaimer))
        if account is None:
            return Vote.REJECT
        asked = asked_for(reclaimer.template.request)
        books = Books(self._accounts)
        victims = []
        for task in candidates:
            owner = self._account(_queue_of(task))
            if owner is None or not (asked & asked_for(task.template.request)).any():
                continue
            if books.keeps_guarantee(owner, task) and self._may_lose(books, owner, task, account, reclaimer):
                books.give(owner, task)
                victims.append(task)
        return victims

    def spares(self, evictor: Task, task: Task) -> bool:
        owner = self._account(_queue_of(task))
        return owner is None or not owner.may_lose(task.template)

    def spares_rows(self, evictor: Task) -> bool:
        """Whether no queue holds more than it deserves, or anything of which it deserves nothing."""
        for owner in map(self._account, {job.queue for job in self._moved.now()}):
            if owner is not None:
                (self._owing.add if owner.may_lose_any else self._owing.discard)(owner)
        return not self._owing

    def eviction_cache_key(self, evictor: Task) -> bytes:
        return asked_for(evictor.template.request).tobytes()

    def _may_lose(self, books: Books, owner: QueueAccount, task: Task, taker: QueueAccount, reclaimer: Task) -> bool:
        """Whether the task is beyond what its owner deserves, and beyond what each of the owner's nearest ancestors deserves. An ancestor
        at the same distance above the taker is left out."""
        if books.undeserved(owner, task):
            kin = set(owner.above(self._levels)) & set(taker.above(self._levels))
            if kin and not (asked_for(reclaimer.template.request) & (taker.deserved >= EPSILON)).any():
                return False
        elif not books.above_deserved(owner, task):
            return False
        theirs = taker.above(self._levels)
        for level, ancestor in enumerate(owner.above(self._levels)):
            if level < len(theirs) and theirs[level] is ancestor:
                continue
            if not (books.undeserved(ancestor, task) or books.above_deserved(ancestor, task)):
                return False
        return True

    def unified_evictable(self, context: Any, candidates: list[Task]) -> list[Task]:
        """The tasks that a gang may evict: in its own queue all candidates, in other queues the tasks beyond what their queue deserves."""
        if context.kind != "gangreclaim":
            return candidates
        books = Books(self._accounts)
        victims = []
        for task in candidates:
            owner = self._account(_queue_of(task))
            if owner is None or not books.keeps_guarantee(owner, task):
                continue
            if books.undeserved(owner, task) or books.above_deserved(owner, task):
                books.give(owner, task)
                victims.append(task)
        return victims


def _parting(one: QueueAccount, other: QueueAccount) -> tuple[QueueAccount, QueueAccount]:
    """The two branches, one of each queue, that begin where the paths of the queues part."""
    if one.parent is other.parent:
        return one, other
    depth = one.meet(other) + 1
    return one.at_depth(depth), other.at_depth(depth)


def _queue_of(task: Task) -> Queue | None:
    return task.job.queue if task.job is not None else None


class Books:
    """The amounts that queues would hold without the victims chosen so far."""

    def __init__(self, accounts: dict[str, QueueAccount]) -> None:
        self._held: dict[str, Vector] = {}

    def _of(self, account: QueueAccount) -> Vector:
        return self._held.get(account.queue.name, account.held)

    def give(self, account: QueueAccount, task: Task) -> None:
        for level in account.upward:
            self._held[level.queue.name] = self._of(level) - task.template.request

    def keeps_guarantee(self, account: QueueAccount, task: Task) -> bool:
        return fits(account.guarantee, self._of(account) - task.template.request)

    def undeserved(self, account: QueueAccount, task: Task) -> bool:
        return not (asked_for(task.template.request) & (account.deserved >= EPSILON)).any()

    def above_deserved(self, account: QueueAccount, task: Task) -> bool:
        """Whether the queue holds more than it deserves of some resource that the task requests."""
        used = asked_for(task.template.request) & account.relevant
        return bool((self._of(account)[used] > account.deserved[used]).any())
