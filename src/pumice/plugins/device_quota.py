"""Quotas on devices: how many of a device class, and how much of their capacity, the pods of a queue may claim.

A queue's capability names them as `deviceclass/CLASS` and `AMOUNT.deviceclass/CLASS`. What counts are the ResourceClaims of the
pods that hold a place; one that several pods of a queue share counts once. Without such a capability nothing is counted at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from pumice.api.devices import DeviceRequest, ExactRequest, ResourceClaim, SubRequest
from pumice.model import status
from pumice.model.cluster import Cluster
from pumice.model.resources import Mask, Vector
from pumice.model.task import Task
from pumice.plugins.queue_accounts import Account

CLASS = "deviceclass/"
MILLI = 1000.0


class Devices:
    """What accounts hold of devices, in a session. `columns` marks the dimensions that count them."""

    def __init__(self, cluster: Cluster, accounts: Sequence[Account], counts: bool, capacity: bool) -> None:
        """`counts`: at all; `capacity`: amounts of what devices share out, too."""
        self._cluster = cluster
        self._held: dict[str, Vector] = {}  #: by queue
        self._claims: dict[str, Counter[str]] = {}  #: by queue: how many pods use a claim
        self.columns: Mask = np.zeros(cluster.dimensions.width, bool)
        for name, column in cluster.dimensions.columns.items():
            self.columns[column] = counts and (name.startswith(CLASS) or (capacity and f".{CLASS}" in name))
        if self.columns.any():
            self._open(accounts)

    def _open(self, accounts: Sequence[Account]) -> None:
        for account in accounts:
            account.limit = np.where(self.columns, account.capability, account.limit)
            self._held[account.queue.name] = np.zeros(len(self.columns))
            self._claims[account.queue.name] = Counter()
        for account in accounts:
            tasks = (task for job in account.queue.jobs.values() for task in job.tasks.values())
            for task in tasks:
                if task.claims and task.status & status.HELD:
                    self.take(account, task)

    def held(self, account: Account) -> Vector:
        return self._held.get(account.queue.name, np.zeros(len(self.columns)))

    def take(self, account: Account, task: Task) -> None:
        """The task's claims count for the account and all above it."""
        for key, amounts in self._claimed(task).items():
            for level in account.upward:
                claims = self._claims[level.queue.name]
                claims[key] += 1
                if claims[key] == 1:
                    self._held[level.queue.name] += amounts

    def give(self, account: Account, task: Task) -> None:
        """Undo take()."""
        for key, amounts in self._claimed(task).items():
            for level in account.upward:
                claims = self._claims[level.queue.name]
                claims[key] -= 1
                if claims[key] == 0:
                    self._held[level.queue.name] -= amounts

    def fit(self, account: Account, task: Task) -> bool:
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
        """Amounts by claim; nothing where no queue has a quota on devices."""
        if not task.claims or not self.columns.any():
            return {}
        known = self._cluster.of("ResourceClaim")
        keys = dict.fromkeys(f"{task.namespace}/{name}" for _, name in task.claims)
        return {key: self._amounts(known[key]) for key in keys if key in known}

    def _amounts(self, claim: ResourceClaim) -> Vector:
        columns = self._cluster.dimensions.columns
        amounts = np.zeros(len(self.columns))
        for request in claim.spec.devices.requests or ():
            wanted = _wanted(request)
            if wanted is None:
                continue
            count = _count(claim, request, wanted)
            per_device = {CLASS + (wanted.device_class_name or ""): MILLI}
            capacity = getattr(wanted, "capacity", None)
            for name, quantity in ((capacity.requests if capacity else None) or {}).items():
                per_device[f"{name}.{CLASS}{wanted.device_class_name}"] = quantity.milli
            for name, amount in per_device.items():
                column = columns.get(name)
                if column is not None and self.columns[column]:
                    amounts[column] += amount * count
        return amounts


def _wanted(request: DeviceRequest) -> ExactRequest | SubRequest | DeviceRequest | None:
    """What is asked for; of several alternatives the first."""
    if request.exactly is not None:
        return request.exactly
    if request.first_available:
        return request.first_available[0]
    return request if request.device_class_name else None


def _count(claim: ResourceClaim, request: DeviceRequest, wanted: ExactRequest | SubRequest | DeviceRequest) -> int:
    """How many devices: those allocated, else those asked for."""
    allocation = claim.status.allocation
    if allocation is not None:
        return sum(result.request.partition("/")[0] == request.name for result in allocation.devices.results or ())
    return wanted.count or 1
