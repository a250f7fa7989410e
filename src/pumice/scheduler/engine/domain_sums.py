"""What the nodes of each HyperNode have together, and how much of it is used.

Capacity and idle room are as they were when the sums were made. What is used follows the cluster's log, as filters see it: evicted tasks
no longer count, Pipelined tasks already do.
"""

from functools import cached_property

import numpy as np

from pumice.scheduler.engine.view import Scores
from pumice.scheduler.model import EPSILON, Cluster, HyperNodes, Mask, Rows, Table, Vector


class DomainSums:
    """The sums of HyperNodes, as columns [r, h]; h is the index in `HyperNodes.all`."""

    def __init__(self, cluster: Cluster, tree: HyperNodes) -> None:
        nodes = cluster.nodes
        self._cluster, self._tree = cluster, tree
        self._position = len(cluster.log)
        self._allocatable = nodes.allocatable.copy()
        self._before = nodes.used.copy()
        self._idle, self._future_idle = nodes.room_in_sums(nodes.idle.copy()), nodes.room_in_sums(nodes.future_idle)
        self._above: dict[int, Rows] = {}

    def _sum(self, table: Table) -> Table:
        return np.stack([table[:, node.rows].sum(axis=1) for node in self._tree.all], axis=1)

    @cached_property
    def allocatable(self) -> Table:
        return self._sum(self._allocatable)

    @cached_property
    def idle(self) -> Table:
        return self._sum(self._idle)

    @cached_property
    def future_idle(self) -> Table:
        return self._sum(self._future_idle)

    @cached_property
    def _used(self) -> Table:
        return self._sum(self._before)

    @property
    def used(self) -> Table:
        """What is used, brought up to date from the log."""
        log, used = self._cluster.log, self._used
        for row, task, sign in log[self._position :]:
            if sign:
                template = task.template
                used[np.ix_(template.columns, self._over(row))] += sign * template.amounts[:, None]
        self._position = len(log)
        return used

    def _over(self, row: int) -> Rows:
        """The numbers of the HyperNodes that hold the node of a row."""
        found = self._above.get(row)
        if found is None:
            found = self._above[row] = np.array([node.number for node in self._tree.all if node.rows[row]], np.intp)
        return found

    def have(self, need: Vector, room: Table) -> Mask:
        """A mask of the HyperNodes that have room for a sum of requests."""
        columns = np.flatnonzero(need)
        fits: Mask = need[columns, None] < room[columns] + EPSILON
        return np.asarray(fits.all(axis=0))

    def fullness(self, request: Vector, weights: Vector) -> Scores:
        """For each HyperNode, how full it would be in the requested resources, as a weighted mean; 0 if any resource with a weight, even
        of 0, would overflow. A weight below 0 means that the resource has no weight."""
        columns = np.flatnonzero((request > 0) & (weights >= 0))
        if not weights[columns].any():
            return np.zeros(len(self._tree.all))
        room = self.allocatable[columns]
        full = self.used[columns] + request[columns, None]
        share = np.divide(full, room, out=np.zeros_like(full), where=room > 0)
        mean: Scores = weights[columns] @ share / weights[columns].sum()
        return np.where((full > room).any(axis=0), 0.0, mean)
