"""The dry run on many nodes at once, where resources alone decide: which pods would have to go from each node, and what that costs.

On a node all pods below the preemptor's priority go; if it fits then, they are put back while it still fits: first those that violate a
budget, then the others, each from the most important. Results are kept per kind of preemptor, and only rows on which anything changed are
walked again. `PreemptionDryRun` does the same one node at a time for rules of any kind.
"""

import numpy as np
from msgspec import Struct

from pumice.scheduler.eviction.disruption_budgets import BudgetsByNamespace
from pumice.scheduler.eviction.pick_node import SHIFT, Candidate, Costs
from pumice.scheduler.kube.nominator import Nominator
from pumice.scheduler.kube.victims_table import VictimsTable
from pumice.scheduler.model import Cluster, Mask, Rows, Table, Task, Vector


class Walk(Struct, frozen=True):
    """The outcome of a dry run on some rows."""

    has_lower: Mask  #: there are pods below the priority
    fits: Mask  #: with all of them gone the preemptor fits
    victims: Mask  #: [place, row]
    violating: Mask  #: [place, row] of the victims
    gone: Table  #: [r, row] what all of them together hold


class ResourceDryRun:
    """The dry run for one kind of preemptor. Arrays have an entry for every row of the node table."""

    def __init__(
        self,
        cluster: Cluster,
        victims_table: VictimsTable,
        need: Vector,
        columns: Rows,
        priority: int,
        budgets: BudgetsByNamespace,
        now: float,
    ) -> None:
        self._cluster = cluster
        self._need, self.columns, self._priority = need, columns, priority
        self._budgets, self._now = budgets, now
        self._victims_table = victims_table
        rows = len(cluster.nodes)
        self._seen = np.full(rows, -1)
        self._victims = np.zeros((0, rows), bool)
        self.has_lower, self.fits, self.clean = (np.zeros(rows, bool) for _ in range(3))
        violations, highest, total, numbers = np.zeros((4, rows), np.int64)
        self.costs = Costs(violations, highest, total, numbers, np.zeros(rows))

    @property
    def success(self) -> Mask:
        """Rows where evictions make room."""
        return self.fits & (self.costs.numbers > 0)

    def refresh(self, task: Task, nominations: Nominator) -> None:
        """Walk the rows that changed since the last time. The residents must be up to date."""
        rows, held = nominations.against(task)
        stamp = self._victims_table.stamp + nominations.stamp
        own = nominations.row_of(task)
        if own >= 0:
            self._seen[own] = -1  # its own nomination does not count against it, but against equal pods
        changed = np.flatnonzero(stamp != self._seen)
        if len(changed):
            crowd = np.zeros((len(self.columns), len(self._seen)))
            crowd[:, rows] = held[self.columns]
            self._take(changed, self.walk(changed, crowd[:, changed]))
            self._seen[:] = stamp
            if own >= 0:
                self._seen[own] = -1

    def walk(self, rows: Rows, crowd: Table) -> Walk:
        """Do the dry run on some rows. `crowd`: [need, row] what nominated pods hold there."""
        table, victims_table, columns = self._cluster.nodes, self._victims_table, self.columns
        depth = victims_table.depth(rows)
        lower = victims_table.priority[:depth, rows] < self._priority
        requests = victims_table.requests[:depth][:, columns][:, :, rows]
        need = self._need[:, None]
        held = requests * lower[:, None, :]
        room = table.allocatable[np.ix_(columns, rows)] - table.used[np.ix_(columns, rows)] - crowd + held.sum(axis=0)
        has_lower: Mask = np.logical_or.reduce(lower, axis=0)
        enough: Mask = np.logical_and.reduce(room >= need, axis=0)
        fits = has_lower & enough
        against = np.zeros_like(lower)
        if self._budgets:
            against = self._budgets.mask([victims_table.tasks[row] for row in rows.tolist()], self._priority, depth)
        victims = np.zeros_like(lower)
        for group in (lower & against, lower & ~against) if against.any() else (lower,):
            for place in range(depth):
                tried = room - held[place]
                stays = group[place] & (tried >= need).all(axis=0)
                victims[place] |= group[place] & ~stays
                room = np.where(stays, tried, room)
        victims &= fits
        gone = np.zeros((table.dimensions.width, len(rows)))
        gone[columns] = held.sum(axis=0)
        return Walk(has_lower, fits, victims, victims & against, gone)

    def _take(self, rows: Rows, walk: Walk) -> None:
        victims_table, victims = self._victims_table, walk.victims
        self.has_lower[rows], self.fits[rows] = walk.has_lower, walk.fits
        violations = walk.violating.sum(axis=0)
        self.clean[rows] = violations == 0
        costs = self.costs
        costs.violations[rows] = violations
        sizes = victims_table.sizes(len(victims), rows)
        costs.numbers[rows] = np.where(victims, sizes, 0).sum(axis=0)
        self._remember(rows, victims)
        if not len(victims):
            return
        priority = victims_table.priority[: len(victims), rows]
        first = victims.argmax(axis=0)
        highest = np.take_along_axis(priority, first[None], axis=0)[0]
        costs.highest[rows] = highest
        costs.total[rows] = np.where(victims, (priority + SHIFT) * sizes, 0).sum(axis=0)
        started = np.where(np.isinf(victims_table.started), self._now, victims_table.started)[: len(victims), rows]
        costs.started[rows] = np.where(victims & (priority == highest), started, np.inf).min(axis=0)

    def _remember(self, rows: Rows, victims: Mask) -> None:
        more = len(victims) - len(self._victims)
        if more > 0:
            self._victims = np.concatenate([self._victims, np.zeros((more, len(self._seen)), bool)])
        self._victims[: len(victims), rows] = victims
        self._victims[len(victims) :, rows] = False

    def candidate(self, row: int) -> Candidate:
        """The candidate of one row, with the pods that would go."""
        places = np.flatnonzero(self._victims[:, row]).tolist()
        return Candidate(row, self._victims_table.victims(row, places), int(self.costs.violations[row]))
