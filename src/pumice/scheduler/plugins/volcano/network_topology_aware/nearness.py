"""Scores of nodes by the network: how near they are to the rest of the job, or for pods without a topology, how full their domains are.

A job's place is the lowest HyperNode of all its pods, also those of the present dry run unless a gang eviction makes it: the lower the
HyperNode is that holds both this place and a node, the higher the node scores. Of several nodes with the best score, those whose
HyperNode has more pods of the same part win. A hard topology without a tier has no effect.
"""

from collections.abc import Hashable
from itertools import pairwise
from typing import Any

import numpy as np

from pumice.scheduler.engine import Reach, Scorer, Scores, View
from pumice.scheduler.engine.domain_sums import DomainSums
from pumice.scheduler.framework.network_topology import Topology
from pumice.scheduler.model import Cluster, HyperNode, HyperNodes, Job, Mask, SubJob, Task, Template, Vector, status


def _part_with_topology(task: Task) -> SubJob | None:
    job = task.job
    if job is None or not job.asks_for_topology:
        return None
    part = job.subjobs.of(task)
    return None if part.topology is None else part


class PodsByHyperNode:
    """The number of pods of a part of a job in each HyperNode."""

    def __init__(self, job: Job, part: SubJob, cluster: Cluster, tree: HyperNodes) -> None:
        self.job, self.part = job, part
        self._cluster, self._tree = cluster, tree
        self._position = len(cluster.log)
        self._counts = np.zeros(len(tree.all))
        for task in part.tasks.values():
            if task.node >= 0 and task.status & status.HELD:
                self._counts[tree.homes[task.node]] += 1

    @property
    def counts(self) -> Scores:
        """The pods per HyperNode, up to date. Each pod is counted in the lowest HyperNode of its node."""
        log = self._cluster.log
        for row, task, sign in log[self._position :]:
            if sign and task.uid in self.part.tasks:
                self._counts[self._tree.homes[row]] += sign
        self._position = len(log)
        return self._counts

    def around(self, recorded: HyperNode | None) -> HyperNode | None:
        """The lowest HyperNode that holds all these pods and the recorded HyperNode; None if there is neither."""
        found = recorded
        for number in np.flatnonzero(self.counts):
            place = self._tree.all[number]
            found = place if found is None else self._tree.lowest_common(found, place)
        return found


class Nearness(Scorer):
    """The score for pods with a topology: how near nodes are to the job's pods."""

    name = "network-topology-aware"
    reach = Reach.CLUSTER
    relative = True

    def __init__(self, topology: Topology, cluster: Cluster) -> None:
        self._topology, self._cluster = topology, cluster
        self._by_place: dict[str, Scores] = {}

    def prepare(self, task: Task) -> Any:
        part, job = _part_with_topology(task), task.job
        if part is None or job is None or self._topology.sub_limit(job, part) is None:
            return None
        return PodsByHyperNode(job, part, self._cluster, self._topology.tree)

    def key(self, task: Task) -> Hashable:
        part = _part_with_topology(task)
        return None if part is None else part.uid

    def is_constant(self, state: Any, candidates: Mask) -> bool:
        homes = self._topology.tree.homes[candidates]
        return len(homes) > 0 and bool((homes == homes[0]).all())

    def score(self, state: Any, nodes: View) -> Scores:
        occupied = self._topology.occupied(state.job)
        here = state.around(occupied) if self._topology.trials_count else occupied
        if here is None:
            return np.zeros(len(nodes))
        homes = self._topology.tree.homes[nodes.row_numbers]
        values = self._closeness(here)[homes]
        best = values == values.max(initial=0.0)
        if best.sum() > 1 or len(values) == 1:
            values[best] += state.counts[homes[best]] / len(state.part.tasks)
        return values

    def _closeness(self, here: HyperNode) -> Scores:
        """How near each HyperNode is: 1 for this very one, 0 if only the whole cluster holds both."""
        if here.name not in self._by_place:
            tree = self._topology.tree
            lowest, highest = tree.all[0].tier, tree.root.tier
            values = np.ones(len(tree.all))
            for node in tree.all:
                if node is not here and lowest < highest:
                    values[node.number] = (highest - tree.lowest_common(node, here).tier) / (highest - lowest)
            self._by_place[here.name] = values
        return self._by_place[here.name]


class TierFullness(Scorer):
    """The score for pods without a topology: how full a node's HyperNodes are, as a mean over the tiers; lower tiers count more. In a tier
    without HyperNodes every node counts as full."""

    name = "network-topology-aware"
    reach = Reach.CLUSTER

    def __init__(self, tree: HyperNodes, sums: DomainSums, weights: Vector, fading: float) -> None:
        self._tree, self._sums, self._weights = tree, sums, weights
        first, one = 0 if fading else 1, tree.root.tier if fading > 1 else 1  #: the tier that has the weight 1
        tiers = sorted({node.tier for node in tree.all if node.tier >= first})
        self._tiers = [(fading ** (tier - one), tree.of_tier(tier)) for tier in tiers]
        self._between = sum((_powers(fading, below + 1 - one, tier - one) for below, tier in pairwise(tiers)), 0.0)
        self._total = self._between + sum(weight for weight, _ in self._tiers)

    def prepare(self, task: Task) -> Template | None:
        return task.template if self._total and _part_with_topology(task) is None else None

    def key(self, task: Task) -> Hashable:
        return _part_with_topology(task) is None

    def score(self, state: Any, nodes: View) -> Scores:
        full = np.append(self._sums.fullness(state.request, self._weights), 1.0)  # the last: for nodes in no HyperNode of the tier
        values = np.full(len(self._tree.root.rows), self._between)
        for weight, numbers in self._tiers:
            values += weight * full[numbers]
        values /= self._total
        return values if nodes.rows is None else values[nodes.rows]


def _powers(factor: float, first: int, end: int) -> float:
    """The sum of a factor's powers from one exponent until before another."""
    return float(end - first) if factor == 1 else (factor**first - factor**end) / (1 - factor)
