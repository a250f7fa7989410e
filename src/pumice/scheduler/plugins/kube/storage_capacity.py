"""Whether the storage behind a node has room for a volume that is yet to be provisioned, as far as its driver publishes that.

A driver that publishes it (CSIDriver, `storageCapacity`) describes its storage in CSIStorageCapacity objects: the class, the nodes, how
much is free, how large one volume may be. No object for a node means no room there. Nothing is subtracted here: what a driver has
provisioned shows when it publishes again.
"""

from collections.abc import Callable

import numpy as np

from pumice.api.storage import CSIDriver, PersistentVolumeClaim
from pumice.scheduler.engine import Scores
from pumice.scheduler.model import Cluster, Mask
from pumice.scheduler.plugins.kube.volume_matching import class_of, size_of


def room(cluster: Cluster, claim: PersistentVolumeClaim) -> Scores | None:
    """The free bytes of the storage that has room for a claim's volume, by row; NaN where none has. None if no capacity is published."""
    storage, size, table = class_of(cluster, claim), size_of(claim), cluster.nodes
    driver: CSIDriver | None = cluster.of("CSIDriver").get(storage.provisioner) if storage is not None else None
    if storage is None or driver is None or not driver.spec.storage_capacity or not size:
        return None
    free = np.full(len(table), np.nan)
    for published in cluster.of("CSIStorageCapacity").values():
        if published.node_topology is not None and published.storage_class_name == storage.metadata.name and published.largest >= size:
            here = table.matching(published.node_topology.requirements) & np.isnan(free)
            free[here] = published.capacity.whole if published.capacity is not None else 0
    return free


def roomy(cluster: Cluster, claim: PersistentVolumeClaim) -> Mask:
    """The rows whose storage has room for a claim's volume, or whose storage publishes no capacity."""
    free = room(cluster, claim)
    return np.ones(len(cluster.nodes), bool) if free is None else ~np.isnan(free)


class UsedStorage:
    """What claims request of storage and how much that has in all, by class and row."""

    def __init__(self, rows: int) -> None:
        self.rows = np.zeros(rows, bool)  #: where there is any
        self._classes: dict[str, tuple[Scores, Scores, Mask]] = {}

    def _of(self, name: str | None, here: Mask) -> tuple[Scores, Scores]:
        empty = np.zeros(len(here)), np.zeros(len(here)), np.zeros(len(here), bool)
        requested, capacity, there = self._classes.setdefault(name or "", empty)
        there |= here
        self.rows |= here
        return requested, capacity

    def add(self, name: str | None, here: Mask, request: int, size: int) -> None:
        """A volume of its own."""
        requested, capacity = self._of(name, here)
        requested[here] += request
        capacity[here] += size

    def set(self, name: str, here: Mask, request: int, free: Scores) -> None:
        """A part of what is free in common."""
        requested, capacity = self._of(name, here)
        requested[here] += request
        capacity[here] = free[here]

    def scores(self, rate: Callable[[Scores, Scores], Scores]) -> Scores:
        total, count = np.zeros(len(self.rows)), np.zeros(len(self.rows))
        for requested, capacity, there in self._classes.values():
            has = capacity > 0
            total += np.where(there, rate(np.where(has, requested, 2.0), np.where(has, capacity, 1.0)), 0.0)
            count += there
        return np.floor(np.divide(total, count, out=np.zeros(len(total)), where=count > 0) + 0.5)
