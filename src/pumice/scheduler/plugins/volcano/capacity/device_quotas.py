"""Quotas on devices: how many devices of a class, and how much of their capacity, the pods of a queue may claim.

A queue's capability names these quotas as `deviceclass/CLASS` and `AMOUNT.deviceclass/CLASS`. The ResourceClaims of placed pods count;
a claim that several pods of a queue share counts once. If no queue has such a capability, nothing is counted.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from pumice.api.devices import ResourceClaim
from pumice.scheduler.model import Cluster, Mask, Task, Vector, status
from pumice.scheduler.plugins.kube.devices.device_class_usage import CLASS, claimed
from pumice.scheduler.plugins.volcano.capacity.accounts import QueueAccount


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
