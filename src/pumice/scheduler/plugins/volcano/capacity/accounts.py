"""The accounts of the plugin capacity: what each queue holds, has promised, deserves and may hold at most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from operator import is_

import numpy as np

from pumice.api.defaults import ROOT_QUEUE
from pumice.scheduler.framework.queue_limits import asked_for
from pumice.scheduler.model import EPSILON, MEMORY, PODS, Mask, Queue, Table, Template, Vector, dominant_share
from pumice.scheduler.model.resources import as_vectors


class QueueAccount:
    """The account of one queue. Its sums begin as those of the queue, and follow the placements of the session."""

    def __init__(self, queue: Queue, sums: Table) -> None:
        """`sums`: rows of a table that is set when a session begins."""
        self.queue = queue
        self.parent: QueueAccount | None = None
        self.children: list[QueueAccount] = []
        self.sound = True
        self.held: Vector = sums[0]
        self.inqueue: Vector = sums[1]
        self.elastic: Vector = sums[2]
        self.reserved: Vector = sums[3]  #: for pods that passed the queue's gate and are not placed yet
        self.guarantee = queue.guarantee
        self.capability = queue.capability  #: the queue's own upper bound, or the parent's where it has none
        self.limit = queue.capability  #: the most that the queue may hold
        self.deserved = np.maximum(queue.deserved, queue.guarantee)
        self.deserves: Mask = queue.deserves | (queue.guarantee > 0)  #: the dimensions named in `deserved`, even with 0, or guaranteed
        self.path: tuple[QueueAccount, ...] = (self,)  #: the accounts from the root down to this one
        self.past: Vector | None = None  #: past usage; None if it does not count
        self.past_weight = 1.0
        self._rank: tuple[bool, float, bool] | None = None
        self._losing: dict[Template, bool] = {}

    @cached_property
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
            level._losing.clear()

    def begin(self) -> None:
        """Forget what the session before has found."""
        self.past = self._rank = None
        self._losing.clear()

    @cached_property
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

    def may_lose(self, template: Template) -> bool:
        """Whether the queue may lose tasks of this template now: it holds more than it deserves of a resource that they request, or it
        deserves none of these resources."""
        known = self._losing.get(template)
        if known is None:
            asked = asked_for(template.request)
            used = asked & self.relevant
            beyond = (self.held[used] > self.deserved[used]).any()
            known = self._losing[template] = bool(beyond or not (asked & (self.deserved >= EPSILON)).any())
        return known

    @property
    def may_lose_any(self) -> bool:
        """Whether the queue might lose any task: it holds more than it deserves of a resource, or anything of which it deserves nothing."""
        relevant, held = self.relevant, self.held > 0
        held[PODS] = False
        return bool((self.held[relevant] > self.deserved[relevant]).any() or (held & (self.deserved < EPSILON)).any())

    def meet(self, other: QueueAccount) -> int:
        """The depth of the deepest queue that is on both paths; -1 if there is none."""
        return sum(map(is_, self.path, other.path)) - 1

    def at_depth(self, depth: int) -> QueueAccount:
        return self.path[min(depth, len(self.path) - 1)]


def sums_of(queues: Sequence[Queue], width: int) -> Table:
    """The sums with which the accounts of these queues begin: [queue, 4, r]."""
    found = np.zeros((len(queues), 4, width))
    if queues:
        for number, kind in enumerate(("holding", "reserved", "surplus")):
            found[:, number] = as_vectors(getattr(queue, kind) for queue in queues)
    return found


def flat(queues: Iterable[Queue], total: Vector) -> dict[str, QueueAccount]:
    """The accounts of the queues that have jobs, without a tree: each queue is limited by the whole cluster."""
    known = list(queues)
    free = np.maximum(total - sum((queue.guarantee for queue in known), np.zeros_like(total)), 0.0)
    used = [queue for queue in known if queue.jobs]
    accounts = {queue.name: QueueAccount(queue, sums) for queue, sums in zip(used, sums_of(used, len(total)), strict=True)}
    for account in accounts.values():
        room = free + account.guarantee
        account.limit = np.minimum(room, account.capability)
        bound = room > 0  # upstream's sums have no entry for other resources of which nothing is left
        bound[: MEMORY + 1] = True
        wanted = np.minimum(account.queue.deserved, np.where(bound, account.limit, np.inf))
        account.deserved = np.maximum(wanted, account.guarantee)
    return accounts
