"""The tree of queues of the plugin capacity, with the account of each.

It begins at the queue `root`; each other queue names its parent in `spec.parent`. What a leaf holds counts for all queues above it. A queue
is sound if its path to the root is complete and no inner queue on the path has jobs of its own. Unsound queues get nothing; the other
queues are served.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pumice.api.defaults import ROOT_QUEUE
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import COMPLETED, Queue, Table
from pumice.scheduler.plugins.volcano.capacity.accounts import QueueAccount, sums_of


class QueueTree:
    """The accounts of all queues; those of inner queues have the sums of their branches. It is kept from session to session, as long as
    the queues are the same and the same inner queues have jobs of their own."""

    def __init__(self, queues: list[Queue], width: int) -> None:
        self._queues = queues
        self._sums: Table = np.zeros((len(queues), 4, width))
        self.accounts = {queue.name: QueueAccount(queue, sums) for queue, sums in zip(queues, self._sums, strict=True)}
        for account in self.accounts.values():
            account.sound = False
            account.parent = None if account.is_root else self.accounts.get(account.queue.parent)
            if account.parent is not None:
                account.parent.children.append(account)
        reached = list(_downward(self.accounts[ROOT_QUEUE])) if ROOT_QUEUE in self.accounts else []
        for account in reached:
            _descend(account)
        self._inner = [account for account in reached if not account.is_leaf]
        for root in self._inner[:1]:  # it gets the sums of its children's guarantee and deserved
            root.guarantee = np.sum([child.guarantee for child in root.children], axis=0)
            root.deserved = np.sum([child.deserved for child in root.children], axis=0)
        self._crowded = self._now_crowded()
        rows = {name: row for row, name in enumerate(self.accounts)}
        self._branches = [(rows[each.queue.name], [rows[child.queue.name] for child in each.children]) for each in reversed(self._inner)]

    @classmethod
    def of(cls, session: Session) -> QueueTree:
        """The tree of the session before, if it still holds, or a new one; with the sums of this session."""
        basis = session.policy, len(session.total), session.queues, [queue.wire for queue in session.queues]
        memory = session.memory("capacity")
        last, tree = memory.get("tree", (None, None))
        if last != basis or not session.policy.shortcuts or tree._crowded != tree._now_crowded():
            tree = cls(session.queues, len(session.total))
            memory["tree"] = basis, tree
        tree.begin()
        found: QueueTree = tree
        return found

    def _now_crowded(self) -> list[bool]:
        return [_has_jobs(account.queue) for account in self._inner]

    def begin(self) -> None:
        """Set all sums to those of the queues, and add those of the leaves to those of all above them."""
        np.copyto(self._sums, sums_of(self._queues, self._sums.shape[2]))
        for row, below in self._branches:
            self._sums[row] += self._sums[below].sum(axis=0)
        for account in self.accounts.values():
            account.begin()


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


def _has_jobs(queue: Queue) -> bool:
    return any(job.phase != COMPLETED for job in queue.jobs.values())
