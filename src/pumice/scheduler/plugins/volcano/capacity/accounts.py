"""The accounts of the plugin capacity: what each queue holds, has promised, deserves and may hold at most, alone or in a tree.

The tree begins at the queue `root`; each other queue names its parent in `spec.parent`. What a leaf holds counts for all queues above
it. A queue is sound if its path to the root is complete and no inner queue on the path has jobs of its own. Unsound queues get nothing;
the other queues are served.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

import numpy as np

from pumice.api.devices import ResourceClaim
from pumice.api.meta import ROOT_QUEUE
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.job import COMPLETED
from pumice.scheduler.model.queue import Queue
from pumice.scheduler.model.resources import EPSILON, MEMORY, PODS, Mask, Vector, dominant_share
from pumice.scheduler.model.task import Task
from pumice.scheduler.plugins.kube.devices.by_class import CLASS, claimed


class QueueAccount:
    """The account of one queue. Its sums begin as copies of the queue's sums, and follow the placements of the session."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.parent: QueueAccount | None = None
        self.children: list[QueueAccount] = []
        self.sound = True
        self.held = queue.held.copy()
        self.inqueue = queue.inqueue.copy()
        self.elastic = queue.elastic.copy()
        self.reserved: Vector = np.zeros_like(queue.held)  #: for pods that passed the queue's gate and are not placed yet
        self.guarantee = queue.guarantee
        self.capability = queue.capability  #: the queue's own upper bound, or the parent's where it has none
        self.limit = queue.capability  #: the most that the queue may hold
        self.deserved = np.maximum(queue.deserved, queue.guarantee)
        self.deserves: Mask = queue.deserves | (queue.guarantee > 0)  #: the dimensions named in `deserved`, even with 0, or guaranteed
        self.path: tuple[QueueAccount, ...] = (self,)  #: the accounts from the root down to this one
        self.past: Vector | None = None  #: past usage; None if it does not count
        self.past_weight = 1.0
        self._rank: tuple[bool, float, bool] | None = None

    @property
    def is_leaf(self) -> bool:
        return not self.children

    @property
    def is_root(self) -> bool:
        return self.queue.name == ROOT_QUEUE

    @property
    def upward(self) -> tuple[QueueAccount, ...]:
        """The account itself and all above it, the root last."""
        return self.path[::-1]

    def above(self, levels: int) -> tuple[QueueAccount, ...]:
        """The nearest ancestors, at most `levels` of them, the parent first, without the root."""
        return self.path[-2:0:-1][:levels]

    def hold(self, more: Vector) -> None:
        """Add an amount, which may be negative, to what the account and all above it hold."""
        for level in self.path:
            level.held += more
            level._rank = None

    @property
    def deserves_anything(self) -> bool:
        return bool((np.delete(self.deserved, PODS) >= EPSILON).any())

    @property
    def share(self) -> float:
        """The queue's share: the greatest ratio of what it holds to what it deserves; 1 if it deserves nothing."""
        return self._share(self.held)

    def _share(self, amount: Vector) -> float:
        return dominant_share(amount, self.deserved) if self.deserves_anything else 1.0

    @property
    def rank(self) -> tuple[bool, float, bool]:
        """The key by which queues are served: the smaller share first; of equal ones, queues that deserve anything. With past usage, queues
        that hold less than they deserve come first, and past usage counts only within this group and within the rest: else the rest could
        get room that this group would reclaim at once."""
        if self._rank is None:
            has_its_due = self.past is not None and self.share >= 1.0
            share = self.share if self.past is None else self._share(self.held + self.past_weight * self.past)
            self._rank = has_its_due, share, not self.deserves_anything
        return self._rank

    @property
    def past_share(self) -> float:
        return self._share(self.past) if self.past is not None else 0.0

    @property
    def relevant(self) -> Mask:
        """The dimensions in which the queue can hold more than it deserves: cpu and memory if it deserves any, others if they are named."""
        relevant = self.deserves.copy()
        relevant[: MEMORY + 1] = self.deserved[: MEMORY + 1] >= EPSILON
        relevant[PODS] = False
        return relevant

    def meet(self, other: QueueAccount) -> int:
        """The depth of the deepest queue that is on both paths; -1 if there is none."""
        common = takewhile(lambda pair: pair[0] is pair[1], zip(self.path, other.path, strict=False))
        return sum(1 for _ in common) - 1

    def at_depth(self, depth: int) -> QueueAccount:
        return self.path[min(depth, len(self.path) - 1)]


def flat(queues: Iterable[Queue], total: Vector) -> dict[str, QueueAccount]:
    """The accounts of the queues that have jobs, without a tree: each queue is limited by the whole cluster."""
    known = list(queues)
    free = np.maximum(total - sum((queue.guarantee for queue in known), np.zeros_like(total)), 0.0)
    accounts = {queue.name: QueueAccount(queue) for queue in known if queue.jobs}
    for account in accounts.values():
        room = free + account.guarantee
        account.limit = np.minimum(room, account.capability)
        wanted = np.minimum(account.queue.deserved, np.where(room > 0, account.limit, np.inf))
        account.deserved = np.maximum(wanted, account.guarantee)
    return accounts


def tree(queues: Iterable[Queue]) -> dict[str, QueueAccount]:
    """The accounts of all queues; those of inner queues have the sums of their branches."""
    accounts = {queue.name: QueueAccount(queue) for queue in queues}
    for account in accounts.values():
        if not account.is_root:
            account.parent = accounts.get(account.queue.parent)
            if account.parent is not None:
                account.parent.children.append(account)
    reached = list(_downward(accounts[ROOT_QUEUE])) if ROOT_QUEUE in accounts else []
    for account in accounts.values():
        account.sound = False
    for account in reached:
        _descend(account)
    for account in reversed(reached):
        _ascend(account)
    return accounts


def _downward(root: QueueAccount) -> Iterator[QueueAccount]:
    """The account and all below it, parents before children."""
    waiting = [root]
    while waiting:
        account = waiting.pop()
        yield account
        waiting += account.children


def _descend(account: QueueAccount) -> None:
    """Set whether the account is sound, and the paths and bounds of its children."""
    parent = account.parent
    account.sound = (parent is None or parent.sound) and (account.is_leaf or not _has_jobs(account.queue))
    if account.is_leaf:
        return
    guaranteed = sum((child.guarantee for child in account.children), np.zeros_like(account.guarantee))
    free = np.maximum(account.limit - guaranteed, 0.0)
    for child in account.children:
        child.path = (*account.path, child)
        child.capability = np.where(np.isinf(child.capability), account.capability, child.capability)
        child.limit = np.minimum(free + child.guarantee, child.capability)


def _ascend(account: QueueAccount) -> None:
    """Add what the account holds and has promised to its parent's sums. The root gets the sums of its children's guarantee and deserved."""
    parent = account.parent
    if account.is_root and account.children:
        account.guarantee = np.sum([child.guarantee for child in account.children], axis=0)
        account.deserved = np.sum([child.deserved for child in account.children], axis=0)
    if parent is not None:
        parent.held += account.held
        parent.inqueue += account.inqueue
        parent.elastic += account.elastic


def _has_jobs(queue: Queue) -> bool:
    return any(job.phase != COMPLETED for job in queue.jobs.values())


# Quotas on devices: how many devices of a class, and how much of their capacity, the pods of a queue may claim.
#
# A queue's capability names these quotas as `deviceclass/CLASS` and `AMOUNT.deviceclass/CLASS`. The ResourceClaims of placed pods count;
# a claim that several pods of a queue share counts once. If no queue has such a capability, nothing is counted.


class Devices:
    """The devices that accounts hold, in a session. `columns` marks the dimensions that count devices."""

    def __init__(self, cluster: Cluster, accounts: Sequence[QueueAccount], counts: bool, capacity: bool) -> None:
        """`counts`: whether devices are counted at all; `capacity`: whether amounts of their capacity are counted too."""
        self._cluster = cluster
        self._held: dict[str, Vector] = {}  #: by queue name
        self._claims: dict[str, Counter[str]] = {}  #: by queue name: the number of pods that use each claim
        self.columns: Mask = np.zeros(cluster.dimensions.width, bool)
        for name, column in cluster.dimensions.columns.items():
            self.columns[column] = counts and (name.startswith(CLASS) or (capacity and f".{CLASS}" in name))
        if self.columns.any():
            self._open(accounts)

    def _open(self, accounts: Sequence[QueueAccount]) -> None:
        for account in accounts:
            account.limit = np.where(self.columns, account.capability, account.limit)
            self._held[account.queue.name] = np.zeros(len(self.columns))
            self._claims[account.queue.name] = Counter()
        for account in accounts:
            tasks = (task for job in account.queue.jobs.values() for task in job.tasks.values())
            for task in tasks:
                if task.claims and task.status & status.HELD:
                    self.take(account, task)

    def held(self, account: QueueAccount) -> Vector:
        return self._held.get(account.queue.name, np.zeros(len(self.columns)))

    def take(self, account: QueueAccount, task: Task) -> None:
        """Count the task's claims for the account and all above it."""
        for key, amounts in self._claimed(task).items():
            for level in account.upward:
                claims = self._claims[level.queue.name]
                claims[key] += 1
                if claims[key] == 1:
                    self._held[level.queue.name] += amounts

    def give(self, account: QueueAccount, task: Task) -> None:
        """Undo take()."""
        for key, amounts in self._claimed(task).items():
            for level in account.upward:
                claims = self._claims[level.queue.name]
                claims[key] -= 1
                if claims[key] == 0:
                    self._held[level.queue.name] -= amounts

    def fit(self, account: QueueAccount, task: Task) -> bool:
        """Whether the account, and all above it, may hold the task's claims too."""
        claimed = self._claimed(task)
        for level in account.upward if claimed else ():
            fresh = [amounts for key, amounts in claimed.items() if not self._claims[level.queue.name][key]]
            more = np.sum(fresh, axis=0) if fresh else np.zeros(len(self.columns))
            asked = more > 0
            if (self._held[level.queue.name][asked] + more[asked] > level.limit[asked]).any():
                return False
        return True

    def _claimed(self, task: Task) -> dict[str, Vector]:
        """The amounts of devices that the task claims, by the key of each ResourceClaim; empty if no queue has a quota on devices."""
        if not task.claims or not self.columns.any():
            return {}
        known = self._cluster.of("ResourceClaim")
        keys = dict.fromkeys(f"{task.namespace}/{name}" for _, name in task.claims)
        return {key: self._amounts(known[key]) for key in keys if key in known}

    def _amounts(self, claim: ResourceClaim) -> Vector:
        amounts = np.zeros(len(self.columns))
        for name, amount in claimed(claim).items():
            column = self._cluster.dimensions.columns.get(name)
            if column is not None and self.columns[column]:
                amounts[column] = amount
        return amounts
